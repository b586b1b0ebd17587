"""Lines of N-Triples and N-Quads as Python workers read them: what pyoxigraph reads, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from construct_messages.errors import QuadsError, TermError
from construct_messages.rdf import compiled
from construct_messages.rdf.labels import of_file
from construct_messages.rdf.terms import Lenience, from_pyoxigraph, parse_term
from construct_messages.spark.quads.checking import malformed_terms

pytest.importorskip("pyspark")
pa = pytest.importorskip("pyarrow")
documents = pytest.importorskip("construct_messages.spark.quads.documents")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

Statement: TypeAlias = tuple[str, str, str, str | None]
XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
RDF_LANG = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def by_pyoxigraph(
    line: bytes, *, graphs: bool, lenience: Lenience | None = None
) -> Statement | str | None:
    """The statement of a line, `"malformed"`, or None where there is no statement."""
    format = ox.RdfFormat.N_QUADS if graphs else ox.RdfFormat.N_TRIPLES
    try:
        read = list(ox.parse(line, format, lenient=lenience is not None))
        if not read:
            return None
        (quad,) = read
        *terms, graph = (quad.subject, quad.predicate, quad.object, quad.graph_name)
        subject, predicate, object = (from_pyoxigraph(term, lenience=lenience) for term in terms)
        name = (
            None
            if isinstance(graph, ox.DefaultGraph)
            else from_pyoxigraph(graph, lenience=lenience)
        )
    except (SyntaxError, TermError):
        return "malformed"
    return subject, predicate, object, name


FILE = "file:///dump.nq"


def by_worker(
    batch: list[bytes], *, graphs: bool = True, scoped: bool = False, lenient: bool = False
) -> list[Statement | str | None]:
    """What the function of workers gives for each line; labels of blank nodes have no scope if not `scoped`.

    All lines at once give the same, and the same lines are malformed.
    """
    found = [_by_worker([line], graphs, lenient) for line in batch]
    malformed, statements = _at_once(batch, graphs, lenient)
    assert malformed == [n for n, each in enumerate(found) if each == "malformed"]
    assert statements == Counter(each for each in found if isinstance(each, tuple))
    return found if scoped else [_unscoped(each) for each in found]


def _by_worker(line: list[bytes], graphs: bool, lenient: bool) -> Statement | str | None:
    read = documents.lines(graphs, strict=True, lenient=lenient)
    try:
        rows = [
            tuple(row.values()) for each in read(iter([_batch(line)])) for row in each.to_pylist()
        ]
    except QuadsError:
        return "malformed"
    return rows[0] if rows else None


def _at_once(
    batch: list[bytes], graphs: bool, lenient: bool
) -> tuple[list[int], Counter[Statement]]:
    """The indexes of the malformed lines, and the statements of the others."""
    lines = _batch(batch)
    read = documents.lines(graphs, strict=False, lenient=lenient)
    statements = [tuple(row.values()) for each in read(iter([lines])) for row in each.to_pylist()]
    lines = lines.append_column("line", pa.array(range(len(batch)), pa.int64()))
    failed = documents.reasons(graphs, lenient)(iter([lines]))
    return sorted(row["line"] for each in failed for row in each.to_pylist()), Counter(statements)


def _batch(lines: list[bytes]) -> pa.RecordBatch:
    columns = [pa.array([FILE] * len(lines)), pa.array(lines, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["file", "text"])


def _unscoped(found: Statement | str | None) -> Statement | str | None:
    if not isinstance(found, tuple):
        return found
    subject, predicate, object, graph = (
        term and term.replace(f"_:{of_file(FILE)}", "_:") for term in found
    )
    assert subject
    assert predicate
    assert object
    return subject, predicate, object, graph


OBJECTS = [
    *(
        "<u:o>",
        "<rel>",
        "<>",
        "<u:%zz>",
        "<u:%41>",
        "<u:a|b>",
        "<u:a b>",
        "<u:\\u00e9>",
        "<u:\\u0020>",
        "<U:s>",
        "<1:s>",
    ),
    *(
        "<u:\ue000>",
        "<u:?\ue000>",
        "<u:\ufdd0>",
        "<u:\U0001f600>",
        "<u:\\U0001F600>",
        "<u:é?è#à>",
        "<u:\uf900>",
    ),
    *(
        "<u:\\u0041%\\u0034\\u0031>",
        "<:a>",
        "<http:>",
        "<http:///>",
        "<http://a>",
        "<http://a:/>",
        "<http://a:80/x>",
    ),
    *(
        "<http://a:b:c/>",
        "<http://a@b@c/>",
        "<http://u:p@h:1/>",
        "<http://a:80a/>",
        "<http://a/?q#f>",
        "<http://a/#f#g>",
    ),
    *(
        "<http://[::1]/>",
        "<http://[1:2:3:4:5:6:7:8]:80/>",
        "<http://[1::8]/>",
        "<http://[::1.2.3.4]/>",
        "<http://[v1.a:b]/>",
    ),
    *(
        "<http://[::1.2.3.04]/>",
        "<http://[::g]/>",
        "<http://[1:2:3:4:5:6:7::]/>",
        "<http://a/[b]>",
        "<u://a/%e9>",
    ),
    *(
        "_:a",
        "_:a.b",
        "_:a.",
        "_:a. ",
        "_:a.-b",
        "_:-a",
        "_:a:b",
        "_:é·1",
        "_:_",
        "_:a..b",
        "_:0",
        "_:b_:c",
    ),
    *(
        '"a"',
        '""',
        '"a',
        "'a'",
        '"""a"""',
        '"a\\"b \\\\"',
        '"a\\\'b"',
        '"\\a"',
        '"a\x00\x01\x7f\tb"',
        '"\\u0000\\u007f"',
        '"\ufffe\uffff\U0001fffe"',
        '"\\ufffe\\uFFFF"',
    ),
    *(
        '"\\u0041\\U0001F600"',
        '"\\uD83D\\uDE00"',
        '"\\uD800"',
        '"\\U0000D800"',
        '"\\U00110000"',
        '"\\U0010FFFF"',
    ),
    *(
        '"\\u0022\\u005Cn\\u000A"',
        '"\\\\u0041"',
        '"\\uFEFF\\U0000FEFF"',
        '"\u0085\u2028"',
        '"\ufffd"',
        '"é 日本 😀"',
    ),
    *(
        '"a"@en',
        '"a"@EN-gb',
        '"a" @en',
        '"a"@ en',
        '"a"@en--ltr',
        '"a"@en--LTR',
        '"a"@en-US--rtl',
        '"a"@en--lt',
    ),
    *(
        '"a"@cantbethislong',
        '"a"@zh-classical',
        '"a"@en-a',
        '"a"@x-foo',
        '"a"@i-klingon',
        '"a"@e',
        '"a"@a-DE',
        '"a"@x',
    ),
    *(
        '"a"@abcd-abc',
        '"a"@zh-min-nan',
        '"a"@EN-GB-OED',
        '"a"@de-CH-1901',
        '"a"@sl-rozaj-biske',
        '"a"@de-419-DE',
    ),
    *(
        '"a"@en-a-bbb-x-a-ccc',
        '"a"@en-x',
        '"a"@zh-gan-hak-Hans-CN',
        '"a"@be-x-old',
        '"a"@en^^<u:d>',
        '"a"@art-lojban',
    ),
    *(
        '"a"^^<u:d>',
        '"a" ^^ <u:d>',
        '"a"^^<rel>',
        '"a"^^"b"',
        '"a"^^_:b',
        f'"a"^^<{XSD_STRING}>',
        '"a"^^<u:\\u0064>',
    ),
    *(
        f'"a"^^<{XSD_STRING[:-1]}\\u0067>',
        f'"a"^^<{RDF_LANG}langString>',
        f'"a"^^<{RDF_LANG}dirLangString>',
    ),
    *(
        '<<( <u:a> <u:b> <<( _:x <u:q> "Z )>>"@EN )>> )>>',
        '<<(<u:a><u:b>"c")>>',
        "<< <u:a> <u:b> <u:c> >>",
    ),
    *(
        '<<( <u:a> "b" <u:c> )>>',
        '<<( "a" <u:b> <u:c> )>>',
        "<<( <u:a> <u:b> )>>",
        "<<( <u:a> <u:b> <u:c> <u:d> )>>",
    ),
    *(
        "1",
        "true",
        "[]",
        "()",
        "u:o",
        "<u:o> {| <u:a> <u:b> |}",
        "<u:o> ~ _:r",
        "<u:o> , <u:p>",
        '"a b _:c <u:d> ."',
    ),
]
LINES = [
    *("<u:s> <u:p> <u:o> . # <u:x> _:y .", "_:s <u:p> <u:o> .# . #"),
    *(
        "",
        " \t",
        "#",
        " # <u:s> <u:p> <u:o> .",
        "#\x00",
        "\x0b",
        "\x0c",
        "\u00a0",
        ".",
        "<u:s> <u:p> <u:o> .\x00",
    ),
    *(
        "<u:s> <u:p> <u:o> .# c",
        "<u:s> <u:p> <u:o> . # <u:x> _:y .",
        "<u:s> <u:p> <u:o> # c",
        "<u:s> <u:p> <u:o>",
        "<u:s> <u:p> <u:o> ..",
        "<u:s> <u:p> .",
    ),
    *(
        "<u:s><u:p><u:o>.",
        '<u:s><u:p>"a"@en<u:g>.',
        '<u:s> <u:p> "a"^^<u:d><u:g>.',
        "_:a<u:p>_:b.",
        "\t<u:s>\t<u:p>\t<u:o>\t.",
    ),
    *(
        "<u:s> <u:p> <u:o> . <u:s> <u:p> <u:o2> .",
        "a <u:p> <u:o> .",
        '"s" <u:p> <u:o> .',
        "<u:s> _:p <u:o> .",
    ),
    *(
        "<u:s> <u:p> <u:o> <u:g> <u:h> .",
        '<u:s> <u:p> <u:o> "g" .',
        "<<( <u:a> <u:b> <u:c> )>> <u:p> <u:o> .",
    ),
    *(
        "<u:s> <u:p> <u:o> <<( <u:a> <u:b> <u:c> )>> .",
        "@prefix a: <u:x> .",
        "BASE <u:x>",
        "MESSAGE",
        'version "1.2"',
    ),
    *(
        "<u:s> <u:p> <u:o> <u:g> .",
        '_:a <u:p> "x y"@en _:g .',
        "_:a <u:p> <<( _:a <u:p> _:b )>> _:g .",
        "<u:g> {<u:s> <u:p> <u:o>}",
    ),
]
CASES = [
    *(line.encode() for line in LINES),
    *(f"<u:s> <u:p> {object} .".encode() for object in OBJECTS),
    *(f"_:s <u:p> {object} <u:g> .".encode() for object in OBJECTS),
    *(
        b'<u:s> <u:p> "\xff" .',
        b"<u:s> <u:p> <u:\xff> .",
        b"# \xff",
        b'<u:s> <u:p> "\xed\xa0\x80" .',
        b"<u:s> <u:p> _:\xc3 .",
    ),
]


@pytest.mark.parametrize("pure", [False, True], ids=["compiled", "pure"])
@pytest.mark.parametrize("graphs", [True, False], ids=["nq", "nt"])
def test_lines_are_read_as_pyoxigraph_reads_them(
    graphs: bool, pure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if pure:
        monkeypatch.setattr(compiled, "wire", None)
    found = by_worker(CASES, graphs=graphs)
    expected = [by_pyoxigraph(line, graphs=graphs) for line in CASES]
    wrong = [case for case in zip(CASES, found, expected, strict=True) if case[1] != case[2]]
    assert not wrong
    assert sum(isinstance(each, tuple) for each in found) > 50
    assert found.count("malformed") > 50


def test_versions_are_no_statements() -> None:
    versions = [
        b'VERSION "1.2"',
        b"  VERSION '1.2' # now",
        b'VERSION "1.2" .',
        b"VERSION 1.2",
        b'VERSION """1.2"""',
    ]
    assert by_worker(versions) == [None, None, "malformed", "malformed", "malformed"]


def test_blank_nodes_are_scoped_once() -> None:
    scope = of_file(FILE)
    batch = [
        b"_:a <u:p> _:b _:g .",
        b"_:a  <u:p> <<( _:b <u:p> <<( <u:s> <u:p> _:c )>> )>> _:g .",
        b'<u:s> <u:p> "_:a" .',
    ]
    assert by_worker(batch, scoped=True) == [
        (f"_:{scope}a", "<u:p>", f"_:{scope}b", f"_:{scope}g"),
        (
            f"_:{scope}a",
            "<u:p>",
            f"<<( _:{scope}b <u:p> <<( <u:s> <u:p> _:{scope}c )>> )>>",
            f"_:{scope}g",
        ),
        ("<u:s>", "<u:p>", '"_:a"', None),
    ]


def test_what_was_read_before_changes_nothing() -> None:
    """The compiled module keeps terms: those of the next line may only begin or end like them."""
    long = "http://e.x/" + "a" * 300
    subjects = [
        "<http://e.x/a>",
        "<http://e.x/ab>",
        "<http://e.x/a",
        "_:a",
        "_:ab",
        f"<{long}>",
        "<u:a>",
        "<u:a>x",
    ]
    predicates = [
        f"<{XSD_STRING}>",
        "<http://e.x/p>",
        f"<{long}>",
        "<u:p>",
        "<http://e.x/p",
        "http://e.x/p>",
    ]
    objects = [
        f'"a"^^<{XSD_STRING}>',
        '"a"^^<http://e.x/p>',
        '"a"^^<u:p>',
        f'"a"^^<{long}>',
        '"a"^^<http://e.x/p> ',
    ]
    batch = [
        f"{subject} {predicate} {object} .".encode()
        for predicate in predicates
        for object in objects
        for subject in subjects
        for _ in range(2)
    ]
    expected = [by_pyoxigraph(line, graphs=True) for line in batch]
    assert by_worker(batch) == expected
    assert expected.count("malformed") < len(batch) * 2 / 3


def test_blank_nodes_of_two_files_stay_apart_line_by_line() -> None:
    files = [f"file:///{name}.nq" for name in ("a", "b", "b", "a", "ab", "a")]
    for line in (b"_:x <u:p> _:x .", b"_:x <u:p> _:x.# not canonical"):
        batch = pa.RecordBatch.from_pydict({"file": files, "text": [line] * len(files)})
        read = documents.lines(True, strict=True, named=True)(iter([batch]))
        found = [(row["object"], row["file"]) for each in read for row in each.to_pylist()]
        assert found == [(f"_:{of_file(file)}x", file) for file in files]


def test_a_batch_of_more_bytes_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_MOST_BYTES", 100)
    bad = {7, 8, 31}
    lines = [b"bad" if n in bad else b'<u:s> <u:p> "%d" .' % n for n in range(40)]
    malformed, statements = _at_once(lines, False, False)
    assert malformed == sorted(bad)
    assert {each[2] for each in statements} == {f'"{n}"' for n in range(40) if n not in bad}


def test_long_lines_overflow_no_stack() -> None:
    long = 100_000
    texts = ["x" * long, '\\"' * long, "é" * long, "\\u00e9" * long, "\t" * long, "\\u00e9é" * long]
    batch = [f'<u:s> <u:p> "{text}" .'.encode() for text in texts]
    batch += [
        f"<http://h/{'%41' * long}> <u:p> <u:{'é/' * long}> .".encode(),
        b"<u:s> <u:p> <u:o> . #" + b"c" * long,
    ]
    batch += [
        f'<u:s> <u:p> "{"x" * long} .'.encode(),
        f"<u:s> <u:p> _:{'a.' * long} .".encode(),
        b"<" * long,
        b'"' * long,
    ]
    for found, line in zip(by_worker(batch), batch, strict=True):
        assert found == by_pyoxigraph(line, graphs=True)


# --- any line ---------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *OBJECTS,
        "<u:s>",
        "<u:p>",
        "<http://e.x/a>",
        " ",
        "  ",
        "\t",
        ".",
        " .",
        "#",
        "<<(",
        ")>>",
        '"',
        "<",
        ">",
        "\\",
        "@en",
        "^^",
    ]
)
PLAIN = st.tuples(
    *[st.sampled_from(["<u:s>", "_:b", "<http://e.x/ä#f>"])] * 2, st.sampled_from(OBJECTS)
).map(lambda terms: f"{terms[0]} {terms[1]} {terms[2]} .")
TEXT = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=8)
LITERAL = st.builds('<u:s> <u:p> "{}" .'.format, TEXT)
IRI = st.builds(
    "<u:s> <u:p> <{}:{}> .".format, st.sampled_from(["u", "http", "http://h", "u://"]), TEXT
)
TAG = st.builds(
    '<u:s> <u:p> "a"@{} .'.format,
    st.lists(st.text("aAxX19", min_size=1, max_size=9), max_size=5).map("-".join),
)
BATCHES = st.lists(
    st.lists(PIECES, max_size=7).map("".join) | PLAIN | LITERAL | IRI | TAG,
    min_size=100,
    max_size=300,
)


def _mutated(line: str, chance: random.Random) -> str:
    """A line with one character less, twice, or another; half of the lines as they are."""
    if not line or chance.random() < 0.5:
        return line
    place = chance.randrange(len(line))
    return (
        line[:place] + chance.choice(["", line[place] * 2, *'"<>\\._:@^ a1%']) + line[place + 1 :]
    )


@pytest.mark.parametrize("graphs", [False, True], ids=["N-Triples", "N-Quads"])
def test_lenient_lines(spark: SparkSession, graphs: bool) -> None:
    """Issue 13, 9: malformed IRIs and language tags are passed and counted, as elsewhere, and nothing else is."""
    # where pyoxigraph is lenient, two escaped surrogates are a character to it
    cases = [line for line in CASES if b"\\uD83D" not in line]
    found = by_worker(cases, graphs=graphs, lenient=True)
    for line, statement in zip(cases, found, strict=True):
        lenience = Lenience(mends=False)
        assert (line, statement) == (line, by_pyoxigraph(line, graphs=graphs, lenience=lenience))
    terms = [
        term for statement in found if isinstance(statement, tuple) for term in statement if term
    ]
    lenience = Lenience(mends=False)
    for term in terms:
        parse_term(term, lenience=lenience)
    quads = [("_:s", "<urn:p>", term, None) for term in terms]
    frame = spark.createDataFrame(
        quads, "subject string, predicate string, object string, graph string"
    )
    assert malformed_terms(frame) == lenience.passed > 10


@settings(max_examples=6, suppress_health_check=[HealthCheck.data_too_large])
@given(batch=BATCHES, chance=st.randoms(use_true_random=False))
def test_any_line_is_read_as_pyoxigraph_reads_it(batch: list[str], chance: random.Random) -> None:
    encoded = [_mutated(line, chance).encode() for line in batch]
    # two noncharacters are written by pyoxigraph as escapes and by `terms.py` as they are
    encoded = [
        line for line in encoded if b"\xef\xbf\xbe" not in line and b"\xef\xbf\xbf" not in line
    ]
    for found, line in zip(by_worker(encoded), encoded, strict=True):
        assert (line, found) == (line, by_pyoxigraph(line, graphs=True))
