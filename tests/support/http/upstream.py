"""Asking an upstream, and reading what it answers."""

from __future__ import annotations

from contextlib import aclosing

from construct_messages.rdf.terms import Term
from construct_messages.sparql.sources import Answer, Operation, Request
from construct_messages.sparql.sources.http.upstream import Upstream
from tests.support.http.clients import SELECT
from tests.support.http.fault_server import response

TEXT = "SELECT ?é { ?é ?p 'a+b & c' }"
ASK = Operation(TEXT, headers={"Accept": "text/csv"}, timeout=120)
PAGE = b"<!DOCTYPE html><title>secret page</title>"


async def body_of(answer: Answer) -> bytes:
    async with aclosing(answer.body) as body:
        return b"".join([chunk async for chunk in body])


async def solutions(upstream: Upstream, request: Request | None = None) -> list[tuple[Term, ...]]:
    async with aclosing(upstream.asolutions(request or Request(SELECT, timeout=120))) as batches:
        return [solution async for batch in batches for solution in batch]


# --- retries ---------------------------------------------------------------------------------------------------------


def busy(status: int, **headers: str) -> bytes:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return response(b"busy", "text/plain", status=f"{status} Busy", headers=given)
