"""The contract of servers and clients: nothing of it is written anywhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import construct_messages
from construct_messages.rdf import wire
from construct_messages.rdf.vocabulary import CONTEXT
from construct_messages.rdf.wire import (
    CONTEXT_RELATION,
    ENDPOINTS,
    SUBPROTOCOLS,
    Event,
    Header,
    Parameter,
    Property,
    close_code,
    refused_status,
)
from construct_messages.server.streams.resources import StreamIris

PACKAGE = Path(construct_messages.__file__).parent
WIRE = Path(wire.__file__)
STATIC = PACKAGE / "server/pages/static"
NAMES = {name.value for names in (Header, Event, Parameter, Property) for name in names} | {
    CONTEXT_RELATION
}
ORDINARY = {name for name in NAMES if re.fullmatch("[a-z]+", name)}
"""Names that other things have as well: they can be counted in the rooms of streams only."""
AMBIGUOUS = {
    *("after", "last", "inbox", "websocket", "grpc", "ldes"),  # arguments, actions, transports
    *("stream", "query", "next", "previous", "error", "sequence"),
}


def strings(path: Path) -> Iterator[str]:
    """The texts in a module, without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            if isinstance(node.value, bytes):
                yield node.value.decode(errors="replace")
            elif isinstance(node.value, str):
                yield node.value


def test_names_are_written_once() -> None:
    name = re.compile(rf"\b(?:{'|'.join(map(re.escape, NAMES - ORDINARY))})\b")
    found = {
        f"{path.relative_to(PACKAGE)}: {text}"
        for path in PACKAGE.rglob("*.py")
        if path != WIRE and name.search(path.read_text("utf-8"))
        for text in strings(path)
        if name.search(text)
    }
    assert found == set()


@pytest.mark.parametrize("room", ["streams", "server/streams", "feeds"])
def test_ordinary_names_are_written_once(room: str) -> None:
    found = {
        f"{path.relative_to(PACKAGE)}: {text}"
        for path in (PACKAGE / room).rglob("*.py")
        if path != WIRE
        for text in strings(path)
        if text in ORDINARY - AMBIGUOUS
    }
    assert found == set()


def test_the_page_keeps_to_the_contract() -> None:
    page = {path.name: path.read_text("utf-8") for path in STATIC.glob("*.js")}
    connections = page["connections.js"]
    assert f'addEventListener("{Event.MESSAGE}"' in connections
    assert f'addEventListener("{Event.ERROR}"' in connections
    assert f"REFUSED = {close_code(0)};" in connections
    assert f"NOT_CARRIED = {close_code(422)};" in connections
    assert connections.count(f"{Parameter.AFTER}=${{after}}") == 2
    assert {found for text in page.values() for found in re.findall(r'"(rdfm\.[^"]+)"', text)} <= (
        SUBPROTOCOLS.keys()
    )
    headers = {found for text in page.values() for found in re.findall(r'"(RDF-[^"]+)"', text)}
    assert headers <= {*Header}
    assert f'"{Header.KEY}"' in page["forms.js"]


def test_each_endpoint_is_described() -> None:
    iris = StreamIris("https://example.org/streams/a", "grpc://example.org")
    assert iris.endpoints.keys() == ENDPOINTS.keys()
    template = (PACKAGE / "server/pages/templates/stream.html").read_text("utf-8")
    (shown,) = re.findall(r"\{% for key, words in \((.*)\) if key in document %\}", template)
    assert set(re.findall(r'\("(\w+)", "', shown)) == ENDPOINTS.keys()
    assert {*Property} <= CONTEXT.keys()


def test_close_codes_stand_for_statuses() -> None:
    codes = {status: close_code(status) for status in range(400, 600)}
    assert {status: refused_status(code) for status, code in codes.items()} == {
        status: status for status in codes
    }
    # those for private use: RFC 6455, section 7.4.2
    assert all(4000 <= code < 5000 for code in codes.values())


@pytest.mark.parametrize("code", [None, 1000, 1011, 4000, 4399, 4600, 5422])
def test_other_codes_stand_for_none(code: int | None) -> None:
    assert refused_status(code) is None
