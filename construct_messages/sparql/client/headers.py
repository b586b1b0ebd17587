"""Headers of requests: checks whether HTTP can send them, and writes credentials."""

from __future__ import annotations

import base64
import os
from typing import Final

from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.regex import regex

HEADER_NAME: Final = regex(r"[A-Za-z0-9!#$%&'*+.^_`|~\-]+")
"""The syntax of names of headers (RFC 9110, section 5.6.2)."""

TOKEN_URL: Final = "CONSTRUCT_MESSAGES_TOKEN_URL"
"""The environment variable with the token endpoint of the client in the environment; see `sparql/client/oauth.py`."""

_NOT_IN_HEADER: Final = regex(r"[^\t\x20-\x7e]")


def check_header(name: str, value: str) -> None:
    """Checks that HTTP can send a header (RFC 9110, section 5).

    Raises:
        UsageError: it cannot.
    """
    if not HEADER_NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not the name of an HTTP header", hint="write it as in 'X-Key: value'"
        )
    if _NOT_IN_HEADER.search(value):
        raise UsageError(
            f"the header {name} has a value that HTTP cannot send"
        )  # not shown: it may be a secret


def authorization(user: str | None, password: str | None, token: str | None) -> dict[str, str]:
    """The header for credentials: Basic (RFC 7617) for user and password, or Bearer (RFC 6750).

    >>> authorization(None, None, "t0")
    {'Authorization': 'Bearer t0'}
    """
    if token is not None:
        return {"Authorization": f"Bearer {token}"}
    if user is not None:
        pair = f"{user}:{password or ''}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}


def authorization_of_environment() -> dict[str, str]:
    """Returns the header for the credentials in the environment.

    They are `CONSTRUCT_MESSAGES_USER` and `CONSTRUCT_MESSAGES_PASSWORD` (Basic), or `CONSTRUCT_MESSAGES_TOKEN`
    (Bearer).

    Raises:
        UsageError: they are incomplete, or both are set.
    """
    user, password, token = (
        os.environ.get(f"CONSTRUCT_MESSAGES_{name}") for name in ("USER", "PASSWORD", "TOKEN")
    )
    if (user is None) != (password is None) or (user is not None and token is not None):
        raise UsageError(
            "the credentials in the environment are incomplete, or there are two",
            hint="set both CONSTRUCT_MESSAGES_USER and CONSTRUCT_MESSAGES_PASSWORD, or only "
            "CONSTRUCT_MESSAGES_TOKEN",
        )
    return authorization(user, password, token)
