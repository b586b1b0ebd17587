"""URLs of endpoints: distinguishes them from names of files, and checks them, for sources and the server's settings.

RFC 3986, and RFC 9110, section 4.2. Imports no HTTP client.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final, TypeGuard
from urllib.parse import urlsplit

from construct_messages.errors import UsageError

_OBJECTS: Final = re.compile("(?:s3|gs|gcs|abfss?)://[^/]", re.IGNORECASE)


def is_url(name: object) -> TypeGuard[str]:
    """Whether a source's name is the URL of an endpoint, not the name of a file.

    >>> is_url("HTTPS://example.org/sparql"), is_url("data.ttl")
    (True, False)
    """
    return isinstance(name, str) and name.lower().startswith(("http://", "https://"))


def is_object_url(name: object) -> TypeGuard[str]:
    """Whether a source's name is the URL of objects in a store, such as S3.

    >>> is_object_url("gs://bucket/dump.quads"), is_object_url("https://example.org/sparql")
    (True, False)
    """
    return isinstance(name, str) and _OBJECTS.match(name) is not None


def check_url(url: str) -> None:
    """Raises `UsageError` if requests cannot be sent to a URL, which may contain a password or a key and is not shown.

    >>> check_url("https://me:secret@example.org/sparql")
    Traceback (most recent call last):
    construct_messages.errors.UsageError: the URL holds credentials
      hint: set CONSTRUCT_MESSAGES_USER and CONSTRUCT_MESSAGES_PASSWORD, or the server's user_variable and so on
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or invalid brackets
        valid = False
    if not valid or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(
            "the URL is malformed, or not one of http or https",
            hint="write it like https://example.org/sparql; percent-encode characters outside of ASCII",
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "the URL holds credentials",
            hint="set CONSTRUCT_MESSAGES_USER and CONSTRUCT_MESSAGES_PASSWORD, or the server's user_variable and so on",
        )
    if parts.fragment:
        raise UsageError(
            "the URL has a fragment, which is not part of a request",
            hint="leave out # and the text after it",
        )


def check_secure(url: str) -> None:
    """Raises `UsageError` if a URL for secrets or trusted data is neither https nor on this machine.

    >>> check_secure("http://127.0.0.1:8080/token")
    >>> check_secure("http://id.example.org/token")
    Traceback (most recent call last):
    construct_messages.errors.UsageError: http://id.example.org/token can be read and changed in transit
      hint: use https
    """
    check_url(url)
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise UsageError(
            f"{without_query(url)} can be read and changed in transit", hint="use https"
        )


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can connect to a host.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def without_query(url: str) -> str:
    """Returns a URL without its query, for errors: the query contains the SPARQL text, and often a key."""
    return urlsplit(url)._replace(query="", fragment="").geturl()
