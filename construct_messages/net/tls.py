"""TLS contexts for libraries of transports and servers: certificates and keys in PEM, from files."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

from construct_messages.errors import UsageError

TLS_OPTIONS: Final = ("ca_certs", "certfile", "keyfile", "keyfile_password")
"""The options of `tls_context`, by the names of `ssl.SSLContext`."""


def tls_context(options: Mapping[str, str]) -> ssl.SSLContext:
    """Returns the context of a client, which verifies certificates by the authorities of the system or of a file.

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


def server_tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """Returns the context of a server.

    Args:
        certificate: a file with the certificate, followed by the intermediate certificates.
        key: a file with its private key, without a password.

    Raises:
        UsageError: a file cannot be read, or the key does not match the certificate.
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
