"""One result, and both HTTP clients reading it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

from construct_messages.errors import ConstructMessagesError
from construct_messages.query.select import Select
from construct_messages.rdf.terms import Term, iri, literal
from construct_messages.sparql.sources import Request, Source
from tests.support.http.fault_server import JSON, TSV, XML
from tests.support.results.documents import json_document, tsv_document, xml_document

CLIENTS: Final = ("blocking", "asyncio")
SELECT = Select("", "SELECT ?s ?o ", ("s", "o"), "WHERE ", "{ ?s <urn:p> ?o }")
TABLE = [(iri(f"urn:{n}"), literal(f"label {n}", language="en")) for n in range(12)]
VARIABLES = ("s", "o")
BODIES = {
    "json": (json_document(VARIABLES, TABLE), JSON),
    "xml": (xml_document(VARIABLES, TABLE).rstrip(), XML),
    "tsv": (tsv_document(VARIABLES, TABLE), TSV),
}
JSON_BODY = BODIES["json"][0]


def read(
    client: str, source: Source, request: Request | None = None
) -> tuple[list[tuple[Term, ...]], ConstructMessagesError | None]:
    """The solutions that came, and the error behind them."""
    request = Request(SELECT, timeout=120) if request is None else request
    came: list[tuple[Term, ...]] = []

    async def gather() -> None:
        async with aclosing(source.asolutions(request)) as batches:
            async for batch in batches:
                came.extend(batch)

    try:
        if client == "asyncio":
            asyncio.run(gather())
        else:
            for batch in source.solutions(request):
                came.extend(batch)
    except ConstructMessagesError as error:
        return came, error
    return came, None
