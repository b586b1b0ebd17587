"""Asking an endpoint over the page, as tests do."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any, Final

from tests.support.pages.browser import Browser

EVERYTHING: Final = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } ORDER BY ?o"

TYPED: Final = """
const typed = () => page.evaluate(async () => {
  const { EditorView } = await import(document.querySelector("link[rel=modulepreload]").href);
  const { state } = EditorView.findFromDOM(document.getElementById("editor"));
  return { text: state.doc.toString(), cursor: state.selection.main.head };
});
const held = async () => [(await typed()).text, await page.inputValue("#endpoint")];
const until = async (text) => {
  while ((await typed()).text !== text) await new Promise((done) => setTimeout(done, 20));
};
"""
"""Functions: the whole text of the editor, which shows a part, and its cursor; with the endpoint; wait for a text."""

RUN: Final = """
await page.fill("#query", given.query);
await page.press("#query", "Control+Enter");
"""
"""Runs the query `given.query`, and does not wait for its answer."""

ENDED: Final = 'await page.waitForSelector("#banner:not([hidden])");'
"""Waits for what is said of a log that has ended."""

FRAMES: Final = """
await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
"""
"""Waits for what the page paints in its next frame."""

BANNER: Final = 'return { kind: await page.getAttribute("#banner", "class"), text: await page.textContent("#banner") };'


def shown(cards: int) -> str:
    """Waits for so many cards: they are made in the frames after the messages have come, and after the banner."""
    return (
        'await page.waitForFunction((least) => document.querySelectorAll(".card").length >= least, '
        f"{cards});\n"
    )


async def choose(page: Browser, endpoint: str) -> None:
    """Chooses an endpoint by its name."""
    await page.run('await page.selectOption("#endpoint", given.path)', path=f"{endpoint}/sparql")


async def ask(page: Browser, endpoint: str, query: str = EVERYTHING) -> Any:
    """Runs a query whose answer is a log, or fails, to its end; gives the banner."""
    await choose(page, endpoint)
    return await page.run(RUN + ENDED + BANNER, query=query)


def solutions(count: int) -> bytes:
    """A SPARQL result of so many solutions."""
    bindings = [
        {
            "s": {"type": "uri", "value": f"http://example.org/{number}"},
            "p": {"type": "uri", "value": "urn:p"},
            "o": {"type": "literal", "value": f"value {number}"},
        }
        for number in range(1, count + 1)
    ]
    return json.dumps(
        {"head": {"vars": ["s", "p", "o"]}, "results": {"bindings": bindings}}
    ).encode()


def packed(parts: Iterable[bytes]) -> bytes:
    """The parts of a body in gzip: much of the same takes no room."""
    packing = zlib.compressobj(1, wbits=31)
    return b"".join([*map(packing.compress, parts), packing.flush()])


def packed_solutions(count: int, characters: int) -> bytes:
    """A SPARQL result of so many solutions with a literal of so many characters each, in gzip."""
    one = b'{"o": {"type": "literal", "value": "%s"}}' % (b"x" * characters)
    head, tail = b'{"head": {"vars": ["o"]}, "results": {"bindings": [', b"]}}"
    return packed(chain([head, one], repeat(b"," + one, count - 1), [tail]))
