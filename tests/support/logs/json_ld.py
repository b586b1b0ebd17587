"""The JSON-LD processors of other people: what they make of documents, as N-Quads."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyoxigraph as ox
from pyld import jsonld  # type: ignore[import-untyped] # it has no type information

from tests.support.places import absent

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
