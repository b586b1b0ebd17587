"""Every format against every other: what is written is read again, what cannot be carried is refused aloud."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import pyoxigraph as ox
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.rdf.formats import (
    FORMATS,
    N_QUADS,
    N_TRIPLES,
    NDJSON_LD,
    RDF_XML,
    TRIG,
    TURTLE,
    Format,
)
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms import Term, from_pyoxigraph, is_triple
from tests.support.logs.kinds import KINDS, Kind, blanks, cut, isomorphic, read, single_bytes, write
from tests.support.strategies import SOLUTIONS, is_resolved, messages, templates

pytestmark = pytest.mark.slow

PREFIXES = st.dictionaries(
    st.sampled_from(["", "ex", "a", "MESSAGE", "http", "urn"]),
    st.sampled_from(
        ["http://example.org/", "http://example.org/a", "http://example.org/ns#", "urn:", "ex:"]
    ),
)
each_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
# eight formats share the examples that a property has; `make fuzz` multiplies them all the same
some = settings(max_examples=settings().max_examples // 5)


def kinds(format: Format) -> st.SearchStrategy[Kind]:
    return st.sampled_from([kind for kind in KINDS if kind.format is format])


# the canonical escapes of control characters but tab and line ends, and two that are no characters
NOT_IN_XML = re.compile(r"(?<!\\)(?:\\\\)*\\[ubf]|[\ufffe\uffff]")
# as the predicates of RDF/XML have to: digits alone, as behind a percent sign, are no name of an element
ENDS_IN_A_NAME = re.compile(r"[^\W\d][\w.\-]*>$")


def carried_by(*kinds: Kind) -> st.SearchStrategy[list[Message]]:
    """Messages that all the kinds can carry."""
    return messages(
        graphs=all(kind.format.graphs for kind in kinds),
        triple_terms=all(kind.syntax.triple_terms for kind in kinds),
        directions=all(kind.syntax.directions for kind in kinds),
        any_text=all(kind.format is not RDF_XML for kind in kinds),
        any_predicate=all(kind.format is not RDF_XML for kind in kinds),
        dot_segments=all(kind.format is not RDF_XML for kind in kinds),
    )


def has_what_some_kinds_lack(message: Message) -> bool:
    """Whether a message holds what at least one kind of log has no syntax for."""
    return any(
        quad.graph is not None
        or "<<(" in quad.object
        or quad.object.endswith(("--ltr", "--rtl"))
        or NOT_IN_XML.search(quad.object)
        or not quad.predicate[-2].isalnum()
        or not ENDS_IN_A_NAME.search(quad.predicate)
        or not (is_resolved(quad.subject) and is_resolved(quad.object))
        for quad in message
    )


def outcome(encode: Callable[[], bytes]) -> bytes | str:
    """The log, or what the refusal says."""
    try:
        return encode()
    except UnsupportedByFormat as error:
        return str(error)


# --- one kind -------------------------------------------------------------------------------------------------------


@each_format
@some
@given(data=st.data(), prefixes=PREFIXES, places=st.lists(st.integers(0, 2000), max_size=6))
def test_what_is_written_is_read_again(
    format: Format, data: st.DataObject, prefixes: Mapping[str, str], places: list[int]
) -> None:
    kind = data.draw(kinds(format))
    written = data.draw(carried_by(kind))
    log = write(written, kind, prefixes)
    whole = read([log], kind)
    assert whole.error is None
    assert isomorphic(whole.messages, written)
    if kind.keeps_labels:
        assert whole.messages == written
    else:
        found = [blanks(message) for message in whole.messages]
        assert sum(map(len, found)) == len(set().union(*found)), "two messages share a blank node"
    for chunks in (cut(log, places), single_bytes(log)):
        assert read(chunks, kind) == whole
    assert read([log], kind, announced=False) == whole


PARSERS = {
    N_TRIPLES: ox.RdfFormat.N_TRIPLES,
    N_QUADS: ox.RdfFormat.N_QUADS,
    TURTLE: ox.RdfFormat.TURTLE,
    TRIG: ox.RdfFormat.TRIG,
    RDF_XML: ox.RdfFormat.RDF_XML,
    NDJSON_LD: ox.RdfFormat.JSON_LD,
}


@each_format
@some
@given(data=st.data(), prefixes=PREFIXES)
def test_each_message_is_a_document_too(
    format: Format, data: st.DataObject, prefixes: Mapping[str, str]
) -> None:
    """Any parser of the format reads it by itself; where there is none here, our decoder does."""
    kind = data.draw(kinds(format))
    for message in data.draw(carried_by(kind)):
        triple_terms = any(is_triple(quad.object) for quad in message)
        encoder = encoder_for(
            format, kind.syntax, EncoderOptions(prefixes, triple_terms=triple_terms)
        )
        document = encoder.encode_document(message)
        if format in PARSERS:
            assert to_message(ox.parse(document, format=PARSERS[format])).isomorphic(message)
        found = read([document], kind, announced=False)
        assert found.error is None
        assert isomorphic(found.messages or [Message()], [message])


@each_format
@some
@given(data=st.data(), template=templates(), solutions=SOLUTIONS, prefixes=PREFIXES)
def test_specialised_for_a_template_an_encoder_writes_the_same(
    format: Format,
    data: st.DataObject,
    template: Template,
    solutions: list[tuple[Term, ...]],
    prefixes: Mapping[str, str],
) -> None:
    kind = data.draw(kinds(format))

    def plain() -> bytes:
        encoder = encoder_for(kind.format, kind.syntax, EncoderOptions(prefixes))
        instances = [
            Message(template.instantiate(solution, number))
            for number, solution in enumerate(solutions, 3)
        ]
        return b"".join((encoder.start(), *map(encoder.encode, instances), encoder.finish()))

    def special() -> bytes:
        encoder = encoder_for(kind.format, kind.syntax, EncoderOptions(prefixes))
        return (
            encoder.start()
            + bytes(encoder.for_template(template).encode(Solutions.of(solutions), 3))
            + encoder.finish()
        )

    expected = outcome(plain)
    assert outcome(special) == expected
    event("refused" if isinstance(expected, str) else "written")


# --- two kinds ------------------------------------------------------------------------------------------------------


@each_format
@some
@given(data=st.data(), prefixes=PREFIXES)
def test_any_two_formats_convert_there_and_back(
    format: Format, data: st.DataObject, prefixes: Mapping[str, str]
) -> None:
    here, there = data.draw(kinds(format)), data.draw(st.sampled_from(KINDS))
    written = data.draw(carried_by(here, there))
    first = read([write(written, here, prefixes)], here)
    second = read([write(first.messages, there, prefixes)], there)
    third = read([write(second.messages, here)], here)
    assert (first.error, second.error, third.error) == (None, None, None)
    assert isomorphic(third.messages, written)


@each_format
@some
@given(data=st.data(), here=st.sampled_from(KINDS))
def test_a_conversion_loses_nothing_or_is_refused(
    format: Format, data: st.DataObject, here: Kind
) -> None:
    there = data.draw(kinds(format))
    given_messages = data.draw(carried_by(here))
    log = outcome(lambda: write(given_messages, there))
    if isinstance(log, str):
        event("refused")
        assert any(map(has_what_some_kinds_lack, given_messages))
        assert re.match(r"message [1-5]: .*\n  hint: ", log, re.DOTALL)
        return
    event("written")
    assert isomorphic(read([log], there).messages, given_messages)


# --- rdfm, to a parser that knows no messages -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.keeps_labels], ids=str)
@some
@given(data=st.data(), prefixes=PREFIXES)
def test_a_plain_parser_reads_the_union(
    kind: Kind, data: st.DataObject, prefixes: Mapping[str, str]
) -> None:
    log = write(data.draw(carried_by(kind)), kind, prefixes)
    plain = {
        (
            *map(from_pyoxigraph, (quad.subject, quad.predicate, quad.object)),
            None
            if isinstance(quad.graph_name, ox.DefaultGraph)
            else from_pyoxigraph(quad.graph_name),
        )
        for quad in ox.parse(log, ox.RdfFormat.from_extension(kind.format.extension))
    }
    assert plain == {tuple(quad) for message in read([log], kind).messages for quad in message}


# --- the properties themselves --------------------------------------------------------------------------------------


def test_the_properties_meet_what_they_are_about() -> None:
    """Each of these happens in at least a tenth of the examples: else the properties above would say little."""
    counts: Counter[str] = Counter()

    @settings(max_examples=200, derandomize=True)
    @given(messages())
    def count(drawn: list[Message]) -> None:
        labels = [blanks(message) for message in drawn]
        quads = [quad for message in drawn for quad in message]
        counts["examples"] += 1
        counts["empty first"] += bool(drawn) and not len(drawn[0])
        counts["empty inside"] += any(not len(message) for message in drawn[1:-1])
        counts["empty last"] += len(drawn) > 1 and not len(drawn[-1])
        counts["shared label"] += sum(map(len, labels)) > len(set().union(*labels))
        counts["named graph"] += any(quad.graph is not None for quad in quads)
        counts["blank graph"] += any(str(quad.graph).startswith("_:") for quad in quads)
        counts["triple term"] += any(quad.object.startswith("<<(") for quad in quads)
        counts["direction"] += any(quad.object.endswith(("--ltr", "--rtl")) for quad in quads)

    count()
    assert all(counts[what] >= counts["examples"] / 10 for what in counts), counts


def test_refusals_do_not_prevail() -> None:
    counts: Counter[tuple[str, bool]] = Counter()

    @settings(max_examples=100, derandomize=True)
    @given(data=st.data(), here=st.sampled_from(KINDS))
    def count(data: st.DataObject, here: Kind) -> None:
        drawn = data.draw(carried_by(here))
        for format in FORMATS:
            there = data.draw(kinds(format))
            counts[format.extension, isinstance(outcome(partial(write, drawn, there)), bytes)] += (
                any(drawn)
            )

    count()
    assert all(
        4 * counts[extension, True] >= refused
        for (extension, done), refused in counts.items()
        if not done
    ), counts
