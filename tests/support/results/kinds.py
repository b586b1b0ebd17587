"""Results documents of any size: ordinary ones, and such as hostile or broken endpoints could send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple


class Results(NamedTuple):
    """A results document, or the beginning of one, and the variables that were asked for."""

    format: str
    document: bytes
    variables: tuple[str, ...] = ("s",)


_JSON: Final = b'{"head":{"vars":["s","y"]},"results":{"bindings":['
_XML: Final = b'<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="s"/></head><results>'


def _json(
    unit: bytes, *, before: bytes = _JSON, behind: bytes = b"{}]}}"
) -> Callable[[int], Results]:
    return lambda size: Results("json", before + unit * (size // len(unit)) + behind)


def _xml(
    unit: bytes, *, before: bytes = _XML, behind: bytes = b"</results></sparql>"
) -> Callable[[int], Results]:
    return lambda size: Results("xml", before + unit * (size // len(unit)) + behind)


def _tsv(unit: bytes, *, before: bytes = b"?s\n", behind: bytes = b"") -> Callable[[int], Results]:
    return lambda size: Results("tsv", before + unit * (size // len(unit)) + behind)


def _names(size: int) -> list[bytes]:
    return [b"v%d" % number for number in range(size // 20)]


def _wide(size: int) -> Results:
    """Few solutions for many variables, not one of which was asked for."""
    names = _names(min(size, 1 << 13))
    head = b'{"head":{"vars":["s",%b]},"results":{"bindings":[' % b",".join(
        b'"%b"' % name for name in names
    )
    solution = b"{%b}," % b",".join(b'"%b":{"type":"uri","value":"a:"}' % name for name in names)
    return Results("json", head + solution * (size // len(solution) + 1) + b"{}]}}")


def _literal(text: bytes) -> dict[str, bytes]:
    return {"before": _JSON + b'{"s":{"type":"literal","value":"' + text, "behind": b'"}}]}}'}


KINDS: Final[Mapping[str, Callable[[int], Results]]] = {
    "JSON: solutions": _json(
        b'{"s":{"type":"uri","value":"http://example.org/"},"y":{"type":"bnode","value":"b"}},'
    ),
    "JSON: solutions, indented": _json(
        b'  {\n    "s" : {\n "type":\t"literal", "value" : "a"\n }\n  }  ,\n'
    ),
    "JSON: empty solutions": _json(b"{},"),
    "JSON: solutions without an end": _json(b'{"s":{"type":"literal","value":"},{"}},', behind=b""),
    "JSON: a long text": _json(b"a", **_literal(b"")),
    "JSON: a text like solutions": _json(b"},{", **_literal(b"")),
    "JSON: a text of quotation marks": _json(rb"\"}, {", **_literal(b"")),
    "JSON: a text of backslashes": _json(b"\\\\", **_literal(b"")),
    "JSON: a text of brackets": _json(b"]}}", **_literal(b"")),
    "JSON: a text without an end": _json(b"},{}]", before=_literal(b"")["before"], behind=b""),
    "JSON: an array in a solution": _json(b"{},{},", before=_JSON + b'{"y":[', behind=b"0]}]}}"),
    "JSON: an array like solutions": _json(
        b'{"s":{}},', before=_JSON + b'{"y":[', behind=b"0]}]}}"
    ),
    "JSON: arrays without an end": _json(b"[", before=_JSON + b'{"y":', behind=b""),
    "JSON: objects without an end": _json(b'{"y":', before=_JSON, behind=b""),
    "JSON: triple terms": _json(
        b'{"s":{"type":"triple","value":{"subject":{"type":"uri","value":"a:"},"predicate":{"type":"uri","value":"a:"}'
        b',"object":{"type":"literal","value":"a","xml:lang":"en"}}}},'
    ),
    "JSON: many variables": _wide,
    "JSON: white space before": _json(b" ", before=b"", behind=b"{"),
    "JSON: white space between": _json(b" ", before=_JSON + b"{}", behind=b",{}]}}"),
    "JSON: white space within": _json(b"\n", before=_JSON + b"{", behind=b"}]}}"),
    "JSON: solutions in the head": _json(
        b'{"bindings":[]},', before=b'{"head":{"link":[', behind=b"0]}"
    ),
    "JSON: results in the head": _json(
        b'{"results":{"bindings":[]}},', before=b'{"head":{"link":[', behind=b"0]}"
    ),
    "JSON: text in the head": _json(rb"\"bindings\":[", before=b'{"head":"', behind=b'"'),
    "JSON: text without an end in the head": _json(b'"bindings":[', before=b'{"', behind=b""),
    "JSON: colons in the head": _json(b":", before=b'{"a"', behind=b""),
    "JSON: members": lambda size: Results(
        "json", b"{" + b"".join(b'"%b":{"bindings":[]},' % n for n in _names(size))
    ),
    "JSON: members of the head": lambda size: Results(
        "json", b'{"head":{' + b"".join(b'"%b":[{}],' % name for name in _names(size)) + b'"x":1},'
    ),
    "JSON: variables in the head": lambda size: Results(
        "json", b'{"head":{"vars":[%b]},' % b",".join(b'"%b"' % name for name in _names(size))
    ),
    "JSON: arrays behind": _json(b"[{}],", before=_JSON + b'{}]},"link":[', behind=b"0]}"),
    "JSON: text behind": _json(b'\\"]', before=_JSON + b'{}]},"link":"', behind=b'"}'),
    "JSON: white space behind": _json(b"\n", before=_JSON + b"{}]}}", behind=b""),
    "XML: solutions": _xml(
        b'<result><binding name="s"><uri>http://example.org/</uri></binding></result>\n'
    ),
    "XML: empty solutions": _xml(b"<result/>"),
    "XML: a long text": _xml(b"a", before=_XML + b'<result><binding name="s"><literal>'),
    "XML: a text of entities": _xml(b"&lt;", before=_XML + b'<result><binding name="s"><literal>'),
    "XML: a text in sections": _xml(
        b"<![CDATA[a]]>", before=_XML + b'<result><binding name="s"><literal>'
    ),
    "XML: a section": _xml(b"]", before=_XML + b'<result><binding name="s"><literal><![CDATA['),
    "XML: a long attribute": _xml(
        b"a", before=_XML + b'<result><binding name="s"><literal datatype="a:'
    ),
    "XML: many attributes": lambda size: Results(
        "xml", _XML + b"<result " + b" ".join(b'%b=""' % name for name in _names(size)) + b"/>"
    ),
    "XML: a long name": _xml(b"a", before=_XML + b"<"),
    "XML: a comment": _xml(b"-a", before=_XML + b"<!--"),
    "XML: comments": _xml(b"<!-- a -->"),
    "XML: an instruction": _xml(b"?a", before=_XML + b"<?a "),
    "XML: white space": _xml(b"\n"),
    "XML: variables": lambda size: Results(
        "xml",
        _XML.partition(b"</head>")[0]
        + b"".join(b'<variable name="%b"/>' % name for name in _names(size)),
    ),
    "XML: links": _xml(b"<link/>", before=_XML.partition(b"</head>")[0]),
    "XML: triple terms without an end": _xml(
        b"<triple><object>", before=_XML + b'<result><binding name="s">', behind=b""
    ),
    "XML: subjects without an end": _xml(
        b"<triple><subject>", before=_XML + b'<result><binding name="s">', behind=b""
    ),
    "XML: parts of a triple term": _xml(
        b"<subject><uri>a:</uri></subject>",
        before=_XML + b'<result><binding name="s"><triple>',
        behind=b"",
    ),
    "TSV: solutions": _tsv(b"<http://example.org/>\n"),
    "TSV: solutions of all kinds": _tsv(b"1\n\"a\"@en\n_:b\n<urn:a>\n'b'\n\ntrue\n"),
    "TSV: unbound": _tsv(b"\n"),
    "TSV: a long text": _tsv(b"a", before=b'?s\n"', behind=b'"\n'),
    "TSV: a text of escapes": _tsv(rb"\u0041\"", before=b'?s\n"', behind=b'"\n'),
    "TSV: a line without an end": _tsv(b"<urn:a>\t", before=b"?s\n"),
    "TSV: a header without an end": _tsv(b"?a\t"),
    "TSV: a header": lambda size: Results(
        "tsv", b"?s\t" + b"\t".join(b"?%b" % name for name in _names(size)) + b"\n"
    ),
    "TSV: triple terms": _tsv(b'<<( <urn:a> <urn:b> <<( _:a <urn:b> "<<( "@en )>> )>>\n'),
    "TSV: triple terms without an end": _tsv(b"<<( <urn:a> <urn:b> ", behind=b"\n"),
    "TSV: a text of triple terms": _tsv(b"<<( ", before=b'?s\n"', behind=b'"\n'),
    "TSV: no terms": _tsv(b"<<", behind=b"\n"),
}
"""By name: makes a document of about so many bytes."""
