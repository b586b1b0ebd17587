"""The JSON-LD processors of other people: what they make of documents, as N-Quads."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pyoxigraph as ox
from pyld import jsonld  # type: ignore[import-untyped] # it has no type information

from tests.support.places import absent, shared_path

NODE = Path(os.environ.get("CONSTRUCT_MESSAGES_NODE", "node_modules-are-nowhere"))
TO_RDF = """
const jsonld = require("jsonld");
let text = "";
process.stdin.on("data", chunk => text += chunk).on("end", async () => {
  const out = [];
  for (const document of JSON.parse(text)) out.push(await jsonld.toRDF(document, {format: "application/n-quads"}));
  process.stdout.write(JSON.stringify(out));
});
"""


def by_pyld(documents: list[Any]) -> list[str]:
    return [jsonld.to_rdf(document, {"format": "application/n-quads"}) for document in documents]


def by_pyoxigraph(documents: list[Any]) -> list[str]:
    parsed = [ox.parse(json.dumps(document), format=ox.RdfFormat.JSON_LD) for document in documents]
    return ["\n".join(f"{quad} ." for quad in quads) for quads in parsed]


def by_jsonld_js(documents: list[Any]) -> list[str]:
    if not (NODE / "node_modules" / "jsonld").exists():
        absent(
            "npm's jsonld is absent: set CONSTRUCT_MESSAGES_NODE to the folder that holds its node_modules"
        )
    run = subprocess.run(
        ["node", "-e", TO_RDF],
        input=json.dumps(documents),
        cwd=NODE,
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = json.loads(run.stdout)
    return found


# --- the toRdf suite of JSON-LD 1.1 -----------------------------------------------------------------------------------

BASE = "https://w3c.github.io/json-ld-api/tests/"

ABSENT = {"#ter56"}
"""Whose input is part of another suite."""


@cache
def suite() -> dict[str, Any]:
    manifest = shared_path("suites/w3c/json-ld/toRdf-manifest.jsonld")
    return {
        case["@id"]: case | {"folder": manifest.parent}
        for case in json.loads(manifest.read_text())["sequence"]
        if case["@id"] not in ABSENT
    }


_known: dict[Path, dict[str, Any]] = {}


def known(folder: Path) -> dict[str, Any]:
    """Every file of these tests that may be a context, by its IRI."""
    if folder not in _known:
        _known[folder] = {
            BASE + str(path.relative_to(folder)): json.loads(path.read_text())
            for path in (folder / "toRdf").rglob("*.jsonld")
        }
    return _known[folder]
