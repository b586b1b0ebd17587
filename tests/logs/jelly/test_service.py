"""Jelly's gRPC service without gRPC: what is negotiated, and its messages as protobuf's own library reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyjelly.jelly import RdfStreamOptions

from construct_messages.errors import UsageError
from construct_messages.logs.jelly.options import JellyOptions, PhysicalType
from construct_messages.logs.jelly.service import (
    DEFAULT_OPTIONS,
    RdfStreamSubscribe,
    find_metadata,
    metadata_fields,
    negotiated,
    read_metadata,
    refused_options,
)

WHOLE: dict[str, Any] = {
    "physical_type": 2,
    "max_name_table_size": 128,
    "max_prefix_table_size": 16,
    "max_datatype_table_size": 16,
    "version": 2,
}


def requested(**options: Any) -> bytes:
    """Options as a client sends them, by another library."""
    return bytes(RdfStreamOptions(**options).SerializeToString())


@given(
    st.fixed_dictionaries(
        {
            "physical_type": st.integers(0, 3),
            "generalized_statements": st.booleans(),
            "rdf_star": st.booleans(),
            "max_name_table_size": st.integers(0, 10_000),
            "max_prefix_table_size": st.one_of(st.integers(0, 8), st.integers(0, 10_000)),
            "max_datatype_table_size": st.integers(0, 10_000),
            "logical_type": st.sampled_from((0, 1, 2, 3, 4, 13, 14, 114)),
            "version": st.integers(0, 9),
            "stream_name": st.text(max_size=9),
        }
    )
)
def test_the_table_of_the_specification(wanted: dict[str, Any]) -> None:
    """Each rule holds, or an option that cannot be fulfilled is named."""
    data = requested(**wanted)
    impossible = {
        "physical_type": wanted["physical_type"] == 0,
        "version": wanted["version"] == 0,
        "max_name_table_size": wanted["max_name_table_size"] < 8,
        "logical_type": wanted["logical_type"] % 10
        not in {0: (0, 1, 2, 3, 4), 1: (0, 1, 3)}.get(wanted["physical_type"], (0, 2, 4)),
    }
    if data and any(impossible.values()):
        with pytest.raises(UsageError) as refused:
            negotiated(data)
        assert impossible[refused.value.message.partition(" ")[0]], refused.value
        assert refused.value.status == 400
        return
    options = negotiated(data)
    if not data:
        assert options == DEFAULT_OPTIONS
        return
    assert options.physical_type == wanted["physical_type"]
    assert options.generalized_statements <= wanted["generalized_statements"]
    assert options.rdf_star == wanted["rdf_star"]
    for table in ("max_name_table_size", "max_prefix_table_size", "max_datatype_table_size"):
        assert getattr(options, table) <= min(wanted[table], getattr(DEFAULT_OPTIONS, table))
    assert options.max_prefix_table_size not in (1, 2, 3), "which other readers read wrongly"
    assert options.version is not None
    assert options.version <= wanted["version"]
    assert options.stream_name == wanted["stream_name"]
    assert JellyOptions.decode(options.encode()) == options, "they can be written and read"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"physical_type": 0}, "physical_type is 0"),
        ({"version": 0}, "version is 0"),
        ({"max_name_table_size": 7}, "max_name_table_size is 7"),
        ({"logical_type": 3}, "logical_type is 3, which no stream of the physical type QUADS has"),
        (
            {"physical_type": 1, "logical_type": 114},
            "logical_type is 114, which no stream of the physical type TRIPLES has",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_fulfilled(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        negotiated(requested(**{**WHOLE, **change}))


@pytest.mark.parametrize("data", [b"\x10", b"\x12\x01a", b"\x0a\x02\xff\xff", b"\xff" * 11])
def test_malformed_options(data: bytes) -> None:
    with pytest.raises(UsageError):
        negotiated(data)
    with pytest.raises(UsageError):
        RdfStreamSubscribe.decode(b"\x0a\x7f" + data)


@given(st.text(), st.binary(max_size=20))
def test_requests(topic: str, options: bytes) -> None:
    request = RdfStreamSubscribe(topic, options)
    assert RdfStreamSubscribe.decode(request.encode()) == request


@given(st.dictionaries(st.text(max_size=9), st.binary(max_size=9), max_size=4), st.booleans())
def test_metadata(metadata: dict[str, bytes], before: bool) -> None:
    rows = b"\x0a\x00" * 3
    said = metadata_fields(metadata)
    frame = said + rows if before else rows + said
    assert find_metadata(frame) == metadata
    assert read_metadata(frame) == ((metadata, rows) if before else ({}, frame))


@pytest.mark.parametrize("frame", [b"\x7a", b"\x7a\x05\x0a", b"\x7a\x02\x0a\x05"])
def test_malformed_metadata(frame: bytes) -> None:
    assert read_metadata(frame) == ({}, frame)
    assert find_metadata(frame) == {}


def test_what_a_refusal_asks_for() -> None:
    """The options that would carry the message."""
    error = refused_options("element 7: …", JellyOptions(PhysicalType.TRIPLES, rdf_star=False))
    assert error.hint == "request physical_type QUADS, rdf_star true"
