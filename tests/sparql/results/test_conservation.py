"""Every solution of a document arrives, however long its tokens are: as other programs read the same bytes.

The tokens are longer than what a decoder or a client holds at once, and no piece of a document is as long as one.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from typing import Final

import pytest

from construct_messages.errors import IncompleteResult
from construct_messages.sparql.results import NewDecoder
from construct_messages.sparql.results.json import JsonDecoder
from construct_messages.sparql.results.tsv import TsvDecoder
from construct_messages.sparql.results.xml import XmlDecoder
from construct_messages.sparql.sources.http.response import ResponseReader
from tests.support.http.fault_server import JSON, TSV, XML
from tests.support.results.reading import Table, by_oxigraph, by_rdflib, decode, in_pieces

VARIABLES: Final = ("s", "o")
DECODERS: Final[dict[str, NewDecoder]] = {"json": JsonDecoder, "xml": XmlDecoder, "tsv": TsvDecoder}
MEDIA_TYPES: Final = {"json": JSON, "xml": XML, "tsv": TSV}
ROWS: Final = 200
LONG: Final = 60_000

_XML_ROW: Final = (
    '<result><binding name="s"><uri>urn:%d</uri></binding><binding name="o">%s</binding></result>'
)
_JSON_ROW: Final = '{"s":{"type":"uri","value":"urn:%d"},"o":%s}'


def xml(
    between: str = "", *, term: str = "<uri>urn:x</uri>", root: str = "", head: str = ""
) -> bytes:
    """A document with a term in the middle, and something before that solution, on the root, or in the head."""
    rows = [_XML_ROW % (number, "<literal>a &amp; b</literal>") for number in range(ROWS)]
    rows.insert(ROWS // 2, between + _XML_ROW % (ROWS, term))
    begin = f'<sparql xmlns="http://www.w3.org/2005/sparql-results#"{root}>'
    head = f'<head><variable name="s"/><variable name="o"/>{head}</head>'
    return f"{begin}{head}<results>{''.join(rows)}</results></sparql>".encode()


def json(
    between: str = "", *, term: str = '{"type":"uri","value":"urn:x"}', head: str = ""
) -> bytes:
    """The same of JSON."""
    rows = [_JSON_ROW % (number, literal("a")) for number in range(ROWS)]
    rows.insert(ROWS // 2, between + _JSON_ROW % (ROWS, term))
    return f'{{"head":{{"vars":["s","o"]{head}}},"results":{{"bindings":[{",".join(rows)}]}}}}'.encode()


def literal(text: str, *, before: str = "") -> str:
    """A literal of JSON."""
    return f'{{"type":"literal",{before}"value":"{text}"}}'


def tsv(term: str, *, end: str = "\n") -> bytes:
    """The same of TSV."""
    rows = [f'<urn:{number}>\t"a"' for number in range(ROWS)]
    rows.insert(ROWS // 2, f"<urn:{ROWS}>\t{term}")
    return "".join(f"{row}{end}" for row in ("?s\t?o", *rows)).encode()


# by the number of characters of the token
DOCUMENTS: Final[dict[str, Callable[[int], bytes]]] = {
    "XML: a comment": lambda n: xml("<!--" + n * "x" + "-->"),
    "XML: a comment of tags": lambda n: xml("<!--" + n // 17 * "<result></result>" + "-->"),
    "XML: comments": lambda n: xml(4 * ("<!--" + n // 4 * "x" + "-->")),
    "XML: a comment in the head": lambda n: xml(head="<!--" + n * "x" + "-->"),
    "XML: a processing instruction": lambda n: xml("<?x " + n // 2 * "y " + "?>"),
    "XML: an attribute of the root": lambda n: xml(root=' about="' + n // 2 * "x>" + '"'),
    "XML: a namespace": lambda n: xml(root=' xmlns:x="urn:' + n * "x" + '"'),
    "XML: a link": lambda n: xml(head='<link href="urn:' + n * "x" + '"/>'),
    "XML: white space in a tag": lambda n: xml(
        term="<uri" + n * " " + ">urn:x</uri" + n * " " + ">"
    ),
    "XML: white space between tags": lambda n: xml(n * "\n"),
    "XML: a reference to a character": lambda n: xml(
        term="<literal>&#" + n * "0" + "65;</literal>"
    ),
    "XML: references": lambda n: xml(term="<literal>" + n // 13 * "&#x1F600;&lt;" + "</literal>"),
    "XML: a datatype": lambda n: xml(term='<literal datatype="urn:' + n * "d" + '">x</literal>'),
    "XML: an IRI": lambda n: xml(term="<uri>urn:" + n * "i" + "</uri>"),
    "XML: a text": lambda n: xml(term="<literal>" + n * "é" + "</literal>"),
    "XML: CDATA": lambda n: xml(term="<literal><![CDATA[" + n // 4 * "<a>]" + "]]></literal>"),
    "JSON: a text": lambda n: json(term=literal(n * "é")),
    "JSON: a text like solutions": lambda n: json(term=literal(n // 3 * "},{")),
    "JSON: escapes": lambda n: json(term=literal(n // 8 * r"\u0041\"")),
    "JSON: an IRI": lambda n: json(term='{"type":"uri","value":"urn:' + n * "i" + '"}'),
    "JSON: a datatype": lambda n: json(
        term=literal("x", before='"datatype":"urn:' + n * "d" + '",')
    ),
    "JSON: white space between solutions": lambda n: json(n * "\n"),
    "JSON: white space in a solution": lambda n: json(term=literal("x", before=n * " ")),
    "JSON: a link": lambda n: json(head=',"link":["urn:' + n * "x" + '"]'),
    "JSON: links": lambda n: json(head=',"link":["urn:x"' + n // 8 * ',"urn:x"' + "]"),
    "TSV: a text": lambda n: tsv('"' + n * "é" + '"'),
    "TSV: escapes": lambda n: tsv('"' + n // 8 * r"\t\n\"\\" + '"'),
    "TSV: an IRI": lambda n: tsv("<urn:" + n * "i" + ">"),
    "TSV: a datatype": lambda n: tsv('"x"^^<urn:' + n * "d" + ">"),
    "TSV: a number": lambda n: tsv(n * "1"),
    "TSV: a text, in lines that end in CR LF": lambda n: tsv('"' + n * "x" + '"', end="\r\n"),
}
# what other programs do not read, or only slowly
_NOT_BY_RDFLIB: Final = ("TSV",)
_NOT_BY_OXIGRAPH: Final = ("XML: a reference to a character", "XML: CDATA")


def others(name: str, format: str, document: bytes) -> list[Table]:
    """The solutions as every other program reads them that can."""
    tables = []
    if not name.startswith(_NOT_BY_RDFLIB):
        tables.append(by_rdflib(format, document, VARIABLES))
    if not name.startswith(_NOT_BY_OXIGRAPH):
        tables.append(by_oxigraph(format, document, VARIABLES))
    return tables


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_solution_arrives(name: str) -> None:
    """Issue 26, 1."""
    format, document = format_of(name), DOCUMENTS[name](LONG)
    expected = [Counter(table) for table in others(name, format, document)]
    assert expected
    for size in (None, 1, 16_384):
        came = Counter(decode(DECODERS[format](VARIABLES), in_pieces(document, size)))
        assert len(came) == ROWS + 1, size
        assert all(came == table for table in expected), size


@pytest.mark.slow
@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize(
    "name", [name for name in DOCUMENTS if "link" not in name or name.startswith("XML")]
)
def test_every_solution_of_a_response_arrives(name: str, coding: str) -> None:
    """Issue 26, 1: tokens longer than what the clients feed at once, 1 MiB and for asyncio 16 KiB."""
    format, body = format_of(name), DOCUMENTS[name](1_500_000)
    expected = Counter(decode(DECODERS[format](VARIABLES), [body]))
    assert len(expected) == ROWS + 1
    sent = gzip.compress(body) if coding == "gzip" else body
    headers = {
        "content-type": MEDIA_TYPES[format],
        "content-encoding": coding,
        "content-length": str(len(sent)),
    }
    for chunk, work in ((1 << 16, 1 << 20), (1460, 1 << 14)):
        reader = ResponseReader(
            200, lambda name: headers.get(name.lower()), VARIABLES, asked=("tsv",), url="u"
        )
        came: Counter[tuple[str, ...]] = Counter()
        for part in in_pieces(sent, chunk):
            for piece in reader.pieces(part, work):
                for batch in reader.feed(piece):
                    came.update(batch)
        for batch in reader.rest():
            came.update(batch)
        reader.close()
        assert came == expected
        assert reader.count == came.total()


def format_of(name: str) -> str:
    return name.partition(":")[0].lower()


@pytest.mark.parametrize("name", ["JSON: a link", "JSON: links"])
@pytest.mark.parametrize("size", [None, 65_536])
def test_too_much_around_the_solutions_is_an_error(name: str, size: int | None) -> None:
    """The one limit of a decoder."""
    with pytest.raises(IncompleteResult, match="more than 1048576 bytes around its solutions"):
        decode(JsonDecoder(VARIABLES), in_pieces(DOCUMENTS[name](1_500_000), size))
