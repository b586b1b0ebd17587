"""The options of Jelly logs that are written: what they announce, and what becomes of what they do not allow."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from google.protobuf.proto import parse_length_prefixed
from hypothesis import given
from pyjelly import jelly
from pyjelly.integrations.generic.parse import parse_jelly_grouped

from construct_messages import Message, Quad, construct_messages, read_log, write_log
from construct_messages.errors import LogError, TermError, UnsupportedByFormat, UsageError
from construct_messages.options import JellyOptions, LogicalType, PhysicalType
from construct_messages.rdf.terms import Term, iri, literal, triple
from tests.support.commands import Done, run
from tests.support.logs import rdfjs_jelly
from tests.support.logs.kinds import isomorphic
from tests.support.strategies import messages

S, P, O, G = (iri(f"http://example.org/{name}") for name in "spog")  # noqa: E741 - the usual letter for an object
ONE = Message([Quad(S, P, O)])
TRIPLE_TERM = Message([Quad(S, P, triple(S, P, O))])
NAMED = Message([Quad(S, P, O, G)])
BLANK = Message([Quad(Term("_:a"), P, Term("_:b"))])


def written(log: Sequence[Message], **options: Any) -> bytes:
    out = io.BytesIO()
    assert write_log(log, out, "jelly", **options) == len(log)
    return out.getvalue()


def announced(data: bytes) -> Any:
    """The options of a delimited stream, as the classes made of rdf.proto have them."""
    frame = parse_length_prefixed(jelly.RdfStreamFrame, io.BytesIO(data))
    assert frame is not None
    return frame.rows[0].options


def query(text: str) -> bytes:
    store = ox.Store()
    store.add(ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal("x")))
    return b"".join(construct_messages(text, store).serialize("jelly"))


# --- what is announced ----------------------------------------------------------------------------------------------

WAYS: dict[str, Callable[[], bytes]] = {
    "write_log": lambda: written([ONE, Message(), BLANK]),
    "write_log without graphs": lambda: written([ONE, Message(), BLANK], graphs=False),
    "a query": lambda: query("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"),
    "a query that names graphs": lambda: query(
        "CONSTRUCT { GRAPH ?s { ?s ?p ?o, 1 } } WHERE { ?s ?p ?o }"
    ),
    "a log that is read": lambda: written(list(read_log(b"<urn:s> <urn:p> <urn:o> .", "nq"))),
    "a labelled log": lambda: converted(
        b'VERSION "1.2-messages"\n<urn:s> <urn:p> <urn:o> .\nMESSAGE\n'
    ),
    "a Jelly log": lambda: converted(written([ONE, NAMED]), "jelly"),
}


def converted(log: bytes, format: str | None = None, **options: Any) -> bytes:
    out = io.BytesIO()
    write_log(read_log(log, format), out, "jelly", **options)
    return out.getvalue()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_nothing_is_announced_that_is_not_used(way: Callable[[], bytes]) -> None:
    """Issue 13, 10: `rdf_star` stood in every log, and rdfjs-jelly refused them all."""
    log = way()
    options = announced(log)
    assert not options.rdf_star
    assert not options.generalized_statements
    assert options.version == 1
    assert isomorphic(rdfjs_jelly.read(log), list(read_log(log, "jelly")))


@given(log=messages(triple_terms=False, directions=False))
@pytest.mark.slow
def test_rdfjs_jelly_reads_all_that_has_no_triple_terms(log: list[Message]) -> None:
    """Issue 13, 10: by the rules of that package, which know nothing of this one."""
    assert rdfjs_jelly.read(written(log or [Message()])) == (log or [Message()])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"rdf_star": True}, "RDF-star"),
        ({"generalized_statements": True}, "Generalized"),
    ],
    ids=str,
)
def test_the_rules_refuse_what_the_package_refuses(options: dict[str, Any], why: str) -> None:
    with pytest.raises(rdfjs_jelly.Refused, match=why):
        rdfjs_jelly.read(written([ONE], options=JellyOptions(**options)))


@pytest.mark.parametrize(
    ("text", "rdf_star"),
    [
        ("CONSTRUCT { ?s ?p <<( ?s ?p ?o )>> } WHERE { ?s ?p ?o }", True),
        ("CONSTRUCT { ?s ?p <<( <urn:a> <urn:b> <urn:c> )>> } WHERE { ?s ?p ?o }", True),
        ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", False),
        ('CONSTRUCT { "never a subject" ?p ?s } WHERE { ?s ?p ?o }', False),
    ],
)
def test_a_template_tells_beforehand_whether_it_has_triple_terms(text: str, rdf_star: bool) -> None:
    log = query(text)
    assert announced(log).rdf_star == rdf_star
    assert len(list(read_log(log, "jelly"))) == 1


def test_a_triple_term_that_was_not_announced_is_refused_by_name() -> None:
    """Also one in the first message, so that the options never depend on the data."""
    store = ox.Store()
    store.load(
        b'VERSION "1.2" <urn:s> <urn:p> <<( <urn:a> <urn:b> <urn:c> )>> .',
        format=ox.RdfFormat.TURTLE,
    )
    text = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    refused = "message 1: the stream's options allow no triple terms: .*<<"
    with pytest.raises(UnsupportedByFormat, match=refused) as raised:
        list(construct_messages(text, store).serialize("jelly"))
    assert "rdf_star" in (raised.value.hint or "")
    log = b"".join(
        construct_messages(text, store).serialize("jelly", options=JellyOptions(rdf_star=True))
    )
    assert len(list(read_log(log, "jelly"))) == 1
    with pytest.raises(UnsupportedByFormat, match="message 2"):
        written([ONE, TRIPLE_TERM])
    assert list(
        read_log(written([ONE, TRIPLE_TERM], options=JellyOptions(rdf_star=True)), "jelly")
    ) == [
        ONE,
        TRIPLE_TERM,
    ]


OPTIONS = [
    {"rdf_star": True},
    {"generalized_statements": True},
    {"max_name_table_size": 8},
    {"max_name_table_size": 4096, "max_prefix_table_size": 4096, "max_datatype_table_size": 4096},
    {"max_prefix_table_size": 0},
    {"max_prefix_table_size": 4},
    {"max_datatype_table_size": 0},
    {"stream_name": "companies"},
    {"version": 2},
    {"namespace_declarations": True},
    {"delimited": False},
    {"physical_type": PhysicalType.TRIPLES},
    {"physical_type": PhysicalType.GRAPHS},
    *({"logical_type": each} for each in LogicalType),
    {"physical_type": PhysicalType.GRAPHS, "logical_type": LogicalType.TIMESTAMPED_NAMED_GRAPHS},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_are_what_the_log_says(options: dict[str, Any]) -> None:
    """Issue 13, 10: by Python and by the command line, and pyjelly reads the log."""
    log = written([ONE], options=JellyOptions(**options), prefixes={"ex": "http://example.org/"})
    reader = read_log(log, "jelly")
    assert list(reader) == [ONE]
    found = reader.options
    assert found is not None
    assert {name: getattr(found, name) for name in options} == options
    assert JellyOptions.of(json.loads(json.dumps(found.as_dict()))) == found
    if "namespace_declarations" not in options:  # which pyjelly's compiled wheels cannot read
        assert [len(sink) for sink in parse_jelly_grouped(io.BytesIO(log))] == [1]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_on_the_command_line(
    options: dict[str, Any], here: Callable[..., Done], tmp_path: Path
) -> None:
    """Issue 13, 10."""
    texts = {
        name: value.name.lower() if hasattr(value, "name") else str(value)
        for name, value in options.items()
    }
    given = [
        part
        for name, value in texts.items()
        for part in ("--jelly", f"{name.replace('_', '-')}={value}")
    ]
    (tmp_path / "in.ttl").write_text("PREFIX ex: <http://example.org/> ex:s ex:p ex:o .")
    done = here("convert", str(tmp_path / "in.ttl"), str(tmp_path / "out.jelly"), *given)
    assert done.status == 0, done.errors
    shown = json.loads(here("inspect", str(tmp_path / "out.jelly"), "--json").log)["jelly"]
    assert {name: str(shown[name]).lower() for name in options} == {
        name: text.lower() for name, text in texts.items()
    }


QUOTED = triple(S, P, O)
STAR = [
    # RDF-star has quoted triples as subjects, and RDF 1.2 has not: they are read where that is asked for
    (Quad(QUOTED, P, O), {"rdf_star": True}, None),
    (Quad(S, QUOTED, O), {"rdf_star": True}, "no place for a triple term"),
    (Quad(literal("x"), P, O), {"rdf_star": True}, "no place for a literal"),
    (Quad(literal("x"), P, O), {"generalized_statements": True}, None),
    (Quad(QUOTED, QUOTED, O), {"rdf_star": True, "generalized_statements": True}, None),
    (Quad(QUOTED, P, O), {}, "cannot be the subject"),
    (Quad(literal("x"), P, O), {}, "cannot be the subject"),
]


@pytest.mark.parametrize(("quad", "options", "why"), STAR, ids=str)
def test_what_is_more_than_rdf(
    quad: Quad, options: dict[str, Any], why: str | None, tmp_path: Path
) -> None:
    log, path = [Message([quad])], tmp_path / "log.jelly"
    if why is not None:
        with pytest.raises((UnsupportedByFormat, TermError), match=why):
            written(log, options=JellyOptions(**options))
        return
    write_log(log, path, options=JellyOptions(**options))
    with pytest.raises(LogError, match="where RDF has no place for it") as raised:
        list(read_log(path))
    assert "--generalized" in str(raised.value.hint)
    again = read_log(path, generalized=True)
    # a Jelly log of such messages is one anew, and no other format can write them
    assert write_log(again, path.with_suffix(".again.jelly")) == 1
    assert list(read_log(path.with_suffix(".again.jelly"), generalized=True)) == log
    with pytest.raises(TermError, match="cannot be the"):
        write_log(read_log(path, generalized=True), tmp_path / "log.nq")


@pytest.mark.parametrize(
    "options",
    [{"generalized": True}, {"shared_labels": False}, {"keep_labels": True}],
    ids=lambda given: next(iter(given)),
)
def test_conformance_stands_for_three_options(options: dict[str, Any]) -> None:
    """Those that the cases of the Jelly project need together (test_suite.py)."""
    with pytest.raises(UsageError, match="includes generalized, shared_labels and keep_labels"):
        read_log(b"", "jelly", jelly_conformance=True, **options)


@pytest.mark.process
def test_conformance_on_the_command_line(tmp_path: Path) -> None:
    node = Quad(Term("_:b"), P, Term("_:b"))
    write_log([Message([node]), Message([node])], tmp_path / "log.jelly", options=JellyOptions())
    write_log(
        [Message([Quad(QUOTED, P, O)])],
        tmp_path / "quoted.jelly",
        options=JellyOptions(rdf_star=True, generalized_statements=True),
    )
    command = ["convert", "log.jelly", "-", "--format", "nq"]
    shared = run(*command, "--jelly-conformance", cwd=tmp_path).log
    assert shared == "# @message\n_:b <http://example.org/p> _:b .\n" * 2
    assert "_:b " not in run(*command, cwd=tmp_path).log
    assert run("validate", "quoted.jelly", "--jelly-conformance", cwd=tmp_path).status == 0
    refused = run(*command, "--jelly-conformance", "--labels-per", "log", cwd=tmp_path)
    assert refused.status == 2
    assert "leave --labels-per out" in refused.errors


# --- what cannot be -------------------------------------------------------------------------------------------------

WRONG = {
    "an option": (["rdfstar"], "unknown option 'rdfstar' of Jelly"),
    "a word": (["rdf-star=yes"], "rdf_star=yes is neither true nor false"),
    "a number": (["max-name-table-size=many"], "max_name_table_size=many is no number"),
    "no number": (["max-name-table-size"], "max_name_table_size=true is no number"),
    "a small table": (
        ["max-name-table-size=7"],
        "max_name_table_size=7, where Jelly has 8 and more",
    ),
    "a large table": (["max-prefix-table-size=5000"], "max_prefix_table_size=5000"),
    "a negative table": (["max-prefix-table-size=-1"], "max_prefix_table_size=-1"),
    "a table that pyjelly misreads": (
        ["max-prefix-table-size=3"],
        "a quad may need 4 prefixes at once, and pyjelly",
    ),
    "a type": (["logical-type=flat"], "logical_type=flat is unknown"),
    "types that contradict": (
        ["logical-type=graphs", "physical-type=quads"],
        "GRAPHS cannot have the physical type Q",
    ),
    "a version": (["version=3"], "version 3 of Jelly"),
    "a version without namespaces": (
        ["version=1", "namespace-declarations"],
        "version 1 .* has no namespace decl",
    ),
    "an option twice": (["rdf-star", "rdf-star=false"], "--jelly rdf-star is repeated"),
}


@pytest.mark.parametrize(("given", "why"), WRONG.values(), ids=WRONG.keys())
def test_options_that_make_no_sense(
    given: list[str], why: str, here: Callable[..., Done], tmp_path: Path
) -> None:
    (tmp_path / "in.nt").write_text("<urn:s> <urn:p> <urn:o> .")
    options = [part for each in given for part in ("--jelly", each)]
    done = here("convert", str(tmp_path / "in.nt"), str(tmp_path / "out.jelly"), *options)
    assert done.status == 2
    assert re.search(f"^error: .*{why}", done.errors), done.errors
    assert not (tmp_path / "out.jelly").exists()


def test_options_of_jelly_for_another_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="options of Jelly have no meaning for N-Quads"):
        write_log([ONE], tmp_path / "out.nq", options=JellyOptions())
    with pytest.raises(UsageError, match="options of Jelly have no meaning for TriG"):
        list(
            construct_messages("CONSTRUCT WHERE { ?s ?p ?o }", ox.Store()).serialize(
                "trig", options=JellyOptions()
            )
        )


@pytest.mark.parametrize(
    "options",
    [
        {"logical_type": "FLAT_QUADS"},
        {"max_name_table_size": "8"},
        {"rdf_star": 1},
        {"version": True},
    ],
    ids=str,
)
def test_values_of_other_types(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(options))}=.* is no "):
        JellyOptions(**options)


def test_what_is_not_delimited_is_one_message() -> None:
    single = JellyOptions(delimited=False)
    log = written([ONE], options=single)
    assert log[:1] == b"\x0a"
    assert list(read_log(log)) == [ONE]
    with pytest.raises(
        UnsupportedByFormat, match="message 2: a stream that is not delimited is a single frame"
    ):
        written([ONE, ONE], options=single)
    store = ox.Store()
    for name in "ab":
        store.add(ox.Quad(ox.NamedNode(f"urn:{name}"), ox.NamedNode("urn:p"), ox.Literal("x")))
    with pytest.raises(
        UnsupportedByFormat, match="message 2: a stream that is not delimited is a single frame"
    ):
        list(
            construct_messages("CONSTRUCT WHERE { ?s ?p ?o }", store).serialize(
                "jelly", options=single
            )
        )


# --- a log that is written anew -------------------------------------------------------------------------------------


@pytest.mark.parametrize("logical", LogicalType)
def test_a_jelly_log_keeps_its_types(logical: LogicalType) -> None:
    """Issue 13, 6 and 10: also whether its frames have a meaning, and the subtypes."""
    log = written([ONE, BLANK], options=JellyOptions(logical_type=logical, rdf_star=True))
    again = read_log(converted(log, "jelly"), "jelly")
    assert isomorphic(list(again), [ONE, BLANK])
    before = read_log(log, "jelly")
    list(before)
    assert before.options is not None
    assert again.options == before.options
    asked = announced(converted(log, "jelly", options=JellyOptions(rdf_star=False)))
    assert (asked.logical_type, asked.rdf_star) == (logical, False)


@pytest.mark.parametrize(
    ("source", "graphs", "logical"),
    [
        (LogicalType.FLAT_TRIPLES, True, LogicalType.FLAT_QUADS),
        (LogicalType.FLAT_QUADS, False, LogicalType.FLAT_TRIPLES),
        (LogicalType.SUBJECT_GRAPHS, True, LogicalType.DATASETS),
        (LogicalType.NAMED_GRAPHS, False, LogicalType.GRAPHS),
    ],
)
def test_types_follow_whether_there_are_graphs(
    source: LogicalType, graphs: bool, logical: LogicalType
) -> None:
    log = written([ONE], options=JellyOptions(logical_type=source))
    assert announced(converted(log, "jelly", graphs=graphs)).logical_type == logical


def test_triples_stay_triples_in_another_format() -> None:
    log = written([ONE], graphs=False)
    reader = read_log(log, "jelly")
    assert reader.names_graphs  # not told yet
    assert list(reader) == [ONE]
    assert not reader.names_graphs


# --- inspect --------------------------------------------------------------------------------------------------------


def test_inspect_shows_the_options(here: Callable[..., Done], tmp_path: Path) -> None:
    """Issue 13, 6."""
    options = JellyOptions(
        logical_type=LogicalType.FLAT_QUADS, rdf_star=True, max_name_table_size=128, stream_name="x"
    )
    write_log([ONE], tmp_path / "log.jelly", options=options)
    (line,) = [
        line
        for line in here("inspect", str(tmp_path / "log.jelly")).log.splitlines()
        if "stream " in line
    ]
    assert line.split(maxsplit=1)[1] == (
        "logical type FLAT_QUADS, physical type QUADS, version 1, tables of 128 names / 150 prefixes / 32 datatypes, "
        "rdf-star, name 'x'"
    )
    (tmp_path / "log.nq").write_text("<urn:s> <urn:p> <urn:o> .")
    assert "stream " not in here("inspect", str(tmp_path / "log.nq")).log
    assert json.loads(here("inspect", str(tmp_path / "log.nq"), "--json").log)["jelly"] is None
