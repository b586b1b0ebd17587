"""A certificate for 127.0.0.1 that signs itself, for servers and clients of tests."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple


class Certificate(NamedTuple):
    """The files of a certificate, in PEM."""

    certificate: Path
    key: Path


def certificate_in(place: Path) -> Certificate:
    """Makes a certificate in a folder."""
    made = Certificate(place / "cert.pem", place / "key.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-days", "2", "-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", made.key, "-out", made.certificate),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return made
