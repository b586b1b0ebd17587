"""Expressions with possessive quantifiers match alike where these are mended, also on a Python that needs it."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from construct_messages.query import tokens
from construct_messages.rdf.possessive import made_atomic
from tests.support.places import ROOT

QUERY = """PREFIX : <urn:> # 'a' "b
SELECT * { ?s a 'it\\'s', "", \"\"\"a "b" \\\\\"\"\", '''c''' ; :a.b.c [] , 1.5e0 .
  FILTER(?s = <urn:%20> || ?o < 5) }"""
OLD = Path("/usr/bin/python3")  # of Debian 12: 3.11.2


def internals(name: str) -> Any:
    return getattr(re, f"_{name}")


def mended(pattern: str) -> re.Pattern[str]:
    found = internals("compiler").compile(made_atomic(internals("parser").parse(pattern)))
    assert isinstance(found, re.Pattern)
    return found


@pytest.mark.parametrize("name", ["_TOKEN", "_TOKEN_AS_IT_IS", "_WORD"])
def test_the_grammar_of_queries_stays(name: str) -> None:
    pattern = getattr(tokens, name)
    found, expected = (
        [(match.lastgroup, match.span(), match.groups()) for match in each.finditer(QUERY)]
        for each in (mended(pattern), re.compile(pattern))
    )
    assert found == expected


@pytest.mark.parametrize(
    ("pattern", "text", "end"),
    [
        ("(?:ab?c)*+", "acabca", 5),
        ("((?!C).)++", "ABC", 2),
        ("(?:(?:ab|b)?+c){2}+|d", "abcbcc", 5),
        ("(?=(?:ab)*+c)(?:ab)++", "ababc", 4),
        ("[ab]*+c", "abac", 4),
    ],
)
def test_groups_are_matched(pattern: str, text: str, end: int) -> None:
    found = mended(pattern).match(text)
    assert found is not None
    assert found.end() == end
    parsed = str(made_atomic(internals("parser").parse(pattern)))
    assert ("POSSESSIVE_REPEAT" in parsed) == ("[ab]*+" in pattern)


@pytest.mark.process
def test_a_query_with_strings_on_an_old_python() -> None:
    asked = "import sys; print(*sys.version_info[:3])"
    known = OLD.exists() and subprocess.run([OLD, "-c", asked], capture_output=True, check=True)
    version = tuple(map(int, known.stdout.split())) if known else ()
    if not (3, 11) <= version < (3, 11, 5) or sys.version_info[:2] != (3, 11):
        pytest.skip("no Python 3.11.0 to 3.11.4, which could import what this one has")
    paths = os.pathsep.join([str(ROOT), sysconfig.get_path("platlib")])
    query = 'CONSTRUCT { ?s <urn:p> "a", "b\\"c"@en } WHERE { VALUES ?s { <urn:s> } }'
    command = [OLD, "-m", "construct_messages", "run", "--query", query]
    done = subprocess.run(
        [*command, "--source", str(ROOT / "queries" / "data" / "companies.ttl")],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (
        '# @message\n<urn:s> <urn:p> "a" .\n<urn:s> <urn:p> "b\\"c"@en .\n',
        "",
    )
