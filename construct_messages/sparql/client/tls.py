"""TLS contexts for libraries of transports and servers: certificates and keys in PEM, from files."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from construct_messages.errors import SourceError, UsageError

TLS_OPTIONS: Final = ("ca_certs", "certfile", "keyfile", "keyfile_password")
"""The options of `tls_context`, by the names of `ssl.SSLContext`."""

_PROBE_SECONDS: Final = 2.0
_RECORDS: Final = range(0x14, 0x19)  # the first bytes of TLS (RFC 8446, section 5.1)


def tls_context(options: Mapping[str, str]) -> ssl.SSLContext:
    """Returns the context of a client.

    Certificates are verified by the authorities of the system, or of the file `ca_certs`; `certfile`, `keyfile` and
    `keyfile_password` are the client's own. Raises `UsageError` for a file that cannot be read.
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


async def check_plain(url: str, host: str, port: int, hint: str) -> None:
    """Raises `SourceError` if a server expects TLS, after a connection without TLS to it has failed.

    Such a server closes the connection, or waits for more, as one does that is about to restart. `hint`: how TLS is
    requested.
    """
    if await _speaks_tls(host, port):
        raise SourceError(f"{url} expects TLS at this port", hint=hint)


async def check_tls(url: str, host: str, port: int, probe: bytes, hint: str) -> None:
    """Raises `SourceError` if a server speaks its protocol without TLS, after a connection with TLS to it has failed.

    `probe`: how a connection begins without TLS, as far as the server answers; it has no secrets.
    """
    if await _speaks_tls(host, port):  # servers of HTTPS answer to HTTP, too
        return
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(probe)
                answer = await reader.read(1)
            finally:
                writer.close()
    except OSError:  # a timeout is one
        return
    if answer and answer[0] not in _RECORDS:
        raise SourceError(
            f"{url} has no TLS at this port", hint=f"name the port that has TLS, or {hint}"
        )


async def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is sent to it
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
            writer.close()
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")  # only a server of TLS sends alerts
    except OSError:  # a timeout is one
        return False
    with suppress(OSError):
        async with asyncio.timeout(_PROBE_SECONDS):
            await writer.wait_closed()
    return True


def server_tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """Returns the context of a server with a certificate, followed by intermediate ones, and a key without a
    password.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # RFC 9113, section 9.2
    try:
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:  # ssl.SSLError is one
        raise UsageError(
            f"the certificate {certificate} and the key {key} cannot be read: {error}",
            hint="name files in PEM that belong together; a key has no password",
        ) from error
    return context
