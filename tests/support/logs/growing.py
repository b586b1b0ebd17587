"""Logs that grow with a number, as data: whatever may come many times, be long or deep, or make much of little.

Each is read in work that grows with its length (`test_logs_growth.py`).
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from typing import Any, Final

from tests.support.logs.hostile import ALIKE, PREDICATE, field, jelly

GROWING: Final[dict[str, tuple[str, Callable[[int], bytes]]]] = {}
"""By name: a format, and the log of a number."""

_RDF: Final = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'


def _add(format: str, name: str, log: Callable[[int], str | bytes]) -> None:
    def encoded(number: int) -> bytes:
        text = log(number)
        return text.encode() if isinstance(text, str) else text

    GROWING[f"{format}: {name}"] = (format, encoded)


def _json(document: Any) -> str:
    return json.dumps(document) + "\n"


def _under(context: Any, document: Any, times: int) -> str:
    return _json({"@context": context}) + _json(document) * times


def _terms(number: int) -> dict[str, str]:
    return {f"t{i}": f"urn:t{i}" for i in range(number)}


def _yaml(text: str) -> str:
    return f"---\n{text}...\n"


def _xml(content: str, attributes: str = "") -> str:
    return f"<rdf:RDF {_RDF} xmlns:e='urn:'{attributes}>{content}</rdf:RDF>\n"


for fmt in ("nt", "nq"):
    _add(fmt, "blank lines", lambda n: "\n" * (n * 20))
    _add(fmt, "blank CRLF", lambda n: "\r\n" * (n * 20))
    _add(fmt, "blank CR", lambda n: "\r" * (n * 20))
    _add(fmt, "space lines", lambda n: " \n" * (n * 20))
    _add(fmt, "one line of blanks", lambda n: " " * (n * 40))
    _add(fmt, "comments", lambda n: "# c\n" * (n * 10))
    _add(fmt, "delimiters", lambda n: "# @message\n" * n)
    _add(fmt, "labelled empties", lambda n: 'VERSION "1.2-messages"\n' + "MESSAGE\n" * n)
    _add(fmt, "versions", lambda n: 'VERSION "1.2-messages"\n' * n)
    _add(
        fmt,
        "statements one message",
        lambda n: "".join(f"<urn:s{i}> <urn:p> <urn:o{i}> .\n" for i in range(n)),
    )
    _add(
        fmt,
        "noncanonical",
        lambda n: "".join(f"<urn:s{i}>  <urn:p> <urn:o{i}>.\n" for i in range(n)),
    )
    _add(
        fmt,
        "blank nodes labelled",
        lambda n: (
            'VERSION "1.2-messages"\n'
            + "".join(f"_:a{i} <urn:p> _:b{i} .\n" for i in range(n))
            + "MESSAGE\n"
        ),
    )
    _add(fmt, "unclosed IRI", lambda n: "<urn:" + "x" * n * 40)
    _add(fmt, "unclosed IRIs", lambda n: "<urn:s> <urn:p \n" * n)
    _add(fmt, "many <", lambda n: "<" * n * 40)
    _add(fmt, "many quotes", lambda n: '"' * n * 40)
    _add(
        fmt,
        "long comment with @message after quotes",
        lambda n: '<urn:s> <urn:p> "' + '\\"' * n * 10 + '" . # @message\n',
    )
    _add(
        fmt,
        "triple terms",
        lambda n: "".join(
            f"<urn:s> <urn:p> <<( <urn:s{i}> <urn:p> <urn:o> )>> .\n" for i in range(n)
        ),
    )
    _add(fmt, "long statement, subject", lambda n: "<urn:" + "x" * n * 40 + "> <urn:p> <urn:o> .\n")
    _add(fmt, "bad utf8 at end", lambda n: b"<urn:s> <urn:p> <urn:o> .\n" * n + b"\xff")
    _add(fmt, "mixed CR", lambda n: "<urn:s> <urn:p> <urn:o> .\r" * n)
for fmt in ("ttl", "trig"):
    _add(fmt, "blank lines", lambda n: "\n" * (n * 20))
    _add(fmt, "comments", lambda n: "# c\n" * (n * 10))
    _add(fmt, "delimiters", lambda n: "# @message\n" * n)
    _add(fmt, "labelled empties", lambda n: 'VERSION "1.2-messages"\n' + "MESSAGE\n" * n)
    _add(fmt, "@message .", lambda n: 'VERSION "1.2-messages"\n' + "@message .\n" * n)
    _add(fmt, "versions", lambda n: 'VERSION "1.2-messages"\n' * n)
    _add(fmt, "plain versions", lambda n: 'VERSION "1.2"\n' * n)
    _add(
        fmt, "statements", lambda n: "".join(f"<urn:s{i}> <urn:p> <urn:o{i}> .\n" for i in range(n))
    )
    _add(
        fmt,
        "statements, messages",
        lambda n: "".join(f"# @message\n<urn:s{i}> <urn:p> <urn:o{i}> .\n" for i in range(n)),
    )
    _add(fmt, "list", lambda n: "<urn:s> <urn:p> (" + " 1" * n * 10 + " ) .")
    _add(fmt, "objects", lambda n: "<urn:s> <urn:p> 1" + ",1" * n * 10 + " .")
    _add(
        fmt,
        "objects of a long subject",
        lambda n: "<urn:" + "s" * n * 20 + "> <urn:p> 1" + ",1" * n * 10 + " .",
    )
    _add(fmt, "empty nodes", lambda n: "<urn:s> <urn:p> []" + ",[]" * n * 10 + " .")
    _add(
        fmt,
        "long namespace",
        lambda n: "PREFIX : <urn:" + "s" * n * 20 + "> :a :b :c" + ",:d" * n * 10 + " .",
    )
    _add(fmt, "bases", lambda n: "BASE <http://e/>\n" + "BASE <a/>\n" * n * 2 + "<> <> <> .")
    # the first is as long as those that the compiled module leaves to the parser, so that all messages take one way
    _add(
        fmt,
        "bases in messages",
        lambda n: f"BASE <http://e/{'b' * 300}/>\n" + "# @message\nBASE <a/>\n" * n,
    )
    _add(
        fmt,
        "prefixes of a long base",
        lambda n: "BASE <http://" + "e" * n * 20 + "/>\n" + "PREFIX p: <a>\n" * n,
    )
    _add(
        fmt,
        "different prefixes of a long base",
        lambda n: (
            "BASE <http://"
            + "e" * n * 20
            + "/>\n"
            + "".join(f"PREFIX p{i}: <a>\n" for i in range(n))
        ),
    )
    _add(
        fmt,
        "prefixes and messages",
        lambda n: (
            "".join(f"PREFIX p{i}: <urn:a>\n" for i in range(n))
            + "# @message\np1:a p1:a p1:a .\n" * n
        ),
    )
    _add(fmt, "redeclared", lambda n: "PREFIX p: <urn:a>\n" * n)
    _add(fmt, "unclosed string", lambda n: '<urn:s> <urn:p> "' + "x" * n * 40)
    _add(fmt, "unclosed long string", lambda n: '<urn:s> <urn:p> """' + 'x""' * n * 20)
    _add(fmt, "unclosed escape", lambda n: '<urn:s> <urn:p> "' + "\\" * n * 40)
    _add(fmt, "unclosed IRI", lambda n: "<urn:" + "x" * n * 40)
    _add(fmt, "dots", lambda n: "<urn:s> <urn:p> a:" + "." * n * 40)
    _add(fmt, "dots in a name", lambda n: "PREFIX a: <urn:> <urn:s> <urn:p> a:" + ".a" * n * 20)
    _add(fmt, "long word", lambda n: "a" * n * 40)
    _add(fmt, "long tag", lambda n: '<urn:s> <urn:p> "a"@' + "a" * n * 40)
    _add(fmt, "one long comment", lambda n: "#" + " " * n * 40)
    _add(fmt, "letters comment", lambda n: "#" + "a" * n * 40)
    _add(fmt, "hash blank at", lambda n: ("# @\n") * n * 10)
    _add(fmt, "at", lambda n: "@" * n * 40)
    _add(fmt, "string then comments", lambda n: '<urn:s> <urn:p> "a"' + "# c\n" * n * 10)
    _add(fmt, "string then blanks", lambda n: '<urn:s> <urn:p> "a"' + " " * n * 40)
    _add(fmt, "strings then blank", lambda n: "<urn:s> <urn:p> " + '"a" \n,' * n * 10)
    _add(fmt, "version then comments", lambda n: "VERSION " + "# c\n" * n * 10)
    _add(fmt, "@message then comments", lambda n: "@message " + "# c\n" * n * 10)
    _add(
        fmt,
        "reified triples",
        lambda n: "".join(f"<< <urn:s{i}> <urn:p> <urn:o> >> <urn:p> 1 .\n" for i in range(n)),
    )
    _add(fmt, "annotations", lambda n: "<urn:s> <urn:p> <urn:o> " + "{| <urn:p> 1 |}" * n + " .")
    _add(
        fmt,
        "triple terms",
        lambda n: (
            "<urn:s> <urn:p> " + ", ".join("<<( <urn:s> <urn:p> 1 )>>" for _ in range(n)) + " ."
        ),
    )
    _add(fmt, "open graph", lambda n: "<urn:g> { " + "<urn:s> <urn:p> 1 . " * n)
    _add(fmt, "semicolons", lambda n: "<urn:s> <urn:p> 1 " + ";" * n * 40 + " .")
    _add(fmt, "dots only", lambda n: " . " * n * 20)
    _add(fmt, "lf in literals", lambda n: '<urn:s> <urn:p> """' + "\n" * n * 40 + '""" .')
    _add(fmt, "error at the end", lambda n: "<urn:s> <urn:p> 1 .\n" * n * 2 + "<urn:s> nope .")
for fmt in ("trig",):
    _add(fmt, "graphs", lambda n: "".join(f"<urn:g{i}> {{ <urn:s> <urn:p> 1 }} " for i in range(n)))
    _add(
        fmt,
        "long graph",
        lambda n: "<urn:" + "g" * n * 20 + "> { <urn:s> <urn:p> 1" + ",1" * n * 10 + " }",
    )


_add("ndjsonld", "empties", lambda n: "{}\n" * n * 10)
_add(
    "ndjsonld",
    "many nodes",
    lambda n: _json({"@included": [{"@id": f"urn:{i}", "urn:p": i} for i in range(n)]}),
)
_add("ndjsonld", "values", lambda n: _json({"@id": "urn:a", "urn:p": list(range(n * 5))}))
_add(
    "ndjsonld",
    "types",
    lambda n: _json({"@id": "urn:a", "@type": [f"urn:{i}" for i in range(n * 5)]}),
)
_add("ndjsonld", "list", lambda n: _json({"@id": "urn:a", "urn:p": {"@list": [1] * n * 10}}))
_add("ndjsonld", "set", lambda n: _json({"@id": "urn:a", "urn:p": {"@set": [1] * n * 10}}))
_add("ndjsonld", "keys", lambda n: _json({"@id": "urn:a", **{f"urn:{i}": 1 for i in range(n * 3)}}))
_add("ndjsonld", "long id", lambda n: _json({"@id": "urn:" + "a" * n * 20, "urn:p": [1] * n * 5}))
_add("ndjsonld", "empty nodes", lambda n: _json({"@id": "urn:a", "urn:p": [{}] * n * 10}))
_add(
    "ndjsonld",
    "context array",
    lambda n: _json(
        {"@context": [{f"t{i}": f"urn:t{i}"} for i in range(n)], "@id": "urn:a", "t0": "x"}
    ),
)
_add(
    "ndjsonld",
    "context array of nulls",
    lambda n: _json({"@context": [None] * n * 5, "@id": "urn:a", "urn:t0": "x"}),
)
_add(
    "ndjsonld",
    "context array bases",
    lambda n: _json(
        {
            "@context": [{"@base": "http://e/"}] + [{"@base": f"a{i}/"} for i in range(n)],
            "@id": "",
            "urn:t0": "x",
        }
    ),
)
_add(
    "ndjsonld",
    "context array vocabs",
    lambda n: _json(
        {
            "@context": [{"@vocab": "http://e/"}] + [{"@vocab": f"a{i}/"} for i in range(n)],
            "@id": "urn:a",
            "t0": "x",
        }
    ),
)
_add(
    "ndjsonld",
    "context chain of prefixes",
    lambda n: _json(
        {
            "@context": {"t0": "http://e/", **{f"t{i}": f"t{i - 1}:a" for i in range(1, n)}},
            "@id": "urn:a",
            "t0:a": "x",
        }
    ),
)
_add(
    "ndjsonld",
    "context of terms",
    lambda n: _json({"@context": _terms(n * 2), "@id": "urn:a", "t0": "x"}),
)
_add(
    "ndjsonld",
    "context and keys",
    lambda n: _json({"@context": _terms(n), "@id": "urn:a", **{f"t{i}": 1 for i in range(n)}}),
)
_add(
    "ndjsonld",
    "context per node",
    lambda n: _json(
        {
            "@context": _terms(n),
            "@included": [
                {"@context": {f"u{i}": "urn:u"}, "@id": "urn:a", "t0": 1} for i in range(n)
            ],
        }
    ),
)
_add(
    "ndjsonld",
    "same context per node",
    lambda n: _json(
        {
            "@context": _terms(n),
            "@included": [{"@context": {"u": "urn:u"}, "@id": "urn:a", "t0": 1} for i in range(n)],
        }
    ),
)
_add(
    "ndjsonld",
    "type-scoped",
    lambda n: _json(
        {
            "@context": {
                f"t{i}": {"@id": f"urn:t{i}", "@context": {f"u{i}": "urn:u"}} for i in range(n)
            },
            "@id": "urn:a",
            "@type": [f"t{i}" for i in range(n)],
        }
    ),
)
_add(
    "ndjsonld",
    "property-scoped",
    lambda n: _json(
        {
            "@context": {
                f"t{i}": {"@id": f"urn:t{i}", "@context": {f"u{i}": "urn:u"}} for i in range(n)
            },
            "@id": "urn:a",
            **{f"t{i}": {"u0": 1} for i in range(n)},
        }
    ),
)
_add(
    "ndjsonld",
    "scoped pairs",
    lambda n: _json(
        {
            "@context": {
                f"t{i}": {"@id": f"urn:t{i}", "@context": {f"u{i}": "urn:u"}} for i in range(n)
            },
            "@included": [
                {"@id": "urn:a", "@type": [f"t{i * 7 % n}", f"t{i * 11 % n}"]} for i in range(n)
            ],
        }
    ),
)
_add(
    "ndjsonld",
    "active context, terms, messages",
    lambda n: _under({**_terms(n), "x": {"@id": "urn:x"}}, {"@id": "urn:a", "t0": 1}, n),
)
_add(
    "ndjsonld",
    "active array, messages",
    lambda n: _under([{f"t{i}": f"urn:t{i}"} for i in range(n // 4)], {"@id": "urn:a", "t0": 1}, n),
)
_add(
    "ndjsonld",
    "active prefixes, messages",
    lambda n: _under({f"t{i}": f"urn:t{i}/" for i in range(n)}, {"@id": "urn:a", "t0:a": 1}, n),
)
_add(
    "ndjsonld",
    "vocab long",
    lambda n: _under(
        {"@vocab": "urn:" + "v" * n * 20}, {"@id": "urn:a", **{f"k{i}": 1 for i in range(n)}}, 1
    ),
)
_add(
    "ndjsonld",
    "prefix long",
    lambda n: _under(
        {"p": "urn:" + "v" * n * 20 + "/"}, {"@id": "urn:a", **{f"p:k{i}": 1 for i in range(n)}}, 1
    ),
)
_add(
    "ndjsonld",
    "base long",
    lambda n: _json(
        {
            "@context": {"@base": "http://" + "v" * n * 20 + "/"},
            "@included": [{"@id": f"a{i}", "urn:p": 1} for i in range(n)],
        }
    ),
)
_add(
    "ndjsonld",
    "language map",
    lambda n: _json(
        {
            "@context": {"p": {"@id": "urn:p", "@container": "@language"}},
            "@id": "urn:a",
            "p": {f"a-x{i}": "v" for i in range(n * 2)},
        }
    ),
)
_add(
    "ndjsonld",
    "index map",
    lambda n: _json(
        {
            "@context": {"p": {"@id": "urn:p", "@container": "@index"}},
            "@id": "urn:a",
            "p": {f"a{i}": "v" for i in range(n * 2)},
        }
    ),
)
_add(
    "ndjsonld",
    "id map",
    lambda n: _json(
        {
            "@context": {"p": {"@id": "urn:p", "@container": "@id"}},
            "@id": "urn:a",
            "p": {f"urn:{i}": {"urn:q": 1} for i in range(n)},
        }
    ),
)
_add(
    "ndjsonld",
    "type map",
    lambda n: _json(
        {
            "@context": {"p": {"@id": "urn:p", "@container": "@type"}},
            "@id": "urn:a",
            "p": {f"urn:{i}": {"urn:q": 1} for i in range(n)},
        }
    ),
)
_add(
    "ndjsonld",
    "graph map",
    lambda n: _json(
        {
            "@context": {"p": {"@id": "urn:p", "@container": ["@graph", "@id"]}},
            "@id": "urn:a",
            "p": {f"urn:{i}": {"urn:q": 1} for i in range(n)},
        }
    ),
)
_add(
    "ndjsonld",
    "reverse",
    lambda n: _json(
        {"@id": "urn:a", "@reverse": {"urn:p": [{"@id": f"urn:{i}"} for i in range(n * 2)]}}
    ),
)
_add(
    "ndjsonld",
    "reverse keys",
    lambda n: _json(
        {"@id": "urn:a", "@reverse": {f"urn:p{i}": [{"@id": f"urn:{i}"}] for i in range(n * 2)}}
    ),
)
_add(
    "ndjsonld",
    "nest",
    lambda n: _json(
        {"@context": {"n": "@nest"}, "@id": "urn:a", "n": [{f"urn:{i}": 1} for i in range(n)]}
    ),
)
_add(
    "ndjsonld",
    "types with context",
    lambda n: _json(
        {
            "@context": {"x": {"@id": "urn:x"}},
            "@id": "urn:a",
            "@type": [f"urn:{i}" for i in range(n * 3)],
        }
    ),
)
_add(
    "ndjsonld",
    "values with context",
    lambda n: _json({"@context": {"x": {"@id": "urn:x"}}, "@id": "urn:a", "x": list(range(n * 3))}),
)
_add(
    "ndjsonld",
    "values of aliases",
    lambda n: _json(
        {
            "@context": {f"x{i}": {"@id": "urn:x"} for i in range(n)},
            "@id": "urn:a",
            **{f"x{i}": 1 for i in range(n)},
        }
    ),
)
_add(
    "ndjsonld",
    "type aliases",
    lambda n: _json(
        {
            "@context": {f"x{i}": "@type" for i in range(n)},
            "@id": "urn:a",
            **{f"x{i}": "urn:t" for i in range(n)},
        }
    ),
)
_add(
    "ndjsonld",
    "included",
    lambda n: _json(
        {
            "@context": {"x": {"@id": "urn:x"}},
            "@included": [{"@id": f"urn:{i}", "x": i} for i in range(n)],
        }
    ),
)
_add(
    "ndjsonld",
    "json literal",
    lambda n: _json({"@id": "urn:a", "urn:p": {"@type": "@json", "@value": [1] * n * 10}}),
)
_add(
    "ndjsonld",
    "protected",
    lambda n: _json(
        {
            "@context": [{"@protected": True, **_terms(n)}]
            + [{"@protected": True, "t0": "urn:t0"}] * n,
            "@id": "urn:a",
            "t0": "x",
        }
    ),
)
_add(
    "ndjsonld",
    "twice key",
    lambda n: "{" + ",".join(f'"k{i}":1' for i in range(n * 3)) + f',"k{n * 3 - 1}":1' + "}\n",
)
_add(
    "ndjsonld",
    "surrogates",
    lambda n: '{"@id":"urn:a","urn:p":"' + "\\ud83d\\ude00" * n * 3 + '"}\n',
)
_add(
    "ndjsonld", "brackets in strings", lambda n: '{"@id":"urn:a","urn:p":"' + "{[" * n * 20 + '"}\n'
)
_add("ndjsonld", "unclosed", lambda n: '{"@id":"' + '\\"' * n * 20)
_add("ndjsonld", "escaped quote strings unclosed", lambda n: '["' + "\\" * n * 40)
_add("ndjsonld", "many quotes", lambda n: "{" * 200 + '"' * n * 40 + "\n")

_add("yamlld", "empties", lambda n: "--- {}\n...\n" * n * 2)
_add("yamlld", "blank lines", lambda n: "\n" * n * 40)
_add(
    "yamlld", "blank lines in a doc", lambda n: "---\n'@id': urn:a\n" + "\n" * n * 40 + "urn:p: 1\n"
)
_add("yamlld", "comments", lambda n: "# c\n" * n * 10)
_add("yamlld", "directives", lambda n: "%YAML 1.2\n" * n + "--- {}\n")
_add(
    "yamlld",
    "tag directives",
    lambda n: "".join(f"%TAG !e{i}! tag:e:\n" for i in range(n)) + "--- {}\n",
)
_add("yamlld", "seq", lambda n: _yaml("'@id': urn:a\nurn:p:\n" + "- 1\n" * n * 5))
_add(
    "yamlld",
    "keys",
    lambda n: _yaml("'@id': urn:a\n" + "".join(f"urn:p{i}: 1\n" for i in range(n * 2))),
)
_add(
    "yamlld",
    "aliases",
    lambda n: _yaml(
        "'@id': urn:a\nurn:q: &x {urn:p: [" + "1, " * n + "]}\nurn:p:\n" + "- *x\n" * n
    ),
)
_add(
    "yamlld",
    "aliases of a literal",
    lambda n: _yaml("'@id': urn:a\nurn:q: &x '" + "y" * n * 10 + "'\nurn:p:\n" + "- *x\n" * n),
)
_add(
    "yamlld",
    "anchors",
    lambda n: _yaml("'@id': urn:a\nurn:p:\n" + "".join(f"- &x{i} 1\n" for i in range(n * 2))),
)
_add("yamlld", "block literal", lambda n: _yaml("'@id': urn:a\nurn:p: |\n" + "  x\n" * n * 5))
_add("yamlld", "folded blank", lambda n: _yaml("'@id': urn:a\nurn:p: 'x" + "\n" * n * 20 + "'\n"))
_add("yamlld", "plain multi", lambda n: _yaml("'@id': urn:a\nurn:p: x\n" + "  x\n" * n * 5))
_add("yamlld", "flow open", lambda n: "--- " + "[" * n * 10)
_add("yamlld", "question marks", lambda n: "--- " + "? " * n * 10)
_add("yamlld", "simple keys", lambda n: _yaml("{" + "a, " * n * 5 + "}"))
_add("yamlld", "document ends", lambda n: "...\n" * n * 5)

_add("rdfxml", "empties", lambda n: f"<rdf:RDF {_RDF}/>\n" * n)
_add(
    "rdfxml",
    "nodes",
    lambda n: _xml(
        "".join(
            f"<rdf:Description rdf:about='urn:{i}'><e:p>1</e:p></rdf:Description>" for i in range(n)
        )
    ),
)
_add(
    "rdfxml",
    "collection",
    lambda n: _xml(
        "<rdf:Description><e:p rdf:parseType='Collection'>"
        + "<e:c/>" * n * 3
        + "</e:p></rdf:Description>"
    ),
)
_add(
    "rdfxml",
    "collection of described",
    lambda n: _xml(
        "<rdf:Description><e:p rdf:parseType='Collection'>"
        + "<rdf:Description/>" * n * 3
        + "</e:p></rdf:Description>"
    ),
)
_add("rdfxml", "li", lambda n: _xml("<rdf:Bag>" + "<rdf:li>1</rdf:li>" * n * 3 + "</rdf:Bag>"))
_add(
    "rdfxml",
    "long subject",
    lambda n: _xml(
        "<rdf:Description rdf:about='urn:"
        + "s" * n * 20
        + "'>"
        + "<e:p/>" * n * 3
        + "</rdf:Description>"
    ),
)
_add(
    "rdfxml",
    "long namespace",
    lambda n: _xml(
        "<rdf:Description rdf:about='urn:s'>" + "<z:p/>" * n * 3 + "</rdf:Description>",
        " xmlns:z='urn:" + "s" * n * 20 + "'",
    ),
)
_add(
    "rdfxml",
    "long base ids",
    lambda n: _xml(
        "".join(f"<rdf:Description rdf:ID='a{i}' e:p='1'/>" for i in range(n)),
        " xml:base='http://" + "s" * n * 20 + "/'",
    ),
)
_add(
    "rdfxml",
    "bases",
    lambda n: _xml("".join(f"<rdf:Description xml:base='http://e/{i}'/>" for i in range(n))),
)
_add(
    "rdfxml",
    "siblings with namespaces",
    lambda n: _xml("".join(f"<rdf:Description xmlns:f{i}='urn:f'/>" for i in range(n))),
)
_add(
    "rdfxml",
    "xml literal",
    lambda n: _xml(
        "<rdf:Description><e:p rdf:parseType='Literal'>"
        + "<e:c/>" * n * 3
        + "</e:p></rdf:Description>"
    ),
)
_add(
    "rdfxml",
    "xml literals with many namespaces",
    lambda n: _xml(
        "<rdf:Description>"
        + "<e:p rdf:parseType='Literal'><e:c/></e:p>" * n
        + "</rdf:Description>",
        "".join(f" xmlns:f{i}='urn:f'" for i in range(min(n, 1000))),
    ),
)
_add("rdfxml", "comments", lambda n: _xml("<!-- -->" * n * 3))
_add("rdfxml", "pis", lambda n: _xml("<?a?>" * n * 3))
_add(
    "rdfxml",
    "cdata",
    lambda n: _xml("<rdf:Description><e:p>" + "<![CDATA[x]]>" * n * 3 + "</e:p></rdf:Description>"),
)
_add(
    "rdfxml",
    "charrefs",
    lambda n: _xml("<rdf:Description><e:p>" + "&#10;" * n * 5 + "</e:p></rdf:Description>"),
)
_add(
    "rdfxml",
    "text pieces",
    lambda n: _xml("<rdf:Description><e:p>" + "a<!-- -->" * n * 3 + "</e:p></rdf:Description>"),
)
_add(
    "rdfxml",
    "IDs",
    lambda n: _xml(
        "".join(f"<rdf:Description rdf:ID='a{i}'/>" for i in range(n)), " xml:base='http://e/'"
    ),
)
_add(
    "rdfxml",
    "nodeIDs",
    lambda n: _xml("".join(f"<rdf:Description rdf:nodeID='a{i}' e:p='1'/>" for i in range(n))),
)
_add("rdfxml", "unclosed attr", lambda n: "<rdf:RDF a='" + "x" * n * 40)
_add("rdfxml", "blank lines", lambda n: "\n" * n * 40)
_add(
    "rdfxml",
    "xml:lang",
    lambda n: _xml(
        "<rdf:Description xml:lang='"
        + "-".join(["abcdefgh"] * n)
        + "'>"
        + "<e:p>1</e:p>" * n
        + "</rdf:Description>"
    ),
)
_add(
    "rdfxml",
    "children bases",
    lambda n: _xml(
        "<rdf:Description rdf:about=''/>"
        + "".join("<rdf:Description xml:base='a'/>" for i in range(n)),
        " xml:base='http://" + "s" * n * 20 + "/'",
    ),
)


# --- packed, and archives -------------------------------------------------------------------------------------------


def _archive(files: int) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for number in range(files):
            content = f"<urn:s> <urn:p> {number} .".encode()
            header = tarfile.TarInfo(f"{number:06}.ttl")
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    return written.getvalue()


_add("ttl", "an archive", lambda n: _archive(n // 4))
_add("ttl", "a packed archive", lambda n: gzip.compress(_archive(n // 4)))
_add("nq", "packed blank lines", lambda n: gzip.compress(b"\n" * n * 1000))
_add("nq", "packed comments", lambda n: gzip.compress(b"# c\n" * n * 100))
_add("nq", "many members", lambda n: gzip.compress(b"<urn:s> <urn:p> <urn:o> .\n") * n)
_add("nq", "zeros behind a member", lambda n: gzip.compress(b"") + bytes(n * 100))
_add("jelly", "rows", lambda n: jelly(PREDICATE, *[field(2, ALIKE + field(10, b"b"))] * n))
_add(
    "jelly",
    "repeated rows",
    lambda n: jelly(PREDICATE, field(2, ALIKE + field(10, b"b")), *[field(2, b"")] * n),
)
_add("jelly", "empty frames", lambda n: jelly() + bytes(n * 10))
_add(
    "jelly",
    "long IRIs",
    lambda n: jelly(
        PREDICATE,
        field(10, field(2, b"urn:" + b"x" * n * 20)),
        *[field(2, ALIKE + field(9, field(1, 1) + field(2, 1)))] * n,
    ),
)
