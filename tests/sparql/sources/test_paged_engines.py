"""Results read in pages from real engines: the same messages as the embedded engine finds, compared as multisets.

The data are what orders are made of differently: unbound variables, terms of several types, language tags, blank nodes,
equal keys. Virtuoso returns 10,000 solutions at most, so its results are larger.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import pyoxigraph as ox
import pytest

from construct_messages import construct_messages
from construct_messages.errors import IncompleteResult, SourceError, SourceTimeout
from construct_messages.rdf.terms import Term, map_blanks
from construct_messages.sparql.sources.http.profiles import PROFILES
from tests.support.engines.servers import ALL
from tests.support.http.relay import relay
from tests.support.queries.options import arguments
from tests.support.waiting import SECONDS, eventually

pytestmark = [pytest.mark.engine, pytest.mark.slow]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_INTEGER, _DATE = f"{_XSD}integer", f"{_XSD}date"

SUBJECTS = {"virtuoso": 11_000, "oxigraph": 3_000, "rdflib": 400, "comunica": 400} | dict.fromkeys(
    ("fuseki", "rdf4j", "blazegraph", "ontop"), 1_500
)
SIZES = {"virtuoso": 3_000, "oxigraph": 700, "rdflib": 150, "comunica": 150} | dict.fromkeys(
    ("fuseki", "rdf4j", "blazegraph", "ontop"), 400
)

MIXED = "{ ?s <urn:mixed> ?o }"
OPTIONAL = "{ ?s <urn:key> ?k OPTIONAL { ?s <urn:some> ?v } }"
# a template, a pattern, and the solution modifiers
QUERIES = {
    "optional": ("?s <urn:v> ?v ; <urn:k> ?k", OPTIONAL, ""),
    "an optional value first": ("?v <urn:of> ?s . ?s <urn:k> ?k", OPTIONAL, ""),
    "optional in an own order": ("?s <urn:v> ?v", OPTIONAL, "ORDER BY ?v"),
    "optional in a descending order": ("?s <urn:v> ?v", OPTIONAL, "ORDER BY DESC(?v)"),
    "mixed types": ("?s <urn:o> ?o", MIXED, ""),
    "mixed types alone": ("<urn:s> <urn:o> ?o", MIXED, ""),
    "mixed types in an own order": ("?s <urn:o> ?o", MIXED, "ORDER BY ?o"),
    "mixed types in a descending order": ("?s <urn:o> ?o", MIXED, "ORDER BY DESC(?o)"),
    "equal keys": ("<urn:s> <urn:k> ?k", "{ ?s <urn:key> ?k }", ""),
    "equal keys in an own order": ("?s <urn:k> ?k", "{ ?s <urn:key> ?k }", "ORDER BY ?k"),
    "an order by what is not projected": (
        "?s <urn:is> <urn:S>",
        "{ ?s <urn:key> ?k }",
        "ORDER BY DESC(?k)",
    ),
    "blank nodes": ("?b <urn:k> ?k", "{ ?b <urn:blank> ?k }", ""),
    "values of this request": (
        "?id <urn:of> ?s ; <urn:at> ?now",
        "{ ?s <urn:key> ?k BIND(STRUUID() AS ?id) BIND(NOW() AS ?now) }",
        "",
    ),
    "an own limit": ("?s <urn:o> ?o", MIXED, "ORDER BY ?s ?o LIMIT {most} OFFSET 7"),
}


def _lines(subjects: int) -> Iterator[str]:
    for n in range(subjects):
        s = f"<urn:s{n}>"
        yield f'{s} <urn:key> "{n % 7}"^^<{_INTEGER}> .'
        if n % 2:
            yield f'{s} <urn:some> "v{n}" .'
        mixed = (
            f'"{n}"^^<{_INTEGER}>',
            f'"x{n}"',
            f"<urn:o{n}>",
            f'"l{n // 9}"@en',
            f'"l{n // 9}"@de',
            f'"l{n // 9}"',
            f'"2020-01-{n % 28 + 1:02}"^^<{_DATE}>',
            f'"{n}"',
            f"<urn:s{n // 2}>",
        )
        yield f"{s} <urn:mixed> {mixed[n % 9]} ."
        if n % 5 == 0:
            yield f'_:b{n} <urn:blank> "{n % 3}"^^<{_INTEGER}> .'


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("paged")

    def file_for(engine: str) -> Path:
        file = folder / f"{SUBJECTS[engine]}.nt"
        if not file.exists():
            file.write_text("\n".join(_lines(SUBJECTS[engine])) + "\n")
        return file

    return file_for


def _solutions(query: str, source: object, **options: object) -> Counter[frozenset[str]]:
    """The messages with every blank node the same, and with values that are new in each evaluation left out."""
    found: Counter[frozenset[str]] = Counter()
    for message in construct_messages(query, source, **arguments({**options, "timeout": SECONDS})):  # type: ignore[arg-type] # any source
        found[frozenset(" ".join(_same(term) for term in quad[:3]) for quad in message)] += 1
    return found


def _same(term: Term) -> str:
    if len(term) == 38 and term.startswith('"'):
        return "an id"
    if term.endswith(f"^^<{_XSD}dateTime>"):
        return "a time"
    return map_blanks(term, lambda _: Term("_:"))


# Oxigraph's order by value is none where strings and numbers meet: its process may abort
ABORT = {
    ("oxigraph", name)
    for name in ("mixed types in an own order", "mixed types in a descending order")
}
LARGE = ("optional", "optional in an own order", "mixed types")


@pytest.mark.one_in(6)
@pytest.mark.parametrize("engine", SIZES)
@pytest.mark.parametrize("name", QUERIES)
def test_pages_are_the_whole(
    serve_with: Callable[[str, Path], str],
    data: Callable[[str], Path],
    engine: str,
    name: str,
) -> None:
    """Issue 26, 0."""
    if (engine, name) in ABORT:
        pytest.skip("Oxigraph may abort")
    check_pages(serve_with, data, engine, SIZES[engine], name)


@pytest.mark.parametrize("name", LARGE)
def test_large_pages_of_virtuoso_are_the_whole(
    serve_with: Callable[[str, Path], str], data: Callable[[str], Path], name: str
) -> None:
    check_pages(serve_with, data, "virtuoso", 10_000, name)


def check_pages(
    serve_with: Callable[[str, Path], str],
    data: Callable[[str], Path],
    engine: str,
    size: int,
    name: str,
) -> None:
    template, pattern, modifiers = QUERIES[name]
    most = SUBJECTS[engine] * 9 // 10
    modifiers = modifiers.format(most=most)
    query = f"CONSTRUCT {{ {template} }} WHERE {pattern} {modifiers}"
    store = ox.Store()
    store.load(path=data(engine), format=ox.RdfFormat.N_TRIPLES)
    # the embedded engine aborts for some orders by value
    expected = _solutions(query.removesuffix(modifiers), store)
    came = _solutions(
        query, serve_with(engine, data(engine)), profile=ALL[engine].profile, page_size=size
    )
    if "LIMIT" in modifiers:  # which engines cut elsewhere, by orders of their own
        assert came.total() == min(most, expected.total() - 7)
        assert not came - expected
    else:
        assert came == expected


@pytest.mark.one_in(2)
@pytest.mark.parametrize("engine", SIZES)
@pytest.mark.parametrize("name", ["optional", "mixed types"])
def test_pages_by_key(
    serve_with: Callable[[str, Path], str], data: Callable[[str], Path], engine: str, name: str
) -> None:
    """Issue 26, 12."""
    template, pattern, _ = QUERIES[name]
    query, url, profile = (
        f"CONSTRUCT {{ {template} }} WHERE {pattern}",
        data(engine),
        ALL[engine].profile,
    )
    options = {"profile": profile, "page_size": SIZES[engine], "page_key": "?s"}
    assert _solutions(query, serve_with(engine, url), **options) == _solutions(query, str(url))


# of IRIs, in the orders that engines could have: by code point, by UTF-16 code unit, without case or accents
_ODD = "a B Z _ ~ - . ' ( ) é ß İ ı 中 \uf900 \uff5e 😀 𝒜 %C3%A9 %20 %2F ?x= & + 0 9 10 aA Aa e\u0301 ٣ ; * $ ! @ = , :"
BY_CHOSEN_KEY = {
    "plain": "CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s <urn:p> ?o # no dot\n}",
    "mixed": "CONSTRUCT { ?s <urn:o> ?o . ?z <urn:s> ?s } WHERE { { ?s <urn:p> ?o } UNION { ?z <urn:q> ?s } }",
    "unbound": "CONSTRUCT { ?s <urn:o> ?o . ?z <urn:y> ?y } WHERE { { ?z <urn:q> ?y } UNION { ?s <urn:p> ?o } }",
    "distinct": "CONSTRUCT { <urn:x> <urn:s> ?s } WHERE { SELECT DISTINCT ?s { ?s <urn:p> ?o } }",
}


def _odd_lines(random: Random, engine: str) -> Iterator[str]:
    # RDF4J loads no character outside of the Basic Multilingual Plane
    odd = [text for text in _ODD.split() if max(text) < "\U00010000" or engine != "rdf4j"]
    for n in range(60 if engine == "rdflib" else 200):
        name = "".join(random.choices(odd, k=random.randrange(1, 5)))
        subjects = f"_:b{n}", f"<urn:x:{name}>", f"<http://example.org/{name}{n}>", f"<urn:i{n}>"
        (s,) = random.choices(subjects, (1, 4, 4, 4))
        for _ in range(random.choice((1, 1, 2, 3))):
            yield f'{s} <urn:p> "{random.randrange(10**6)}" .'
        others = s, f'"{n}"@en', f'"{n}"^^<{_INTEGER}>', f'"urn:i{n}"', f"<urn:i{n}>"
        yield f"<urn:z{n}> <urn:q> {random.choice(others)} ."
    for n in range(60):
        yield f'<urn:many> <urn:p> "{n}" .'


@pytest.mark.parametrize(
    "engine", [name for name, one in ALL.items() if PROFILES[one.profile].orders_iris]
)
def test_pages_by_a_chosen_key(
    request: pytest.FixtureRequest,
    serve_with: Callable[[str, Path], str],
    tmp_path: Path,
    engine: str,
) -> None:
    """An engine orders IRIs alike in FILTER and in ORDER BY: the pages are what it returns without pages."""
    for seed in range(request.config.getoption("--rounds")):
        random, file = Random(seed), tmp_path / f"{seed}.nt"
        file.write_text("\n".join(_odd_lines(random, engine)) + "\n")
        url, profile = serve_with(engine, file), ALL[engine].profile
        for name, query in BY_CHOSEN_KEY.items():
            whole = _solutions(query, url, profile=profile)
            assert whole
            for size in ("auto", random.randrange(80, 400), *([45] if name == "plain" else [])):
                came = _solutions(query, url, profile=profile, page_size=size)
                assert came == whole, (name, size, seed)


def test_pages_of_our_server(
    proxy: Callable[..., str], serve_with: Callable[[str, Path], str], data: Callable[[str], Path]
) -> None:
    """Paged by the server, and by its client."""
    file = data("oxigraph")
    url, query = serve_with("oxigraph", file), f"CONSTRUCT {{ ?s <urn:o> ?o }} WHERE {MIXED}"
    whole = _solutions(query, str(file))
    served = proxy(url, profile="oxigraph", page_size="auto")
    for size in ("auto", 700, 3_001):
        assert _solutions(query, served, profile="oxigraph", page_size=size) == whole
    with urlopen(
        f"{served}?{urlencode({'query': query, 'format': 'nq', 'messages': 'rdfm'})}"
    ) as answer:
        assert answer.read().count(b"# @message\n") == whole.total()


@pytest.mark.parametrize("engine", SIZES)
async def test_pages_take_one_connection(
    serve_with: Callable[[str, Path], str], data: Callable[[str], Path], engine: str
) -> None:
    parts = urlsplit(await asyncio.to_thread(serve_with, engine, data(engine)))
    query, options = (
        "CONSTRUCT { ?s <urn:k> ?k } WHERE { ?s <urn:key> ?k }",
        {"profile": ALL[engine].profile, "page_size": SIZES[engine]},
    )
    async with relay() as between:
        between.target = f"http://{parts.netloc}"
        url = f"{between.url}{parts.path}"
        found = await asyncio.to_thread(_solutions, query, url, **options)
        assert (found.total(), between.connections) == (SUBJECTS[engine], 1)
        paged = construct_messages(query, url, **arguments({**options, "timeout": SECONDS}))
        assert len([message async for message in paged]) == SUBJECTS[engine]
        assert between.connections == 2
        await eventually(lambda: not between.open)


@pytest.mark.parametrize("engine", ["fuseki", "rdf4j", "blazegraph", "ontop"])
def test_sorted_groups(
    serve_with: Callable[[str, Path], str], data: Callable[[str], Path], engine: str
) -> None:
    """The other engines are asked for groups by `test_engines.py`."""
    query = "CONSTRUCT { ?s <urn:o> ?o } WHERE { ?s <urn:mixed> ?o }"
    url, options = serve_with(engine, data(engine)), {"group_by": "o", "profile": engine}
    groups = _solutions(query, str(data(engine)), group_by="o")
    assert 1 < len(groups) < SUBJECTS[engine]
    assert _solutions(query, url, group_order="sorted", **options) == groups
    assert _solutions(query, url, group_order="sorted", page_size=400, **options) == groups


def test_virtuoso_again_and_again(
    request: pytest.FixtureRequest,
    serve_with: Callable[[str, Path], str],
    data: Callable[[str], Path],
) -> None:
    """Its order by value follows its plan, which changes while it runs: no result is short and looks whole."""
    file, rounds = data("virtuoso"), request.config.getoption("--rounds")
    url, store = serve_with("virtuoso", file), ox.Store()
    store.load(path=file, format=ox.RdfFormat.N_TRIPLES)
    names = [name for name in QUERIES if "{most}" not in QUERIES[name][2]]
    expected = {
        name: _solutions("CONSTRUCT {{ {} }} WHERE {}".format(*QUERIES[name]), store)
        for name in names
    }
    whole, refused, begun = 0, [], time.monotonic()
    for number in range(rounds):
        for name in names if rounds > 1 else ["mixed types alone"]:
            query = "CONSTRUCT {{ {} }} WHERE {} {}".format(*QUERIES[name])
            try:
                came = _solutions(
                    query, url, profile="virtuoso", page_size=(777, 3_000, 10_000)[number % 3]
                )
            except IncompleteResult as error:
                refused.append(f"{name}: {error.message}")
            else:
                assert came == expected[name], name
                whole += 1
    print(
        f"\n{whole} results whole, {len(refused)} refused in {time.monotonic() - begun:.0f} s",
        *refused,
        sep="\n",
    )
    assert whole


def test_values_that_rdflib_cannot_compare(
    serve_with: Callable[[str, Path], str], tmp_path: Path
) -> None:
    """Issue 26, 0: rdflib raises decimal.InvalidOperation for the order of a decimal and NaN."""
    file = tmp_path / "numbers.nt"
    numbers = [
        f'"NaN"^^<{_XSD}double>',
        f'"2.5"^^<{_XSD}decimal>',
        f'"1"^^<{_INTEGER}>',
        '"x"',
        "<urn:x>",
    ]
    file.write_text(
        "".join(f"<urn:s{n}> <urn:n> {number} .\n" for n, number in enumerate(numbers * 20))
    )
    query, url = "CONSTRUCT { ?s <urn:n> ?o } WHERE { ?s <urn:n> ?o }", serve_with("rdflib", file)
    with pytest.raises(SourceError, match='profile="rdflib"') as failed:
        _solutions(f"{query} ORDER BY ?o", url, page_size=10)
    assert "STR(?o)" in str(failed.value.hint)
    came = _solutions(query, url, page_size=10)
    # it writes NaN as nan
    assert Counter(str(message).lower() for message in came) == Counter(
        str(message).lower() for message in _solutions(query, str(file))
    )


def test_orders_that_rdf4j_and_blazegraph_do_not_keep(
    serve_with: Callable[[str, Path], str], tmp_path: Path
) -> None:
    """Terms of many kinds: by their texts, each comes once; an order of the query by value is an error that says so."""
    kinds = (
        *(f'"{{}}"^^<{_XSD}{kind}>' for kind in ("integer", "decimal", "string", "gYear", "own")),
        *(f'"2020-01-{{:02}}"^^<{_DATE}>', '"{}"@en', "<urn:o{}>", '"1{:01}:00:00"^^<urn:time>'),
        *(f'"2020-01-{{:02}}T00:00:00{zone}"^^<{_XSD}dateTime>' for zone in ("", "Z", "+05:00")),
        f'"P{{}}D"^^<{_XSD}duration>',
    )
    file = tmp_path / "kinds.nt"
    file.write_text(
        "".join(
            f"<urn:s{n}> <urn:p> {kinds[n % len(kinds)].format(n % 19 + 10)} .\n"
            for n in range(1_300)
        )
    )
    query = "CONSTRUCT { <urn:s> <urn:p> ?o } WHERE { ?s <urn:p> ?o }"
    for engine in ("rdf4j", "blazegraph"):
        url = serve_with(engine, file)
        whole = _solutions(query, url)
        assert whole.total() == 1_300
        assert _solutions(query, url, page_size=100) == whole, engine
        # whether the sort notices depends on the order of the data
        try:
            sorted_by_value, refused = _solutions(f"{query} ORDER BY ?o", url, page_size=100), None
        except SourceError as error:
            sorted_by_value, refused = whole, error
        assert sorted_by_value == whole, engine
        if refused is not None:
            assert url in str(refused), engine
            assert "STR(?o)" in str(refused.hint), engine
            assert engine != "rdf4j" or 'profile="rdf4j"' in str(refused.hint)


def test_reasons_of_blazegraph(serve_with: Callable[[str, Path], str], tmp_path: Path) -> None:
    """It repeats the query before the exception; the query is longer than what is shown of an error."""
    file = tmp_path / "data.nt"
    file.write_text("".join(f'<urn:s{n}> <urn:p> "{n}" .\n' for n in range(300)))
    query = "CONSTRUCT { ?a <urn:is> ?f } WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(CONCAT(?c, ?i) = ?f) }"
    url = f"{serve_with('blazegraph', file)}?maxQueryTimeMillis=1"
    query += f" VALUES ?x {{ {' '.join(f'<urn:x{n}>' for n in range(900))} }}"
    with pytest.raises(SourceError, match=r"Query deadline is expired|TimeoutException") as failed:
        _solutions(query, url)
    assert 'profile="blazegraph"' in str(failed.value.hint)
    with pytest.raises(SourceTimeout):
        _solutions(query, url, profile="blazegraph")
