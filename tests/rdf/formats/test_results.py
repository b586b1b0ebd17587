"""The tables of results and documents: what they name is there, and no name means two formats of one table."""

import inspect
from collections.abc import Sequence
from itertools import chain

import pyoxigraph as ox
import pytest

from construct_messages.rdf.formats.media_types import (
    DOCUMENTS,
    DocumentFormat,
    Serialization,
    find_document_format,
    format_of_document,
)
from construct_messages.rdf.formats.results import READ, RESULTS, ResultsFormat, find_results
from construct_messages.sparql.results import NewDecoder, ResultsDecoder, decoder_of


@pytest.mark.parametrize("format", READ.values(), ids=READ)
def test_a_record_names_a_decoder(format: ResultsFormat) -> None:
    decoder = decoder_of(format)
    made, *given = inspect.signature(NewDecoder.__call__).parameters.values()
    assert made.name == "self"
    # annotations are texts
    assert [*inspect.signature(decoder).parameters.values()] == given
    for name in ("feed", "close"):
        expected = inspect.signature(getattr(ResultsDecoder, name))
        assert inspect.signature(getattr(decoder, name)) == expected


@pytest.mark.parametrize("format", RESULTS, ids=lambda format: format.name)
def test_the_engine_serializes_what_the_table_says(format: ResultsFormat) -> None:
    assert (ox.QueryResultsFormat.from_media_type(format.media_type) is not None) == format.written
    assert find_results(format.media_type) is format


@pytest.mark.parametrize("format", DOCUMENTS, ids=lambda format: format.name)
def test_documents_are_parsed(format: DocumentFormat) -> None:
    assert format.parsed_as.media_type == format.media_type
    for extension in (*format.extensions, *format.shared_extensions):
        assert format_of_document(extension) is format
        assert format_of_document(extension, named=False) is (
            format if extension in format.extensions else None
        )
    for name in (format.media_type, *format.extensions):
        assert find_document_format(name.upper()) is format


@pytest.mark.parametrize("table", [RESULTS, DOCUMENTS], ids=["results", "documents"])
def test_no_name_means_two_formats(table: Sequence[Serialization]) -> None:
    names = list(
        chain.from_iterable(
            {format.media_type, *format.names} for format in table if format.written
        )
    )
    assert len(names) == len(set(names))
