"""TSV as it comes: abbreviations, mixed columns, raw characters; and what is no such document."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import IncompleteResult
from construct_messages.rdf.terms import XSD, parse_term
from construct_messages.sparql.results.tsv import TsvDecoder


def decode(document: bytes, variables: tuple[str, ...] = ("x", "y")) -> list[tuple[str, ...]]:
    decoder = TsvDecoder(variables)
    solutions = [solution for batch in decoder.feed(document) for solution in batch]
    return solutions + [solution for batch in decoder.close() for solution in batch]


FIELDS = [
    ("42", f'"42"^^<{XSD}integer>'),
    ("+1", f'"+1"^^<{XSD}integer>'),
    ("1.5", f'"1.5"^^<{XSD}decimal>'),
    ("-.5", f'"-.5"^^<{XSD}decimal>'),
    ("1e0", f'"1e0"^^<{XSD}double>'),
    ("1.E-3", f'"1.E-3"^^<{XSD}double>'),
    ("true", f'"true"^^<{XSD}boolean>'),
    ("", ""),
    ('""', '""'),
    ('"a"', '"a"'),
    ("'a\"b'", '"a\\"b"'),
    ('"a"@EN-gb', '"a"@en-gb'),
    ('"a"@ar--rtl', '"a"@ar--rtl'),
    (f'"a"^^<{XSD}string>', '"a"'),
    (f'"1"^^<{XSD}integer>', f'"1"^^<{XSD}integer>'),
    ('"\\u00e9\\t\\\\"', '"é\\t\\\\"'),
    ('"\x01\x08\x0c\x7f"', '"\\u0001\\b\\f\\u007F"'),
    ('"\ufffe\ufffd"', '"\\uFFFE\ufffd"'),
    ('"\uffff"', '"\\uFFFF"'),
    ("<http://example.org/é>", "<http://example.org/é>"),
    ("<urn:\\u00e9>", "<urn:é>"),
    ("<x-own:a>", "<x-own:a>"),
    ("_:b0", "_:db0"),
    ("_:b.0-é", "_:db.0-é"),
    ("<<( _:a <urn:p> 1 )>>", f'<<( _:da <urn:p> "1"^^<{XSD}integer> )>>'),
]
CANONICAL = dict(FIELDS)


@pytest.mark.parametrize(("field", "term"), FIELDS, ids=[field for field, _ in FIELDS])
def test_each_kind_of_field(field: str, term: str) -> None:
    # in a column of its own kind, and in one of all kinds
    others = [other for other, _ in FIELDS]
    lines = "".join(f"{field}\t{other}\n" for other in others)
    assert decode(f"?x\t?y\n{lines}".encode()) == [(term, CANONICAL[other]) for other in others]


@given(
    st.lists(st.tuples(*[st.sampled_from(sorted(CANONICAL))] * 2), min_size=1, max_size=6),
    st.booleans(),
)
def test_columns_are_their_fields(lines: list[tuple[str, str]], crlf: bool) -> None:
    end = "\r\n" if crlf else "\n"
    document = "".join("\t".join(line) + end for line in [("?x", "?y"), *lines])
    assert decode(document.encode()) == [
        tuple(CANONICAL[field] for field in line) for line in lines
    ]


@given(
    st.lists(st.text(alphabet='<>"_:@^\\{}() ab1.-e\té\x01', max_size=6), min_size=1, max_size=3)
)
def test_a_field_is_the_term_it_reads_as(fields: list[str]) -> None:
    fields = [field.replace("\t", "") for field in fields]
    try:
        expected = [(parse_term(field, "d") if field else "",) for field in fields]
    except ValueError:
        with pytest.raises(IncompleteResult):
            decode("".join(f"{line}\n" for line in ("?x", *fields)).encode(), ("x",))
    else:
        assert decode("".join(f"{line}\n" for line in ("?x", *fields)).encode(), ("x",)) == expected


@pytest.mark.parametrize("header", ["?x\t?y", "x\ty", "\ufeff?x\t?y"])
def test_headers(header: str) -> None:
    assert decode(f"{header}\n1\t2\n".encode(), ("y",)) == [(f'"2"^^<{XSD}integer>',)]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"", "is empty: it has no header line"),
        (b"?x\t?y", "ends inside line 1"),
        (b"?x\t?z\n", r"is not for \?x \?y: its variables are 'x', 'z'"),
        (b"The SPARQL operation has been cancelled\n", "is not for .* 'The SPARQL"),
        (b"?x\t?y\n1\t2\n3", "ends inside line 3: '3'"),
        (b"?x\t?y\n1\t2\n3\n", "line 3 .* has 1 of 2 fields: '3'"),
        (b"?x\t?y\n1\t2\n3\n4\t5\t6\n", "line 3 .* has 1 of 2 fields: '3'"),
        (b"?x\t?y\n1\t2\n3\t4\t5\n6\n", "line 3 .* has 3 of 2 fields"),
        (b"?x\t?y\n1\t2\n\n", "line 3 .* has 1 of 2 fields"),
        (b"?x\t?y\n1\t2\n1\tword\n", "line 3 .*: 'word' is not an RDF term"),
        (b'?x\t?y\n1\t"\xff"\n', "line 2 .* is not UTF-8"),
        (b"?x\t?y\n<http://\xff/>\t1\n", "line 2 .* is not UTF-8"),
        (b"?x\t?y\n<urn:a> <urn:b>\t1\n", "line 2 .*: unexpected '<urn:b>'"),
        (b"?x\t?y\n<http://a>\t1\n<http://b\t1\n", "line 3 .* is not an RDF term"),
        (b'?x\t?y\n"a\rb"\t1\n', "line 2 .* is not an RDF term"),
        (b"?x\t?y\n<relative>\t1\n", "line 2 .* is relative"),
    ],
)
def test_refused(document: bytes, words: str) -> None:
    with pytest.raises(IncompleteResult, match=words):
        decode(document)


def test_lines_are_counted_over_pieces() -> None:
    decoder = TsvDecoder(("x",))
    for piece in (b"?x\n1", b"\n2\n", b"3\n4\n"):
        decoder.feed(piece)
    with pytest.raises(IncompleteResult, match=r"line 7 .*: 'word'"):
        decoder.feed(b"_:b\nword\n")


def test_many_different_terms_in_a_mixed_column() -> None:
    # more than the decoder remembers
    fields = [str(n) if n % 2 else f"<urn:{n}>" for n in range(25_000)]
    document = "".join(f"{line}\n" for line in ("?x", *fields)).encode()
    assert decode(document, ("x",)) == [(parse_term(field),) for field in fields]


# what the checks of whole columns take for a term, and what nearly is one
KINDS = {
    "IRIs": [
        "<http://example.org/a>",
        "<https://example.org/%C3%A9?a=b#c>",
        "<http://example.org/Category:A>",
        "<http://é.example.org/日本>",
        "<http://user@example.org:80/>",
        "<http://example.org:x/>",
        "<http://example.org/%>",
        "<http://example.org/#a#b>",
        "<http://example.org/a>b",
        "a<http://example.org/>",
        "<http://example.org/\ue000>",
        "<http://example.org/\x85>",
        "<http://example.org/é\x9f>",
        "<http://example.org/\xa0\ud000>",
        "<http://example.org/?\ue000>",
        "<httpx://example.org/>",
        "<http:example>",
    ],
    "literals": [
        '"a"@en',
        '"é日"@en',
        '""@en',
        '"\\t"@en',
        '"\\u0061"@en',
        '"a\uffff"@en',
        '"a\x7f"@en',
        '"a"@EN',
        '"a"@en-',
        'a"a"@en',
        '"a"b"@en',
        '"a',
        '"a"@en"',
        '"\ud7ff"@en',
    ],
    "other literals": [
        '"a"',
        '""',
        f'"1"^^<{XSD}integer>',
        f'"a"^^<{XSD}string>',
        f'"1"^^<{XSD}integer>"',
    ],
}


@pytest.mark.parametrize("copies", [1, 200], ids=["once each", "often"])
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_column_is_its_fields_one_by_one(kind: str, copies: int, data: st.DataObject) -> None:
    fields = data.draw(st.lists(st.sampled_from(KINDS[kind]), min_size=1, max_size=4)) * copies
    try:
        expected = [(parse_term(field, "d"),) for field in fields]
    except ValueError:
        with pytest.raises(IncompleteResult):
            decode("".join(f"{line}\n" for line in ("?x", *fields)).encode(), ("x",))
    else:
        assert decode("".join(f"{line}\n" for line in ("?x", *fields)).encode(), ("x",)) == expected


@pytest.mark.parametrize(
    "field", ["42", "_:b", "<http://example.org/é>", '"é"@ja', "true", "1.5", "2e0"]
)
@pytest.mark.parametrize("different", [1, 3, 150])
def test_terms_that_occur_again(field: str, different: int) -> None:
    places = {"42": "4{}2", "_:b": "_:b{}", "true": "true", "1.5": "{}1.5", "2e0": "{}2e0"}
    fields = [
        places.get(field, field.replace("é", "é{}")).format(n % different) for n in range(300)
    ]
    document = "".join(f"{line}\n" for line in ("?x", *fields)).encode()
    assert decode(document, ("x",)) == [(parse_term(field, "d"),) for field in fields]


def test_the_first_line_of_a_wrong_term_that_occurs_again() -> None:
    fields = ["<http://example.org/a>"] * 150 + ["<relative>"] * 150
    with pytest.raises(IncompleteResult, match=r"line 152 of the TSV result.*relative"):
        decode("".join(f"{line}\n" for line in ("?x", *fields)).encode(), ("x",))
