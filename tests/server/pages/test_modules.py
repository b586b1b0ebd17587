"""The page's readers of N-Quads and of logs, beside those of the package: the W3C's tests, and our cases of logs."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyoxigraph as ox
import pytest

from construct_messages.errors import TermError
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, parse_term
from tests.support.logs.cases.lines import READ
from tests.support.pages.modules import Modules
from tests.support.places import shared_path

pytestmark = pytest.mark.engine

SIZES = (1, 2, 7, 1 << 20)
"""The sizes of the pieces that logs come in."""

READ_LOGS = """
import { CutError, LogError, LogReader } from "./log.js";
import { LineError, parseLine, termText } from "./terms.js";
function read(bytes, syntax, size) {
  const messages = [];
  let error = null;
  const reader = new LogReader((message) => messages.push(message.lines), syntax);
  try {
    for (let start = 0; start < bytes.length; start += size) reader.feed(bytes.subarray(start, start + size));
    reader.close();
  } catch (thrown) {
    if (!(thrown instanceof LogError)) throw thrown;
    error = thrown instanceof CutError ? "cut" : "malformed";
  }
  return { messages, error };
}
function terms(line) {
  try {
    const { subject, predicate, object, graph } = parseLine(line);
    return [subject, predicate, object, graph].map((term) => term && termText(term));
  } catch (thrown) {
    if (!(thrown instanceof LineError)) throw thrown;
    return null;
  }
}
function main({ logs, sizes }) {
  return logs.map(({ data, syntax }) => {
    const bytes = new Uint8Array(Buffer.from(data, "base64"));
    const [first, ...others] = sizes.map((size) => read(bytes, syntax, size));
    // messages that came in one piece with what is no UTF-8 are not given
    const same = (other) => JSON.stringify(first.error === "malformed" ? other.error : other);
    const differ = others.some((other) => same(other) !== same(first));
    return { ...first, differ, messages: first.messages.map((lines) => lines.map(terms)) };
  });
}
"""


class Read(NamedTuple):
    """What the page reads from a log; the messages before a statement that is none."""

    messages: list[Message]
    error: str | None
    broken: bool


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    return Modules(tmp_path_factory.mktemp("modules"))


def read_logs(modules: Modules, logs: list[tuple[bytes, str | None]]) -> list[Read]:
    given = [{"data": base64.b64encode(data).decode(), "syntax": syntax} for data, syntax in logs]
    found = modules.run(READ_LOGS, {"logs": given, "sizes": SIZES})
    assert not any(log["differ"] for log in found), "the pieces must make no difference"
    return [read_of(log["messages"], log["error"]) for log in found]


def read_of(messages: list[list[list[str | None] | None]], error: str | None) -> Read:
    whole: list[Message] = []
    for statements in messages:
        if None in statements:
            return Read(whole, error, True)
        whole.append(Message(quad_of(terms) for terms in statements if terms is not None))
    return Read(whole, error, False)


def quad_of(terms: list[Any]) -> Quad:
    subject, predicate, object, graph = (None if term is None else term_of(term) for term in terms)
    assert subject is not None
    assert predicate is not None
    assert object is not None
    return Quad(subject, predicate, object, graph)


def term_of(text: str) -> Term:
    try:
        return parse_term(text)
    except TermError:  # the page passes malformed IRIs, as a lenient server does
        return Term(text)


# --- the W3C's documents ---------------------------------------------------------------------------------------------

PASSED = {
    "bad-uri": "a lenient server passes malformed IRIs as they came",
    "bad-lang": "likewise malformed language tags",
    "langdir-bad-4": "likewise",
}


@pytest.mark.slow
@pytest.mark.suite
@pytest.mark.parametrize(
    "suite",
    ["rdf11/rdf-n-quads", "rdf11/rdf-n-triples", "rdf12/rdf-n-quads", "rdf12/rdf-n-triples"],
)
def test_documents_of_the_w3c(modules: Modules, suite: str) -> None:
    """Those that are right give the quads that pyoxigraph gives; those that are wrong are refused."""
    folder = shared_path(f"suites/w3c/rdf/{suite}")
    paths = sorted(path for path in folder.rglob("*") if path.suffix in (".nq", ".nt"))
    assert len(paths) > 60
    read = read_logs(modules, [(path.read_bytes(), None) for path in paths])
    passed = []
    for path, (messages, error, broken) in zip(paths, read, strict=True):
        refused = broken or error is not None
        try:
            format = ox.RdfFormat.N_QUADS if path.suffix == ".nq" else ox.RdfFormat.N_TRIPLES
            expected = to_message(ox.parse(path.read_bytes(), format=format))
        except SyntaxError:
            if not refused:
                passed.append(path.stem)
        else:
            assert (refused, messages) == (False, [expected] if expected else []), path.name
    assert [name for name in passed if not any(part in name for part in PASSED)] == []


# --- our cases of logs -----------------------------------------------------------------------------------------------

OF_VERSIONS = ("a triple term in basic", "a triple term below 1.2", "a direction below 1.2")
"""The server checks what a version has not."""


def test_logs(modules: Modules) -> None:
    """As the package reads them; but a message that its delimiter does not end is one that was cut."""
    cases: Mapping[str, Any] = {
        name: case for name, case in READ.items() if name not in OF_VERSIONS
    }
    texts = [text if isinstance(text, bytes) else text.encode() for text, *_ in cases.values()]
    syntaxes = [case[1] for case in cases.values()]
    read = read_logs(modules, list(zip(texts, syntaxes, strict=True)))
    ended = read_logs(
        modules,
        [(text + b"\nMESSAGE\n", label) for text, label in zip(texts, syntaxes, strict=True)],
    )
    cut = 0
    for (name, (_, _, expected, wrong)), own, whole in zip(cases.items(), read, ended, strict=True):
        if wrong is not None:
            assert own.error is not None or own.broken, name
            assert own.messages[: len(expected)] == expected, name
        elif own.error == "cut":
            cut += 1
            assert (own.messages, own.broken) == (expected[:-1], False), name
            assert whole == (expected, None, False), name
        else:
            assert own == (expected, None, False), name
    assert cut == 9


def test_a_log_is_whole_at_the_end_of_a_message_only(modules: Modules) -> None:
    log = (
        'VERSION "1.2-messages"\n<urn:s> <urn:p> "\u00e9\U0001f600" .\nMESSAGE\nMESSAGE\n'.encode()
    )
    read = read_logs(modules, [(log[:end], "1.2-messages") for end in range(len(log) + 1)])
    whole = [end for end, (_, error, broken) in enumerate(read) if error is None and not broken]
    message = Message([Quad(Term("<urn:s>"), Term("<urn:p>"), Term('"\u00e9\U0001f600"'))])
    ends = {
        end
        for end in range(1, len(log) + 1)
        if log[:end].endswith((b'messages"', b"\n", b"MESSAGE"))
    }
    inside = {end for end in ends if log[:end].endswith(b" .\n")}
    assert set(whole) == ends - inside
    assert read[-1].messages == [message, Message()]


# --- what may be a link ----------------------------------------------------------------------------------------------


LINKS = ("http://example.org/a", "HTTPS://example.org/", "mailto:a@example.org")
NO_LINKS = (
    *(
        "javascript:alert(1)",
        "JavaScript:alert(1)//http://",
        "data:text/html,<script>alert(1)</script>",
    ),
    *(
        "file:///etc/passwd",
        "blob:http://example.org/1",
        "vbscript:x",
        "urn:example:a",
        "intent://x",
    ),
    *("http://", "https://[", "\thttp://example.org/", "java\nscript:http://x", ""),
)


def test_links(modules: Modules) -> None:
    script = 'import { isLink } from "./terms.js";\nconst main = (iris) => iris.filter(isLink);'
    assert modules.run(script, [*LINKS, *NO_LINKS]) == list(LINKS)


@pytest.mark.slow
def test_a_long_literal_takes_linear_time(modules: Modules) -> None:
    """Ten million characters, and as many escapes, exhaust no stack."""
    script = """import { parseLine } from "./terms.js";
    const main = (lengths) => lengths.map((length) => [
      parseLine(`<urn:s> <urn:p> "${"x".repeat(length)}" .`).object.value.length,
      parseLine(`<urn:s> <urn:p> "${"\\\\\\\\".repeat(length / 2)}" .`).object.value.length,
      parseLine(`<urn:s> <urn:p> "${'\\\\"'.repeat(length / 2)}" .`).object.value.length,
      parseLine(`<urn:s> <urn:p> "${"\\\\U0001F600".repeat(length / 100)}" .`).object.value.length,
    ]);"""
    assert modules.run(script, [10_000_000]) == [[10_000_000, 5_000_000, 5_000_000, 200_000]]


# --- facts -----------------------------------------------------------------------------------------------------------

FACTS = """
import { Facts } from "./facts.js";
async function main() {
  const waiting = [];
  globalThis.setTimeout = (call) => waiting.push(call);
  const shown = [];
  let last = 1;
  const facts = new Facts("http://example.org/", {
    querySelectorAll: () => [{ dataset: { fact: "kept" }, set textContent(text) { shown.push(text); } }],
    getElementById: () => ({ dataset: { last: 1 } }),
  });
  globalThis.fetch = async () => {
    const answer = { firstSequence: 1, lastSequence: last };
    if (last++ === 1) facts.soon();  // an element comes while the description is under way
    return { ok: true, json: async () => answer };
  };
  facts.soon();
  while (waiting.length) await waiting.shift()();
  return shown;
}
"""


def test_what_comes_during_a_request_is_asked_for_again(modules: Modules) -> None:
    assert modules.run(FACTS, None) == ["1: 1 to 1", "2: 1 to 2"]
