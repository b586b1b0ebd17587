"""Every case of `construct_cases.py` on every engine, by every way, against the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest

from construct_messages import SourceError, construct_messages
from tests import reference
from tests.conftest import absent
from tests.construct_cases import CASES, DATA, DECLARED, RDF_1_2, Case, Fails, Gives
from tests.engines import ENGINES, Missing, NotStarted

TEXTS = {"1.1": DATA, "1.2": RDF_1_2}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("engines")
    files = {name: folder / f"data-{name}.trig" for name in TEXTS}
    for name, file in files.items():
        file.write_text(TEXTS[name], encoding="utf-8")
    return files


@pytest.fixture(scope="session")
def stores() -> dict[str, ox.Store]:
    stores = {name: ox.Store() for name in TEXTS}
    for name, store in stores.items():
        store.load(TEXTS[name], ox.RdfFormat.TRIG)
    return stores


def direct(url: str, profile: str, case: Case) -> bytes:
    """The log that the package makes of what the engine answers."""
    stream = construct_messages(DECLARED + case.query, url, profile=profile, timeout=60, **case.options)
    return b"".join(stream.serialize("nq"))


WAYS = {"direct": direct}


def runs() -> Iterator[object]:
    for way in WAYS:
        for engine, kind in ENGINES.items():
            for case in CASES:
                if case.data == "1.1" or kind.rdf_1_2:  # see test_rdf_1_2_is_refused
                    yield pytest.param(way, engine, case, id=f"{way}-{engine}-{case.name}")


@pytest.mark.parametrize(("way", "engine", "case"), list(runs()))
def test_case(
    serve_with: Callable[[str, Path], str],
    files: dict[str, Path],
    stores: dict[str, ox.Store],
    way: str,
    engine: str,
    case: Case,
) -> None:
    via = WAYS[way]
    url, profile = serve_with(engine, files[case.data]), ENGINES[engine].profile
    expected = case.differs[engine].instead if engine in case.differs else case.fails
    if isinstance(expected, Fails):
        with pytest.raises(expected.error, match=expected.words) as caught:
            via(url, profile, case)
        assert type(caught.value) is expected.error
        assert caught.value.status == expected.status
        return
    found = reference.decode(via(url, profile, case))
    wanted = [] if case.fails else expected_of(case, stores[case.data])
    if isinstance(expected, Gives):
        differs = case.fails is not None or not reference.same(found, wanted, ordered=case.ordered)
        assert differs, f"{engine} does as the others do, now: leave out {case.differs[engine].reason!r}"
        wanted = [reference.instantiate(message, {}) for message in expected.messages]
    assert reference.same(found, wanted, ordered=case.ordered), f"{shown(found)}, not {shown(wanted)}"
    if case.ordered and "page_size" not in case.options:
        assert reference.as_one(found) == reference.as_one(wanted), "messages share other blank nodes"


def expected_of(case: Case, store: ox.Store) -> list[reference.Message]:
    options = {name: value for name, value in case.options.items() if name not in ("page_size", "group_order")}
    return reference.messages(store, case.select, case.template, **options)


def shown(log: list[reference.Message]) -> list[list[str]]:
    return [[f"{quad.subject} {quad.predicate} {quad.object} {quad.graph_name}" for quad in message] for message in log]


@pytest.mark.parametrize("engine", [name for name, engine in ENGINES.items() if not engine.rdf_1_2])
def test_rdf_1_2_is_refused(engine: str, files: dict[str, Path], tmp_path: Path) -> None:
    """The engines that the cases with triple terms are not asked of do not read them."""
    kind, query = ENGINES[engine], "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    try:
        with pytest.raises((NotStarted, SourceError)), kind.start(files["1.2"], tmp_path) as url:
            list(construct_messages(query, url, profile=kind.profile, timeout=60))
    except Missing as missing:
        absent(str(missing))
