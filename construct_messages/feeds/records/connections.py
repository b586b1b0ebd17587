"""Reading over one connection to a broker after the other, and TLS for those whose library takes a context.

Each connection begins where the one before ended; what it brings is in the room of its transport.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds.record import Record
from construct_messages.feeds.transport import Settings
from construct_messages.net.retries import Attempts, attempts
from construct_messages.net.timeouts import Timeouts

TLS_OPTIONS: Final = ("ca_certs", "certfile", "keyfile", "keyfile_password")
"""The options of `tls_context`, as `ssl.SSLContext` calls them."""

_PAUSE: Final = 0.5  # seconds before the first attempt to connect again


def attempts_of(settings: Settings) -> Attempts:
    """Returns the attempts at what may fail in a way that passes; see `net.retries`."""
    return attempts(settings.retries, Timeouts(None), lambda _: True)


async def over_connections(
    connection: Callable[[], AsyncGenerator[Sequence[Record]]], settings: Settings
) -> AsyncGenerator[Sequence[Record]]:
    """The records of one connection after the other, until one ends by itself.

    Args:
        connection: connects, and yields the records after the last one that was yielded.
        settings: how often in a row connecting may fail.

    Raises:
        SourceError: a failure that does not pass, or too many in a row without a record.
    """
    while True:
        async for attempt in attempts_of(settings):
            moved = False
            with attempt:
                try:
                    async with aclosing(connection()) as records:
                        async for some in records:
                            moved = True
                            yield some
                    return
                except SourceError as error:
                    if not (moved and error.transient):
                        raise
        await asyncio.sleep(_PAUSE)


def tls_context(options: Mapping[str, str]) -> ssl.SSLContext:
    """Returns the TLS context for a broker, whose certificate is checked by the system's authorities or those given.

    Args:
        options: `ca_certs`: a file of authorities; `certfile`, `keyfile`, `keyfile_password`: the client's certificate.

    Raises:
        UsageError: a file that cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=options.get("ca_certs"))
        if certificate := options.get("certfile"):
            password = options.get("keyfile_password", "")
            context.load_cert_chain(certificate, options.get("keyfile"), lambda: password)
    except OSError as error:  # ssl.SSLError is one
        raise UsageError(
            f"the certificates cannot be read: {error}",
            hint=f"name files in PEM: {', '.join(TLS_OPTIONS)}",
        ) from error
    return context
