"""Lines as quads: the compiled module, the regular expressions and pyoxigraph read the same, where they read any."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from construct_messages.errors import LimitExceeded, TermError
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.lines import decoder as lines_decoder
from construct_messages.logs.lines.decoder import LineParser, read_lines
from construct_messages.rdf import compiled
from construct_messages.rdf.formats import N_QUADS, N_TRIPLES, Format
from construct_messages.rdf.message import Quad, make_quads
from construct_messages.rdf.terms import RDF, XSD, Term, literal
from construct_messages.rdf.terms.libraries import rows_in
from tests.support.logs.lines import taken
from tests.support.places import shared_path

FORMATS = (N_TRIPLES, N_QUADS)
each_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)


def by_pyoxigraph(text: str, format: Format) -> list[Quad] | None:
    """The quads of one line; None where it is refused."""
    try:
        return list(
            to_message(ox.parse(text, format=ox.RdfFormat.from_extension(format.extension)))
        )
    except SyntaxError:
        return None


def agree(lines: list[str], format: Format) -> int:
    """Asserts that whatever was read of some lines is what pyoxigraph reads, and nothing lost; says how many were."""
    text = "".join(f"{line}\n" for line in lines)
    read = read_lines(text.encode(), graphs=format.graphs, triple_terms=True)
    found = taken(text, read)
    for line, quad in found:
        assert by_pyoxigraph(line, format) == [quad], line
        assert by_pyoxigraph(str(quad), format) == [quad], quad
        assert compiled.wire or line == str(quad), "Python only reads what is canonical"
    return len(found)


CANONICAL = [
    "<urn:a> <urn:p> <urn:b> .",
    "<http://example.org> <http://example.org/> <http://example.org:80/a?b/c?d#e/f?g> .",
    "<http://example.org:/é%C3%A9//~a!$&'()*+,;=:@-._> <a+b-c.d:> <mailto:a@b> .",
    "<a:/> <file:///a/b> <urn:\U00010000\ufdcf\uffef\ud7ff> .",
    "_:a <urn:p> _:B.0-_1 .",
    '<urn:a> <urn:p> "" .',
    r'<urn:a> <urn:p> "\t\b\n\r\f\"\\ \\\" é\\n" .',
    '<urn:a> <urn:p> "a <urn:b> . # @message"@en .',
    '<urn:a> <urn:p> "a\u2028\u0085\xa0\ufeff"@zh-hant-tw .',
    '<urn:a> <urn:p> "a"@es-419 .',
    f'<urn:a> <urn:p> "1"^^<{XSD}integer> .',
    f'<urn:a> <urn:p> "1"^^<{XSD}stringy> .',
    '<urn:a> <urn:p> "1"^^<http://example.org/\u00a0> .',
]
GRAPHS = [
    "<urn:a> <urn:p> <urn:b> <urn:g> .",
    "_:a <urn:p> _:b _:g .",
    '<urn:a> <urn:p> "a <b> _:c"@en <urn:g> .',
    f'<urn:a> <urn:p> "1"^^<{XSD}integer> _:g .',
]
# what the compiled module reads, and Python leaves
ODD = [
    "<urn:a>  <urn:p>\t<urn:b> \t.",
    "<urn:a><urn:p><urn:b>.",
    "\t<urn:a> <urn:p> <urn:b> .",
    "<urn:a> <urn:p> <urn:b> . \t",
    "<urn:a> <urn:p> <urn:b> . # c",
    "<urn:a> <urn:p> <urn:b>.#é \x01 <urn:a> .",
    "_:a<urn:p>_:b.",
    "_:a.b <urn:p> _:a.b.",
    r"<urn:\u0061\U000000e9> <urn:p> <urn:b> .",
    r'<urn:a> <urn:p> "\u0041\U0001F600\u0009\u0022" .',
    r'<urn:a> <urn:p> "\'\"\\u0041" .',
    '<urn:a> <urn:p> "\t" .',
    '<urn:a> <urn:p> "a"@EN .',
    '<urn:a> <urn:p> "a"@zh-Hant-TW.',
    f'<urn:a> <urn:p> "a"^^<{XSD}string> .',
    rf'<urn:a> <urn:p> "1"^^<{XSD}\u0073tring>.',
    r'<urn:a> <urn:p> "\\\""@EN.',
    "<urn:a> <urn:p> <<( <urn:a> <urn:p> <urn:b> )>> .",
    '<urn:a> <urn:p> <<(_:a<urn:p><<( _:b <urn:p> "\t"@EN)>>)>>.# c',
]
ODD_GRAPHS = [
    '<urn:a> <urn:p> "a"@EN<urn:g>.',
    "<urn:a> <urn:p> _:b\t_:g.",
    r"_:a <urn:p> <<( <urn:a> <urn:p> <urn:b> )>> <urn:\u0067> .",
]
LEFT = [
    *("", "# @message", "MESSAGE", "<urn:a>", "<urn:a> <urn:p> <urn:b>", "x"),
    "<urn:a> <urn:p> <urn:b> . # @message",
    "<urn:a> <urn:p> <urn:b> . <urn:a> <urn:p> <urn:b> .",
    "<urn:a> <urn:p> <urn:b> ..",
    "<urn:a> <urn:p> <urn:b> . # \x00",
    "<a> <urn:p> <urn:b> .",
    "<urn:a> _:p <urn:b> .",
    '"a" <urn:p> <urn:b> .',
    "<urn:%4> <urn:p> <urn:b> .",
    "<http://a:b/> <urn:p> <urn:b> .",
    "<http://a@b@c/> <urn:p> <urn:b> .",
    "<urn:a#b#c> <urn:p> <urn:b> .",
    "<urn:\ue000> <urn:p> <urn:b> .",
    r"<urn:\u0020> <urn:p> <urn:b> .",
    r"<urn:\u003E> <urn:p> <urn:b> .",
    r"<urn:\'> <urn:p> <urn:b> .",
    "<urn:\t> <urn:p> <urn:b> .",
    "_:· <urn:p> <urn:b> .",
    "_:a.é <urn:p> <urn:b> .",
    '<urn:a> <urn:p> "\x7f" .',
    '<urn:a> <urn:p> "\x00" .',
    r'<urn:a> <urn:p> "\uD800" .',
    r'<urn:a> <urn:p> "\u00g0" .',
    r'<urn:a> <urn:p> "a\" .',
    '<urn:a> <urn:p> "a"@en--ltr .',
    '<urn:a> <urn:p> "a" @en .',
    '<urn:a> <urn:p> "a"@abcdefghi .',
    f'<urn:a> <urn:p> "a"^^<{RDF}langString> .',
    f'<urn:a> <urn:p> "a"^^<{RDF}dirLangString> .',
    '<urn:a> <urn:p> "a"^^<a> .',
    '<urn:a> <urn:p> "a"^^<urn:"@en> .',
    r'<urn:a> <urn:p> "a"^^<urn:\u003e"@en> .',
    '<urn:a> <urn:p> <<( "a" <urn:p> <urn:b> )>> .',
    "<urn:a> <urn:p> <<( <urn:a> <urn:p> )>> .",
    "<urn:a> <urn:p> <<( <urn:a> <urn:p> <urn:b> ) >> .",
    "<<( <urn:a> <urn:p> <urn:b> )>> <urn:p> <urn:b> .",
    "<urn:a> <urn:p> <urn:b> <urn:g> <urn:h> .",
    '<urn:a> <urn:p> <urn:b> "g" .',
]


@each_format
def test_what_is_canonical(format: Format) -> None:
    assert agree(CANONICAL, format) == len(CANONICAL)
    assert agree(GRAPHS, format) == (len(GRAPHS) if format.graphs else 0)
    assert agree(LEFT, format) == 0
    assert agree([*CANONICAL, *LEFT], format) == len(CANONICAL), "a line does not hide another"


@each_format
def test_what_others_write(format: Format) -> None:
    assert agree(ODD, format) == (len(ODD) if compiled.wire else 0)
    assert agree(ODD_GRAPHS, format) == (len(ODD_GRAPHS) if compiled.wire and format.graphs else 0)
    mixed = [line for each in zip(ODD, LEFT, strict=False) for line in each]
    assert agree(mixed, format) == (len(ODD) if compiled.wire else 0)


@each_format
def test_what_is_canonical_is_the_form_that_is_written(format: Format) -> None:
    for line in CANONICAL + (GRAPHS if format.graphs else []):
        (quad,) = make_quads(rows_in(read_lines(f"{line}\n".encode(), graphs=format.graphs).terms))
        assert str(quad) == line


# --- mutations ------------------------------------------------------------------------------------------------------

# what means something somewhere, and the edges of the classes of characters
PIECES = [
    *"<>_:.\"\\@^#%/?[]{}|`()-+ '\t\r",
    *(
        "<<(",
        ")>>",
        "^^",
        "@",
        "@en",
        "--ltr",
        "\\u0041",
        "\\U0010FFFF",
        "\\uD800",
        "\\n",
        "\\'",
        "%4",
        "%41",
        "//",
        "[::1]",
    ),
    *(
        " .",
        " ",
        "# @message",
        "MESSAGE",
        "_:b",
        "<urn:x>",
        '"x"',
        "é",
        "·",
        "\u0300",
        "\u203f",
        "A",
        "0",
        "a",
        "-a-",
    ),
    *map(
        chr,
        (
            0,
            0x1F,
            0x7F,
            0x80,
            0x9F,
            0xA0,
            0xD7FF,
            0xE000,
            0xF8FF,
            0xF900,
            0xFDCF,
            0xFDD0,
            0xFDEF,
            0xFDF0,
            0xFEFF,
        ),
    ),
    *map(
        chr,
        (
            0xFFEF,
            0xFFF0,
            0xFFFD,
            0xFFFE,
            0xFFFF,
            0x10000,
            0x1FFFD,
            0x1FFFE,
            0x20000,
            0xE0000,
            0xE1000,
            0x10FFFD,
        ),
    ),
    *("\u2028", "\u0085", "\x0b", "\x0c", "\u00d7", "\u037e", "\u2190"),
]
SEEDS = [*CANONICAL, *GRAPHS, *ODD, *ODD_GRAPHS, *LEFT]


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A line near one of the seeds: pieces put in, taken out or exchanged."""
    line = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(line)))
        end = min(len(line), start + draw(st.sampled_from([0, 0, 1, 2, 8])))
        line = line[:start] + draw(st.sampled_from(PIECES)) + line[end:]
    return line


@each_format
@given(document=st.lists(lines(), min_size=1, max_size=6))
@example(document=["<urn:a", "<urn:a> <urn:p> <urn:b> ."])
@example(document=["<urn:a>", "<urn:b> <urn:p> <urn:b> ."])
@example(document=["<urn:a> <urn:p> _:b", "<urn:a> ."])
@example(document=["_:a", "_:b <urn:p> <urn:b> ."])
@example(document=["#\r<urn:a> <urn:p> <urn:b> .", "#<urn:a> <urn:p> <urn:b> ."])
@example(document=["<urn:a> <urn:p> <urn:b> _:g", "_:g ."])
def test_mutated_lines(format: Format, document: list[str]) -> None:
    event(f"read: {agree(document, format)} of {len(document)}")


SCHEME = st.sampled_from(["http:", "urn:", "a+b-c.0:", "a:", "0:", "é:", ":", "", "file:", "tag:"])
PART = st.lists(
    st.sampled_from(
        [
            *"a0-._~!$&'()*+,;=:@/?#%[]",
            "%41",
            "%é",
            "//",
            "//a",
            "//a:1",
            "//a:1/",
            "//[::1]",
            "é",
            *PIECES,
        ]
    ),
    max_size=5,
).map("".join)
TAGS = st.lists(
    st.sampled_from(
        ["en", "i", "x", "abc", "abcd", "abcde", "419", "1abc", "12345678", "EN", "a1", ""]
    ),
    max_size=4,
)


@each_format
@given(scheme=SCHEME, rest=PART, tag=TAGS.map("-".join), label=PART)
def test_terms(format: Format, scheme: str, rest: str, tag: str, label: str) -> None:
    iri = f"<{scheme}{rest}>"
    document = [
        f"{iri} <urn:p> <urn:b> .",
        f'<urn:a> {iri} "a"@{tag} .',
        f'<urn:a> <urn:p> "a"^^{iri} .',
        f"_:{label} <urn:p> _:{label} .",
    ]
    event(
        f"read: {agree([line for line in document if chr(10) not in line], format)} of {len(document)}"
    )


@pytest.mark.suite
@pytest.mark.parametrize(
    "suite",
    ["rdf11/rdf-n-triples", "rdf11/rdf-n-quads", "rdf12/rdf-n-triples", "rdf12/rdf-n-quads"],
)
def test_lines_of_the_suites(suite: str) -> None:
    format = N_QUADS if "quads" in suite else N_TRIPLES
    read = total = 0
    for path in sorted(shared_path(f"suites/w3c/rdf/{suite}").rglob(f"*.{format.extension}")):
        document = (
            path.read_text(encoding="utf-8").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        )
        read += agree(document, format)
        total += sum(1 for line in document if by_pyoxigraph(line, format))
    assert read >= total * (0.8 if compiled.wire else 0.2), (
        f"{read} of {total} statements are usual"
    )


# --- long lines -----------------------------------------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a line of some tens of characters be a very long one."""
    monkeypatch.setattr(lines_decoder, "_LONG", 90)


LONG = "é" * 100


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("object", "expected"),
    [
        (f'"{LONG}"', literal(LONG)),
        (rf'"\u0041{LONG}\"\'\\"@EN', literal(f"A{LONG}\"'\\", language="en")),
        (f'"0{LONG}"^^<{XSD}string>', literal(f"0{LONG}")),
        (
            f'<<(_:0 <urn:p>"0{LONG}\t"@en--ltr)>>',
            Term(f'<<( _:0 <urn:p> "0{LONG}\\t"@en--ltr )>>'),
        ),
    ],
    ids=["plain", "escapes", "datatype", "triple term"],
)
def test_a_very_long_string(object: str, expected: Term) -> None:
    (quad,) = LineParser(N_QUADS).parse(f'<urn:a> <urn:p> {object} <urn:g> . # "1"')
    assert quad == (Term("<urn:a>"), Term("<urn:p>"), expected, Term("<urn:g>"))


@pytest.mark.usefixtures("short")
def test_errors_in_very_long_lines() -> None:
    parser = LineParser(N_TRIPLES)
    with pytest.raises(SyntaxError, match="must be an IRI") as error:
        parser.parse(f'<urn:a> "{LONG}" <urn:b> .')
    assert (error.value.lineno, error.value.offset) == (1, 1)
    with pytest.raises(TermError, match=r"\\uD800 is not a character"):
        parser.parse(rf'<urn:a> <urn:p> "{LONG}\uD800" .')
    for line in (rf'<urn:a> <urn:p> "{LONG}\x" .', f"<urn:a> <urn:p> <urn:{LONG}> ."):
        with pytest.raises(LimitExceeded, match="outside of its strings"):
            parser.parse(line)


def test_a_string_that_the_parser_could_not_hold() -> None:
    text = "x" * (1 << 24)
    (quad,) = LineParser(N_TRIPLES).parse(f'<urn:a> <urn:p> "\\u0041{text}" .')
    assert quad.object == f'"A{text}"'
