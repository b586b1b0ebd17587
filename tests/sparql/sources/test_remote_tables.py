"""Tables of quads in an object store: moto's server of S3, which is asked over HTTP as Amazon's is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

pytest.importorskip("duckdb")

from construct_messages import construct_messages
from construct_messages.errors import QuadsError, SourceError
from construct_messages.sparql.relational.quads import load
from tests.support.places import ROOT

DATA = ROOT / "queries" / "data" / "companies.ttl"
QUERY = "CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s ?p ?o FILTER(!isBlank(?s) && !isBlank(?o)) }"


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a bucket with the table `t`, and with the other Parquet file `other/a.parquet`."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    settings = {
        "ACCESS_KEY_ID": "key",
        "SECRET_ACCESS_KEY": "secret",
        "DEFAULT_REGION": "us-east-1",
    }
    for name, value in {**settings, "ENDPOINT_URL": f"http://{host}:{port}"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    load([DATA], tmp_path / "t")
    client = boto3.client("s3")
    client.create_bucket(Bucket="bucket")
    for path in (tmp_path / "t").rglob("*"):
        if path.is_file():
            client.upload_file(str(path), "bucket", str(path.relative_to(tmp_path)))
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    client.upload_file(str(tmp_path / "a.parquet"), "bucket", "other/a.parquet")
    yield "s3://bucket"
    server.stop()


def test_tables(bucket: str) -> None:
    wanted = Counter(message.lines for message in construct_messages(QUERY, DATA))
    for place in ("t", "t/*.parquet", "t/f*"):  # the first has statistics
        found = Counter(m.lines for m in construct_messages(QUERY, f"{bucket}/{place}"))
        assert found == wanted, place
    for place, error in (
        ("no-such-table", SourceError),
        ("t/*.orc", QuadsError),
        ("other", QuadsError),
        ("other/a.parquet", QuadsError),
    ):
        with pytest.raises(error, match=f"{bucket}/{place}".replace("*", r"\*")):
            list(construct_messages(QUERY, f"{bucket}/{place}"))
