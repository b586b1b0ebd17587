"""RDF/XML logs: exact bytes both ways, what XML cannot hold, and what hostile documents do."""

from __future__ import annotations

import re
import tracemalloc

import pytest

from construct_messages.errors import LimitExceeded, LogError, Position, UnsupportedByFormat
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.rdf.formats import RDF_XML
from construct_messages.rdf.message import Message
from construct_messages.rdf.template import Constant, Pattern, Template, Variable
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal, parse_term, triple
from tests.support.logs.cases.rdfxml import (
    EX,
    KIND,
    LOGS,
    NAMES,
    PREFIXES,
    SPLIT,
    O,
    P,
    S,
    Split,
    described,
    document,
    log,
    message,
    rdflib_agrees,
)
from tests.support.logs.kinds import Reading, cut, isomorphic, read

assert RDF_XML.own


@pytest.mark.parametrize("case", LOGS)
def test_bytes(case: str) -> None:
    messages, expected = LOGS[case]
    assert log(*messages).decode() == expected


@SPLIT
@pytest.mark.parametrize("case", LOGS)
def test_reads_what_it_writes(case: str, split: Split) -> None:
    messages, text = LOGS[case]
    reading = read(split(text.encode()), KIND)
    assert reading.error is None
    assert isomorphic(reading.messages, messages)


# A literal as parse_term reads it, and its element
TEXTS = {
    '""': "<ex:p></ex:p>",
    '"  "': "<ex:p>  </ex:p>",
    r'"\t x\r\n\r"': "<ex:p>\t x&#13;&#10;&#13;</ex:p>",
    '"<a>&amp;]]></a>"': "<ex:p>&lt;a&gt;&amp;amp;]]&gt;&lt;/a&gt;</ex:p>",
    r'"\"it\"\'s"': "<ex:p>&quot;it&quot;'s</ex:p>",
    '"chat"@fr-be': '<ex:p xml:lang="fr-be">chat</ex:p>',
    '""@en': '<ex:p xml:lang="en"></ex:p>',
    f'""^^<{XSD}token>': f'<ex:p rdf:datatype="{XSD}token"></ex:p>',
    f'" 01 "^^<{XSD}integer>': f'<ex:p rdf:datatype="{XSD}integer"> 01 </ex:p>',
    "\"x\"^^<urn:a?b&c='d'>": "<ex:p rdf:datatype=\"urn:a?b&amp;c='d'\">x</ex:p>",
    f'"<b>x</b>&amp;"^^<{RDF}XMLLiteral>': (
        f'<ex:p rdf:datatype="{RDF}XMLLiteral">&lt;b&gt;x&lt;/b&gt;&amp;amp;</ex:p>'
    ),
    '"\u0085\u2028\u007f\U0001f600"': "<ex:p>\u0085\u2028\u007f\U0001f600</ex:p>",
}


@pytest.mark.parametrize("text", TEXTS)
def test_literals(text: str) -> None:
    written = message((S, P, parse_term(text)))
    assert log(written).decode() == described(TEXTS[text])
    assert read([log(written)], KIND) == Reading([written], None)
    assert rdflib_agrees(written)


@pytest.mark.parametrize("predicate", NAMES)
def test_predicates(predicate: str) -> None:
    written = message((S, iri(predicate), O))
    if NAMES[predicate] is None:
        with pytest.raises(
            UnsupportedByFormat, match=f"message 1: .*{re.escape(predicate)}"
        ) as refused:
            log(written)
        assert refused.value.hint
        return
    name, namespace = str(NAMES[predicate]).split()
    found = re.search(r"<([^ ]*) rdf:resource=", log(written).decode())
    assert found
    assert found[1] == name
    declaration = f'xmlns{":" if ":" in name else ""}{name.rpartition(":")[0]}="{namespace}"'
    assert declaration.replace("&", "&amp;") in log(written).decode()
    assert read([log(written)], KIND) == Reading([written], None)
    assert rdflib_agrees(written)


def test_prefixes_that_xml_has_no_use_for() -> None:
    hostile = {
        "rdf": "urn:a:",
        "xml": "urn:b:",
        "xmlns": "urn:c:",
        "1": "urn:d:",
        "\U00010400": "urn:e:",
        "rel": "",
        "lang": "http://www.w3.org/XML/1998/namespace",
        "ns": "urn:f:",
        "ns_1": "urn:g:",
        "x": RDF,
    }
    written = message(
        *((S, iri(f"urn:{letter}:p"), O) for letter in "abcdefgh"), (S, iri(f"{RDF}value"), O)
    )
    assert 'xmlns:ns__1="urn:a:"' in log(written, prefixes=hostile).decode()
    assert "<ns_1:p " in log(written, prefixes=hostile).decode()
    assert read([log(written, prefixes=hostile)], KIND) == Reading([written], None)


REFUSED = {
    "named graph": (message((S, P, O, O)), "RDF/XML has no named graphs"),
    "triple term": (message((S, P, triple(S, P, O))), "RDF/XML has no triple terms"),
    "base direction": (
        message((S, P, literal("x", language="ar", direction="rtl"))),
        "RDF/XML has no base directions",
    ),
    "control character": (message((S, P, literal("a\x0bb"))), r"U\+000B in 'a\\x0bb'"),
    "null": (message((S, P, literal("\0", language="en"))), r"U\+0000"),
    "no character": (message((S, P, literal("\uffff", datatype="urn:d"))), r"U\+FFFF"),
    "no character in an IRI": (message((Term("<urn:\uffff>"), P, O)), r"U\+FFFF"),
    "no character in a predicate": (message((S, Term("<urn:\uffffp>"), O)), r"U\+FFFF"),
    "no character in a datatype": (message((S, P, Term('""^^<urn:\ufffe>'))), r"U\+FFFE"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_what_it_cannot_carry(case: str) -> None:
    refused, words = REFUSED[case]
    with pytest.raises(UnsupportedByFormat, match=f"^message 2: .*{words}") as error:
        log(message((S, P, O)), refused)
    assert error.value.hint


def test_for_template_is_encode() -> None:
    from construct_messages.rdf.solutions import Solutions

    template = Template(("x",), (Pattern(Constant(S), Constant(P), Variable(0)),))
    solutions = Solutions.of([(literal("a"),), (S,), (Term(""),)])
    batch = (
        encoder_for(RDF_XML, KIND.syntax, EncoderOptions(PREFIXES))
        .for_template(template)
        .encode(solutions, 0)
    )
    assert bytes(batch) == log(message((S, P, literal("a"))), message((S, P, S)), Message())


# --- reading ---

ONE = described("<ex:p>o</ex:p>").encode()
READ: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 0),
    "a byte order mark": (b"\xef\xbb\xbf", 0),
    "one behind a byte order mark": (b"\xef\xbb\xbf" + ONE, 1),
    "the last line without its end": (ONE + ONE.rstrip(), 2),
    "lines that end in CRLF": (ONE.replace(b"\n", b"\r\n") * 2, 2),
    "XML declarations": (
        b"<?xml version='1.0' encoding='utf-8'?>" + ONE + b'<?xml version="1.0"?>' + ONE,
        2,
    ),
    "space around": (b"\t " + ONE.rstrip() + b" \r \n", 1),
    "comments and processing instructions": (
        b"<!-- <!DOCTYPE a> --><?a b?>" + ONE.rstrip() + b"<!-- @message -->",
        1,
    ),
    "no rdf:RDF": (
        f'<rdf:Description rdf:about="urn:s" xmlns:rdf="{RDF}" xmlns:e="urn:e:" e:p="o"/>'.encode(),
        1,
    ),
}


@SPLIT
@pytest.mark.parametrize("case", READ)
def test_reads(case: str, split: Split) -> None:
    text, count = READ[case]
    reading = read(split(text), KIND)
    assert reading.error is None
    assert [len(message) for message in reading.messages] == [1] * count


FIX = "one RDF/XML document on one line"
# A log, how many messages stand before the error, where it is, and words of it
ERRORS: dict[str, tuple[bytes, int, tuple[int, int], str]] = {
    "a blank line first": (b"\n" + ONE, 0, (1, 1), "the line is blank"),
    "a blank line between": (ONE + b" \t\r\n" + ONE, 1, (2, 1), "the line is blank"),
    "a blank line last": (ONE + b"\n", 1, (2, 1), "the line is blank"),
    "spaces last": (ONE + b"  ", 1, (2, 1), "the line is blank"),
    "a document over several lines": (b'<?xml version="1.0"?>\n' + ONE, 0, (1, 22), FIX),
    "an element over several lines": (ONE.replace(b"><rdf", b">\n<rdf"), 0, (1, 97), FIX),
    "an end amid a tag": (ONE + b"<rdf:RDF ", 1, (2, 10), FIX),
    "an end amid CDATA": (ONE.partition(b"o<")[0] + b"<![CDATA[", 0, (1, 162), FIX),
    "two documents": (ONE.rstrip() * 2, 0, (1, len(ONE)), "junk after document element"),
    "mismatched tags": (b"<a></b>", 0, (1, 6), "mismatched tag"),
    "no XML": (ONE + b"<urn:s> <urn:p> <urn:o> .\n", 1, (2, 1), "unbound prefix|not well-formed"),
    "no prefix": (b"<rdf:RDF/>", 0, (1, 1), "unbound prefix"),
    "no RDF": (b"<html/>", 0, (1, 1), "namespace"),
    "a relative IRI": (described("", about='rdf:about="s"').encode(), 0, (1, 97), "'s'"),
    "an IRI that is none": (described("", about='rdf:about="urn:a b"').encode(), 0, (1, 97), "IRI"),
    "a DOCTYPE": (ONE + b"<!DOCTYPE a>" + ONE, 1, (2, 1), "DOCTYPE"),
    "an external entity": (
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a>&b;</a>',
        0,
        (1, 1),
        "DOCTYPE",
    ),
    "an entity": ("<a>\u00e9\u00e9&b;</a>".encode(), 0, (1, 6), "undefined entity"),
    "a control character": (ONE.replace(b">o<", b">\x01<"), 0, (1, 153), "not well-formed"),
    "a reference to one": (ONE.replace(b">o<", b">&#1;<"), 0, (1, 153), "invalid character number"),
    "another encoding": (
        b"<?xml version='1.0' encoding='latin1'?><a/>",
        0,
        (1, 1),
        "the encoding is latin1",
    ),
    "bytes in another encoding": (
        ONE + ONE.replace(b">o<", b">\xc3\xa9\xe9<"),
        1,
        (2, 154),
        "UTF-8",
    ),
    "UTF-16": ("\ufeff".encode("utf-16-le") + ONE, 0, (1, 1), "UTF-8"),
    "a character cut off": (b"<a>\xc3", 0, (1, 4), "UTF-8"),
}


@SPLIT
@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str, split: Split) -> None:
    text, count, place, words = ERRORS[case]
    reading = read(split(text), KIND)
    assert len(reading.messages) == count
    assert isinstance(reading.error, LogError)
    assert reading.error.number == count + 1
    assert reading.error.position == Position(*place)
    assert re.search(words, str(reading.error))


def test_base() -> None:
    text = described('<ex:p rdf:resource="o"/>', about='rdf:about=""') + described(
        '<ex:p rdf:resource="o"/>', f'{EX} xml:base="http://b/"', 'rdf:ID="i"'
    )
    assert read([text.encode()], KIND, base="http://a/x").messages == [
        message((iri("http://a/x"), P, iri("http://a/o"))),
        message((iri("http://b/#i"), P, iri("http://b/o"))),
    ]


def test_labels_are_new_in_each_message() -> None:
    text = described("<ex:p><ex:C/></ex:p>", about='rdf:nodeID="b"').encode()
    first, second = read([text * 2], KIND).messages
    assert {term for quad in first for term in quad if str(term).startswith("_:")} == {
        "_:x_m1b0",
        "_:x_m1b1",
    }
    assert {term for quad in second for term in quad if str(term).startswith("_:")} == {
        "_:x_m2b0",
        "_:x_m2b1",
    }


def test_prefixes_are_those_of_all_documents() -> None:
    from construct_messages.logs import decoder_for

    decoder = decoder_for(RDF_XML)
    assert decoder.syntax == RDF_XML.own
    list(decoder.feed(log(*LOGS["each declares the prefixes it uses"][0])))
    assert decoder.prefixes == {
        "rdf": RDF,
        "": "urn:x:",
        "ns2": "urn:y:",
        "ns3": "urn:z:",
        "exa": "http://example.org/a",
    }


@SPLIT
def test_a_message_that_is_too_large(split: Split) -> None:
    fits = len(ONE) - 1
    assert len(read(split(ONE * 2), KIND, message_bytes=fits).messages) == 2
    for text in (ONE * 2 + described("<ex:p>oo</ex:p>").encode(), ONE * 2 + b" " * (fits + 1)):
        reading = read(split(text), KIND, message_bytes=fits)
        assert len(reading.messages) == 2
        assert isinstance(reading.error, LimitExceeded)
        assert f"message 3 is longer than {fits} bytes" in str(reading.error)


BOMB = '<!DOCTYPE a [<!ENTITY a0 "ha">' + "".join(
    f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(30)
)
HOSTILE = {
    "billion laughs": (BOMB + "]><a>&a30;</a>", "DOCTYPE"),
    "quadratic blow-up": (
        f'<!DOCTYPE a [<!ENTITY x "{"x" * 100_000}">]><a>{"&x;" * 100_000}</a>',
        "DOCTYPE",
    ),
    "a parameter entity": (
        '<!DOCTYPE a [<!ENTITY % p SYSTEM "http://localhost/"> %p;]><a/>',
        "DOCTYPE",
    ),
    "deep nesting": (
        document("<ex:A><ex:p>" * 500_000 + "</ex:p></ex:A>" * 500_000, EX),
        "1024 elements",
    ),
    "depth without end": ("<a>" * 2_000_000, "1024 elements"),
    "many prefixes": (
        document("<a/>", "".join(f' xmlns:p{n}="urn:p"' for n in range(20_000))),
        "prefixes in scope",
    ),
    "many attributes": (
        document("<ex:A" + "".join(f' ex:p{n}="x"' for n in range(20_000)) + "/>", EX),
        "1024 attributes",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_documents_are_refused_at_once(case: str) -> None:
    text, words = HOSTILE[case]
    reading = read([ONE, text.encode(), b"\n"], KIND)
    assert len(reading.messages) == 1
    assert words in str(reading.error)
    assert "message 2" in str(reading.error)


@pytest.mark.slow
def test_a_literal_longer_than_any_buffer() -> None:
    """Issue 26: pyoxigraph takes no term of more than 16 MiB, as it is or with its escapes."""
    for char, size, written in (("x", 17 << 20, 1), ("\x7f", 3 << 20, 6)):
        (read_back,) = read(
            [described(f"<ex:p>{char * size}</ex:p><ex:q rdf:nodeID='b'/>").encode()], KIND
        ).messages
        (object,) = (quad.object for quad in read_back if quad.predicate == P)
        assert len(object) == written * size + 2


def test_an_xml_literal_that_repeats_a_namespace_has_bounds() -> None:
    namespace = f' xmlns:l="urn:{"l" * 100_000}"'
    text = described(f"<ex:p rdf:parseType='Literal'>{'<l:p/>' * 1000}</ex:p>", EX + namespace)
    reading = read([text.encode()], KIND)
    assert isinstance(reading.error, LimitExceeded)
    assert "message 1" in str(reading.error)


def test_a_large_literal_is_read_in_linear_time_and_memory() -> None:
    text = described(f"<ex:p>{'x' * 10_000_000}</ex:p>").encode()
    tracemalloc.start()
    ((read_back,), error) = (
        (reading := read(cut(text, range(0, len(text), 1000)), KIND)).messages,
        reading.error,
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert error is None
    assert len(read_back) == 1
    assert peak < 15 * len(text)
