"""Every public function, called with wrong types: an error of ours, or one that names the argument, value and fix."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rdflib

from construct_messages import (
    ConstructQuery,
    Message,
    Quad,
    awrite_log,
    blank,
    construct_messages,
    iri,
    literal,
    open_source,
    read_log,
    transform,
    triple,
    write_log,
)
from construct_messages.continuous import WindowOptions, continuous
from construct_messages.errors import ConstructMessagesError, UsageError, WrongType
from construct_messages.feeds import publish, register, subscribe
from construct_messages.logs.spaces import fold, unfold
from construct_messages.options import JellyOptions
from construct_messages.query.rewrite import query_form
from construct_messages.rdf.arguments import checked
from construct_messages.streams import Description, Retention, StreamStore, open_store

QUERY = "CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s <urn:p> ?o }"
ONE = Message([Quad(iri("urn:s"), iri("urn:p"), literal("o"))])
NOWHERE = "http://127.0.0.1:9/x"
WRONG: list[Any] = [
    *(None, 5, -1, 1.5, True, b"x", "x", object(), lambda *_: 1),
    *([], [5], [None], ["x"], [b"x"], {}, {"a": 5}, {5: "a"}, (), {5}),
]

FUNCTIONS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "literal": (literal, ["x"]),
    "iri": (iri, ["urn:x"]),
    "blank": (blank, ["x"]),
    "triple": (triple, [iri("urn:s"), iri("urn:p"), iri("urn:o")]),
    "Message": (Message, [[]]),
    "Message.from_pyoxigraph": (Message.from_pyoxigraph, [[]]),
    "Message.from_rdflib": (Message.from_rdflib, [rdflib.Graph()]),
    "construct_messages": (construct_messages, [QUERY, "d.ttl"]),
    "open_source": (open_source, ["d.ttl"]),
    "query_form": (query_form, [QUERY]),
    "ConstructQuery.parse": (ConstructQuery.parse, [QUERY]),
    "transform": (transform, [QUERY, [ONE]]),
    "read_log": (read_log, [b"<urn:s> <urn:p> <urn:o> ."]),
    "write_log": (write_log, [[ONE], "log.nq"]),
    "awrite_log": (awrite_log, [[ONE], "log.nq"]),
    "JellyOptions": (JellyOptions, []),
    "fold": (fold, [ONE]),
    "unfold": (unfold, [fold(ONE)]),
    "continuous": (continuous, [QUERY, {}]),
    "WindowOptions": (WindowOptions, []),
    "Retention": (Retention, []),
    "Description": (Description, []),
    "open_store": (open_store, ["streams.db"]),
}

# each is called, and nothing is awaited: what would be asked of a server is not sent
ASYNCHRONOUS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "publish": (publish, [[ONE], NOWHERE]),
    "subscribe": (subscribe, [NOWHERE]),
    "register": (register, [QUERY, NOWHERE]),
}

METHODS: dict[str, list[Any]] = {
    "create": ["b"],
    "describe": ["a", Description()],
    "append": ["a", ONE],
    "append_all": ["a", [ONE]],
    "trim": ["a", 0],
    "commit": ["owner", {}],
    "read": ["a"],
    "delete": ["b"],
}


def run(made: Any) -> None:
    """Uses up what a function returned."""
    if inspect.iscoroutine(made):
        asyncio.run(made)
    elif isinstance(made, StreamStore):
        made.close()
    elif hasattr(made, "__next__") or (hasattr(made, "__iter__") and not isinstance(made, str)):
        list(made)
    elif hasattr(made, "__aiter__"):
        asyncio.run(all_of(made))


async def all_of(made: Any) -> list[Any]:
    return [each async for each in made]


def calls(
    function: Callable[..., Any], right: list[Any]
) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Calls with one wrong argument each, and the name of that."""
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    for place, name in enumerate(names):
        for value in WRONG:
            if place < len(right):
                yield name, [*right[:place], value, *right[place + 1 :]], {}
            else:
                yield name, right, {name: value}


def complaints(
    function: Callable[..., Any], right: list[Any], use: Callable[[Any], None] = run
) -> list[str]:
    """What calls with wrong arguments raise, where it is none of our errors, or does not say what is wrong."""
    found = []
    for name, arguments, options in calls(function, right):
        try:
            use(function(*arguments, **options))
        except WrongType as error:
            if f": {name} must be " not in error.message or not error.hint:
                found.append(f"{name}: {error}")
        except ConstructMessagesError:
            pass
        except Exception as error:  # noqa: BLE001 - whatever comes is looked at
            found.append(f"{arguments} {options}: {type(error).__name__}: {error}")
    return found


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.ttl").write_text("<urn:s> <urn:p> 1 .", encoding="utf-8")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_types_are_named(name: str) -> None:
    assert complaints(*FUNCTIONS[name]) == []


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_wrong_types_are_named_before_anything_is_sent(name: str) -> None:
    function, right = ASYNCHRONOUS[name]

    def refused(made: Any) -> None:
        if inspect.iscoroutine(made):
            made.close()

    # a coroutine checks when it begins
    if inspect.iscoroutinefunction(function):
        with pytest.raises(WrongType, match="url must be str, not None"):
            asyncio.run(function(right[0], None))
    assert complaints(function, right, refused) == []


@pytest.mark.parametrize("name", METHODS)
def test_no_wrong_type_ends_a_store(name: str, tmp_path: Path) -> None:
    with open_store(tmp_path / "streams.db") as store:
        store.create("a")
        method = getattr(store, name)

        def run_but(made: Any) -> None:
            if not inspect.isgenerator(made):
                run(made)

        assert complaints(method, METHODS[name], run_but) == []
        assert store.append_all("a", [ONE, ONE])
        assert store.latest("a", 1)[0].message == ONE


@pytest.mark.parametrize(
    ("call", "words", "hint"),
    [
        (
            lambda: literal(5, datatype="urn:t"),
            "literal(): value must be str, not 5 (int)",
            'write it as in literal("5", datatype=…)',
        ),  # type: ignore[arg-type]
        (
            lambda: Message([("<s>", "<p>", "<o>")]),  # type: ignore[list-item]
            "Message(): quads must be an iterable of Quads, not ('<s>', '<p>', '<o>') (tuple)",
            "write Quad(iri(…), iri(…), literal(…))",
        ),
        (
            lambda: Message(rdflib.Graph().parse(data="<urn:s> <urn:p> <urn:o> .")),  # type: ignore[arg-type]
            "Message(): quads must be an iterable of Quads, not (rdflib.term.URIRef('urn:s'),"
            " rdflib.term.URIRef('urn:p'), rdflib.term.URIRef('urn:o')) (tuple)",
            "write Quad(iri(…), iri(…), literal(…)), or use Message.from_rdflib",
        ),
        (
            lambda: write_log(None, "log.nq"),  # type: ignore[arg-type]
            "write_log(): messages must be Iterable[Message], not None",
            "pass Iterable[Message]",
        ),
        (
            lambda: query_form(b"ASK {}"),  # type: ignore[arg-type]
            "query_form(): text must be str | QueryText, not b'ASK {}' (bytes)",
            "decode it: value.decode()",
        ),
        (
            lambda: Retention(count="5"),  # type: ignore[arg-type]
            "Retention(): count must be int | None, not '5' (str)",
            "pass int | None, or leave it out",
        ),
    ],
)
def test_what_errors_say(call: Callable[[], object], words: str, hint: str) -> None:
    with pytest.raises(WrongType) as raised:
        call()
    assert (raised.value.message, raised.value.hint) == (words, hint)
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, UsageError)
    assert raised.value.status == 400


def test_what_is_known_to_type_checkers_only_is_not_checked() -> None:
    @checked
    def function(value: Nowhere, *, count: int = 1) -> object:  # type: ignore[name-defined] # noqa: F821
        return value, count

    assert function("anything") == ("anything", 1)
    with pytest.raises(WrongType, match=r"function\(\): count must be int, not None"):
        function("anything", count=None)
