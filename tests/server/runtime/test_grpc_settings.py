"""The settings of the gRPC service: its certificate, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from construct_messages.errors import UsageError
from construct_messages.server.config import StreamsSettings
from construct_messages.server.runtime.settings import load_config
from tests.support.certificates import certificate_in

STREAMS = '[streams]\nfile = "streams.db"\n'
GRPC = f'{STREAMS}grpc = "127.0.0.1:0"\n'


def load(folder: Path, text: str) -> StreamsSettings:
    path = folder / "server.toml"
    path.write_text(text)
    settings = load_config(path, {}, {}).streams
    assert settings is not None
    return settings


def test_files_are_beside_the_settings(tmp_path: Path) -> None:
    made = certificate_in(tmp_path)
    found = load(tmp_path, f'{GRPC}grpc_certificate = "cert.pem"\ngrpc_key = "key.pem"\n')
    assert (found.grpc_certificate, found.grpc_key) == tuple(map(str, made))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (f'{STREAMS}grpc_key = "key.pem"', "streams.grpc_key is set, but not grpc"),
        (f'{STREAMS}grpc_url = "grpc://a"', "streams.grpc_url is set, but not grpc"),
        (f'{GRPC}grpc_key = "key.pem"', "grpc_key is set without the other file"),
        (f'{GRPC}grpc_certificate = "cert.pem"', "grpc_certificate is set without the other file"),
        (
            f'{GRPC}grpc_certificate = "absent.pem"\ngrpc_key = "key.pem"',
            r"streams.grpc_certificate: the certificate .*absent.pem and the key .* cannot be read",
        ),
        (
            f'{GRPC}grpc_certificate = "cert.pem"\ngrpc_key = "cert.pem"',
            r"streams.grpc_certificate: .* cannot be read",
        ),
        (f'{GRPC}grpc_url = "https://a"', "'https://a' is no URL of a gRPC service"),
        (f'{GRPC}grpc_url = "grpc://a/rooms"', "is no URL of a gRPC service"),
    ],
)
def test_refusals(tmp_path: Path, text: str, match: str) -> None:
    certificate_in(tmp_path)
    with pytest.raises(UsageError, match=match):
        load(tmp_path, text)
