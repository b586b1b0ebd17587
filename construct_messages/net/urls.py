"""URLs of endpoints: recognises them among names of sources, and checks them, for sources and the server's settings.

RFC 3986, and RFC 9110, section 4.2. Imports no HTTP client.
"""

from __future__ import annotations

from typing import TypeGuard
from urllib.parse import urlsplit

from construct_messages.errors import UsageError


def is_url(name: object) -> TypeGuard[str]:
    """Whether a source's name is that of an endpoint, and not of a file.

    >>> is_url("HTTPS://example.org/sparql"), is_url("data.ttl")
    (True, False)
    """
    return isinstance(name, str) and name.lower().startswith(("http://", "https://"))


def check_url(url: str) -> None:
    """Checks that requests can be sent to a URL. Errors do not show it: it may hold a password or a key.

    Raises:
        UsageError: no http or https URL, or one with credentials or a fragment.

    >>> check_url("https://me:secret@example.org/sparql")
    Traceback (most recent call last):
    construct_messages.errors.UsageError: the URL holds credentials
      hint: set CONSTRUCT_MESSAGES_USER and CONSTRUCT_MESSAGES_PASSWORD, or the server's user_variable and so on
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port, or brackets, that are none
        valid = False
    if not valid or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(
            "the URL is malformed, or not one of http or https",
            hint="write it like https://example.org/sparql; percent-encode what is not ASCII",
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "the URL holds credentials",
            hint="set CONSTRUCT_MESSAGES_USER and CONSTRUCT_MESSAGES_PASSWORD, or the server's user_variable and so on",
        )
    if parts.fragment:
        raise UsageError(
            "the URL has a fragment, which is not part of a request",
            hint="leave out # and what follows",
        )


def without_query(url: str) -> str:
    """Returns a URL without its query, for errors: the query contains the SPARQL text, and often a key."""
    return urlsplit(url)._replace(query="", fragment="").geturl()
