"""Documents in random forms of Turtle and TriG are read as pyoxigraph reads them alone; and files of others."""

from __future__ import annotations

from typing import Final

import pyoxigraph as ox
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from construct_messages.errors import LogError
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.rdf.formats import RDFM, TRIG, TURTLE
from tests.support.logs.kinds import Kind, cut, isomorphic, read
from tests.support.places import shared_path

BASE: Final = "http://example.org/a/b?c"
space = st.sampled_from([" ", " ", "\n", "\t", " # . [ ' \"\n", "\r\n"])
maybe = st.sampled_from(["", "", " ", "\n", " #\n"])
iri = st.sampled_from(
    [
        *("<urn:a>", "<http://example.org/a>", "<http://u@[::1]:8/>", r"<urn:\u00e9\U0001F600>"),
        *("<>", "<#a>", "<b>", "<../c>", "</d/./e/..>", "<?f>", "<//g/h>", r"<\u0061>", "<é>"),
        *(":a", "p:b.c", "p:", r":\,d\~", ":%41", ":é", "q.1:a:b", "p:1"),
    ]
)
label = st.sampled_from(["_:a", "_:b.c", "_:1", "_:d", "_:é"])
text = st.lists(
    st.sampled_from(
        [
            *"abé😀",
            " ",
            r"\"",
            r"\'",
            r"\\",
            r"\n",
            r"\t",
            r"\u00e9",
            r"\u0022",
            r"\U0001F600",
            "\t",
        ]
    ),
    max_size=4,
).map("".join)
inner = st.lists(st.sampled_from([*"ab", "\n", "x'", 'x"', 'x""y', "x''y", r"\r"]), max_size=3)
string = st.one_of(
    text.map('"{}"'.format),
    text.map("'{}'".format),
    inner.map(lambda parts: f'"""{"".join(parts)} """'),
    inner.map(lambda parts: f"'''{''.join(parts)} '''"),
)
suffix = st.sampled_from(
    ["", "", "@en", "@EN-us", "@zh-Hant-TW", "@de-CH-1996", "@ar--rtl", "^^p:d", "^^<d>", " @en"]
)
literal = st.one_of(
    st.tuples(string, suffix).map("".join),
    st.sampled_from(["1", "-1.50", "+.5", "1.e5", "2E-3", "true", "false", "007"]),
)


def joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map("".join)


def properties(object: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    verb = st.one_of(iri, st.just("a"))
    objects = st.lists(object, min_size=1, max_size=3).map(" , ".join)
    one = joined(verb, space, objects, maybe)
    more = st.lists(joined(st.sampled_from([" ;", " ; ; "]), maybe, one), max_size=2).map("".join)
    return joined(one, more, st.sampled_from(["", " ;"]))


def nested(object: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    part = st.one_of(iri, label, st.just("[ ]"))
    return st.one_of(
        joined(st.just("["), maybe, properties(object), maybe, st.just("]")),
        st.lists(object, max_size=3).map(lambda items: f"({' '.join(items)} )"),
        joined(st.just("<<("), maybe, part, space, iri, space, object, st.just(" )>>")),
        joined(st.just("<< "), part, space, iri, space, part, st.sampled_from([" ~ :r >>", " >>"])),
    )


plain = st.one_of(iri, label, literal, st.sampled_from(["[]", "()"]))
object = st.recursive(plain, nested, max_leaves=6)
annotation = st.sampled_from(["", "", "", "", " {| :x 1 |}", " ~ :r"])
subject = st.one_of(
    iri,
    label,
    st.just("[]"),
    joined(st.just("[ "), properties(object), st.just(" ]")),
    joined(st.just("( "), object, st.just(" )")),
)
triples = joined(subject, space, properties(object), annotation)
directive = st.sampled_from(
    [
        *("@prefix p: <urn:p:> .", "prefix p: <#>", "PREFIX :<http://example.org/x/>"),
        *("@base <http://example.org/y/z> .", "BASE <../w>", "base <//v>", "VERSION '1.2'"),
        *("@prefix é: <urn:u> .", "PreFix q.1: #\n<urn:q>", '@version "1.2" .'),
    ]
)
statement = st.one_of(triples.map("{} .".format), triples.map("{} .".format), directive)
block = joined(
    st.one_of(iri, label, st.sampled_from(["", "GRAPH :g", "graph <g>", "[]"])),
    maybe,
    st.just("{"),
    maybe,
    st.lists(triples, max_size=3).map(" . ".join),
    st.sampled_from([" }", " . }"]),
)
HEAD: Final = "PREFIX : <http://example.org/> PREFIX p: <urn:p:> PREFIX q.1: <urn:q#>\n"


def compare(document: bytes, places: list[int], extension: str) -> bool:
    """Asserts that a document is read as pyoxigraph reads it; returns whether it is one."""
    format = ox.RdfFormat.from_extension(extension)
    kind = Kind(TRIG if extension == "trig" else TURTLE, RDFM)
    try:
        expected = to_message(ox.parse(document, format=format, base_iri=BASE))
    except SyntaxError:
        expected = None
    for chunks in ([document], cut(document, places)):
        reading = read(chunks, kind, announced=False, base=BASE, comments=False)
        if expected is None:
            assert isinstance(reading.error, LogError)
        else:
            assert reading.error is None
            assert isomorphic(reading.messages, [expected] if len(expected) else [])
    return expected is not None


@given(
    parts=st.lists(st.one_of(statement, statement, block), max_size=6),
    turtle=st.lists(statement, max_size=6),
    data=st.data(),
)
def test_documents_in_random_forms(
    parts: list[str], turtle: list[str], data: st.DataObject
) -> None:
    for extension, each in (("trig", parts), ("ttl", turtle)):
        document = (HEAD + "\n".join(each)).encode()
        places = data.draw(st.lists(st.integers(0, len(document)), max_size=4))
        event(f"{extension}: {compare(document, places, extension)}")


@pytest.mark.parametrize("name", ["qudt-units", "brick-mediumOffice", "spb-football"])
def test_files_of_others(name: str) -> None:
    document = shared_path(f"data/{name}.ttl").read_bytes()
    assert compare(document, [7, len(document) // 3], "ttl")
