"""Dirty data on Spark: malformed IRIs and language tags of dumps and logs are refused, or passed and counted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from construct_messages import ConstructMessagesError, Message, Quad, read_log, write_log
from construct_messages.errors import QuadsError
from construct_messages.query.algebra.nodes import Call, Var
from construct_messages.rdf.formats import N_QUADS, TURTLE
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.terms import RDF, Term, is_iri, literal

pytest.importorskip("pyspark")

from construct_messages.spark.logs import register
from construct_messages.spark.logs.writer import LogFormat, write_file
from construct_messages.spark.quads.loading import count_malformed, load_quads
from construct_messages.spark.session import translated
from construct_messages.sparql.relational.expressions import terms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

DIRTY = f"""\
<http://e/100%> <http://e/p> "x"@zh-classical .
<http://e/s> <http://e/p> <http://e/[b]> .
<http://e/s> <http://e/p> <<( <http://e/s> <http://e/%zz> "y"@a )>> .
<http://e/s> <http://e/p> "<http://e/100%>" .
<http://e/s> <http://e/p> "Wine"^^<{RDF}langString> .
"""
RDFM = find_syntax("rdfm")


@pytest.mark.parametrize("extension", ["nt", "nq", "ttl", "nt.xz"])
def test_dumps(spark: SparkSession, tmp_path: Path, extension: str) -> None:
    """Issue 13, 9: as for logs and files."""
    import lzma

    path = tmp_path / f"dump.{extension}"
    path.write_bytes(lzma.compress(DIRTY.encode()) if extension.endswith(".xz") else DIRTY.encode())
    with pytest.raises(QuadsError), translated():
        load_quads(spark, path).collect()
    quads = load_quads(spark, path, lenient=True)
    found = {f"{row.subject} {row.predicate} {row.object} ." for row in quads.collect()}
    assert found == set(DIRTY.splitlines())
    assert count_malformed(quads) == 6


# what a lenient reader of logs leaves out, or percent-encodes
WORSE = [
    "<http://e/a b> <http://e/p> <http://e/o> .",
    "<a> <http://e/p> <http://e/o> .",
    '"x" <http://e/p> "y" .',
    '<http://e/s> <http://e/p> "x"@en_US .',
    '<http://e/s> <http://e/p> ""@ .',
    '<http://e/s> <http://e/p> "\\uD800" .',
    '<http://e/s> <http://e/p> "\\U00110000" .',
    '<http://e/s> <http://e/p> "C:\\windows" .',
    '<http://e/s> <http://e/p> "2"^^<unit/kg> .',
    "<http://e/s> _:b <http://e/o> .",
]


def test_what_is_worse_goes_into_quarantine(spark: SparkSession, tmp_path: Path) -> None:
    """Every sound row is kept, as a lenient reader of logs keeps it; each bad line has its reason."""
    path, quarantine = tmp_path / "dump.nt", str(tmp_path / "quarantine")
    sound = [f'<http://e/s{n}> <http://e/p> "{n}" .' for n in range(100)]
    mixed = [line for n, bad in enumerate(WORSE) for line in (*sound[10 * n : 10 * n + 10], bad)]
    path.write_text(DIRTY + "\n".join(mixed))
    quads = load_quads(spark, path, on_error="quarantine", quarantine=quarantine, lenient=True)
    found = {f"{row.subject} {row.predicate} {row.object} ." for row in quads.collect()}
    assert found == {*DIRTY.splitlines(), *sound}
    failures = spark.read.parquet(quarantine).collect()
    assert {row.text for row in failures} == set(WORSE)
    assert all(row.reason for row in failures)
    (message,) = read_log(path, lenient=True)
    encoded = "<http://e/a%20b> <http://e/p> <http://e/o> ."
    assert {str(quad) for quad in message} == found | {encoded}


def test_logs(spark: SparkSession, tmp_path: Path) -> None:
    """Issue 13, 9: read and written leniently where that is asked for at both ends."""
    s, p = Term("<http://e/s>"), Term("<http://e/p>")
    messages = [
        Message([Quad(Term("<http://e/100%>"), p, Term('"x"@a'))]),
        Message(),
        Message([Quad(s, p, s)]),
    ]
    for name in ("log.nq", "log.ttl"):  # one is cut into blocks, the other is read as a whole
        write_log(messages, tmp_path / name, lenient=True)
        register(spark)
        with pytest.raises(ConstructMessagesError), translated():
            spark.read.format("rdfm").load(str(tmp_path / name)).collect()
        frame = spark.read.format("rdfm").option("lenient", True).load(str(tmp_path / name))
        target = tmp_path / f"{name}.out.ttl"
        with pytest.raises(ConstructMessagesError):
            write_file(frame, target, LogFormat(TURTLE, RDFM, graphs=False))
        assert not target.exists()
        write_file(frame, target, LogFormat(TURTLE, RDFM, graphs=False, lenient=True))
        assert list(read_log(target, lenient=True)) == messages
        write_file(frame, tmp_path / f"{name}.out.nq", LogFormat(N_QUADS, RDFM))
        assert list(read_log(tmp_path / f"{name}.out.nq", lenient=True)) == messages


TEXTS = [
    *(
        "http://e/100%",
        "http://e/%zz",
        "http://e/[",
        "http://e/##",
        "http://e:80x/",
        "http://e/\ue000",
        "http://e/\x7f",
    ),
    *(
        "http://e/\ufffe",
        "http://e/?\ue000",
        "http://[::1]/",
        "http://[::g]/",
        "http://e/é",
        "http://e/\x85",
        "urn:a",
    ),
    *(
        "http://e/\ufdd0",
        "http://u@h:80/",
        "http://u@v@h/",
        "http://e/a b",
        "mailto:a@b",
        "a:",
        "//e/",
        "",
        "x",
    ),
]


def test_iris_that_queries_make() -> None:
    """Issue 13, 9: the function IRI makes none that is no IRI."""
    made = terms(Call("IRI", (Var("x"),)), ["x"], [(literal(text),) for text in TEXTS])
    assert made == [f"<{text}>" if is_iri(text) else None for text in TEXTS]
