"""The house: imports point down, siblings do not know each other, only sources and what is above them do I/O."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import construct_messages
from tests.support.layers import PICTURE, drawn

pytestmark = pytest.mark.slow  # `make lint` runs them

PACKAGE = Path(construct_messages.__file__).parent


# From the ground up. A room imports rooms of lower floors only; `/` marks the rooms of one floor, which are siblings.
def floors(*floors: str) -> dict[str, int]:
    return {room: level for level, floor in enumerate(floors) for room in floor.split(" / ")}


FLOORS = {
    "": floors(
        "_version / errors",
        "rdf",
        "logs / query",
        "sparql / streams",
        "construct / feeds",
        "continuous",
        "spark",
        "options / server",
        "cli",
        "__main__",
    ),
    "rdf": floors(
        "compiled / possessive",
        "arguments / files",
        "formats / terms",
        "isomorphism / labels / options / solutions / wire",
        "message / vocabulary",
        "single_use / template",
    ),
    "logs": floors(
        "checking / from_pyoxigraph / inspection / sniff / spaces / targets",
        "text_encoder",
        "columns / jelly / lines / turtle",
        "jsonld / rdfxml / reading",
        "documents / json / yamlld",
        "writing",
    ),
    "logs/columns": floors("types", "options", "solutions / tables", "quads", "decoder / encoder"),
    "sparql": floors("children / client / results", "engine / relational", "sources"),
    "sparql/relational": floors(
        "dialects / documents / regex / values",
        "functions / relation",
        "expressions / native / scans",
        "duckdb / paths / tables",
        "quads",
        "evaluation",
    ),
    "construct": floors("assembly / shapes", "rows", "messages", "select"),
    "sparql/client": floors(
        "grpc / retries / tls / urls", "responses", "aiohttp_client / urllib_client", "oauth"
    ),
    "rdf/formats": floors("media_types", "lookup / results", "negotiation"),
    "query": floors(
        "tokens",
        "prologue",
        "service / syntax",
        "total_orders",
        "embedded",
        "continuous",
        "select",
        "checks / rewrite",
        "algebra",
        "optimizer",
    ),
    "query/syntax": floors("nodes", "triples", "patterns", "parser"),
    "query/continuous": floors("values", "parse"),
    "streams": floors("element", "database", "publication / reading", "writer", "reader", "store"),
    "construct/shapes": floors("graph", "report", "engine", "validation"),
    "continuous": floors(
        "dataset / solutions / transform / windows",
        "expressions / timeline",
        "operators",
        "maintenance",
        "windowed",
        "streaming",
        "watching",
        "registered",
    ),
    "continuous/registered": floors("registration", "process", "evaluator / query", "registry"),
    "feeds": floors(
        "state / table",
        "transport",
        "connections",
        "brokers / grpc / http",
        "opening",
        "delivery",
        "subscription / registration",
        "publication / recording / relaying / bridging",
    ),
    "feeds/brokers": floors("records", "kafka / mqtt / nats"),
    "feeds/brokers/kafka": floors("client", "reader", "transport"),
    "feeds/brokers/nats": floors("connection", "transport"),
    "feeds/http": floors(
        "client / collections", "connections", "discovery", "inbox / ldes / log / sse / websocket"
    ),
    "server": floors("config", "http", "pages", "sparql / streams", "runtime", "mcp"),
    "query/algebra": floors("nodes", "calls", "separable / translation"),
    "query/optimizer": floors("push_down", "optimize"),
    "spark": floors(
        "dialect / evaluator / line_numbers / planning",
        "engine / messages / session",
        "quads",
        "scans / terms",
        "evaluation / logs",
        "tables",
        "construct",
        "streaming",
        "windows",
    ),
    "spark/tables": floors("columns", "rows / selection"),
}
PURE = ("rdf", "query", "logs", "sparql/results", "construct/grouping", "construct/assembly")
DOES_IO = (
    *("rdf/arguments", "rdf/compiled", "rdf/files", "rdf/labels"),
    *("logs/columns", "logs/reading", "logs/targets", "logs/writing"),
)
"""The parts of pure rooms that open files, and those that ask the system for the caller's frame or random bytes."""
IO_MODULES = {
    *(
        "aiohttp",
        "http",
        "os",
        "requests",
        "select",
        "shutil",
        "socket",
        "SPARQLWrapper",
        "ssl",
        "subprocess",
        "sys",
    ),
    *("tempfile", "urllib"),
}
IO_CALLS = {"open", "print", "input"}

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
TESTS = Path(__file__).parent
TEST_MODULES = sorted(TESTS.rglob("*.py"))


def is_in(path: Path, places: Iterable[str]) -> bool:
    """Whether a module is in one of some folders, or is one of some modules."""
    names = "/".join((*module_names(path), ""))
    return any(names.startswith(f"{place}/") for place in places)


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


class Contents(NamedTuple):
    """What the rules ask about a module, each with its line."""

    docstring: str | None
    imports: Sequence[tuple[str, int]]
    """The full names of what it imports, wherever in it, also by name: a string like `package.module:object`."""
    calls: Sequence[tuple[str, int]]
    """The names of the functions that it calls by a name without a dot."""
    strings: Sequence[tuple[str, int]]
    """What is written in it, but for docstrings."""
    classes: Sequence[str]
    """The names of its classes that are in no other class or function."""


BY_NAME = re.compile(rf"{PACKAGE.name}(?:\.\w+)+:\w+")


@cache
def contents(path: Path) -> Contents:
    """Parse a module once for all rules, and keep no tree: the garbage collector would look through all of them."""
    tree = ast.parse(text(path))
    imports: list[tuple[str, int]] = []
    calls: list[tuple[str, int]] = []
    strings: list[tuple[str, int]] = []
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = set[ast.AST]()
    for node in ast.walk(tree):  # what stands around a string comes before it
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr):
            docstrings.add(node.body[0].value)
        if isinstance(node, ast.Import):
            imports += ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            imports += ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            calls.append((node.func.id, node.lineno))
            if node.func.id in {"import_module", "resolve_name"}:
                named = (part for part in node.args if isinstance(part, ast.Constant))
                imports += ((str(part.value), node.lineno) for part in named)
        elif isinstance(node, ast.Constant) and node not in docstrings:
            if isinstance(node.value, bytes):
                strings.append((node.value.decode("latin-1"), node.lineno))
            elif isinstance(node.value, str):
                strings.append((node.value, node.lineno))
                if BY_NAME.fullmatch(node.value):
                    imports.append((node.value.replace(":", "."), node.lineno))
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    return Contents(ast.get_docstring(tree), imports, calls, strings, classes)


def rooms_of(names: Sequence[str], folder: str) -> str:
    """The room within a folder that a module's name (below the package) lies in; empty where it is not in it."""
    inside = folder.split("/") if folder else []
    return (
        names[len(inside)] if [*names[: len(inside)]] == inside and len(names) > len(inside) else ""
    )


@pytest.mark.parametrize("folder", FLOORS)
def test_imports_point_down(folder: str) -> None:
    floors = FLOORS[folder]
    for path in MODULES:
        room = rooms_of(module_names(path), folder)
        if not room:
            continue
        assert room in floors, f"{room} has no floor: give it one in FLOORS"
        for name, line in contents(path).imports:
            top, *rest = name.split(".")
            imported = rooms_of(rest, folder) if top == PACKAGE.name else ""
            if imported in (room, "") or not is_room(folder, imported):
                continue
            assert imported in floors, f"{path}:{line} imports {name}, which has no floor"
            assert floors[imported] < floors[room], f"{path}:{line}: {room} imports {imported}"


@cache
def is_room(folder: str, name: str) -> bool:
    return (PACKAGE / folder / name).is_dir() or (PACKAGE / folder / f"{name}.py").exists()


def test_no_circle_of_modules() -> None:
    """Also within a room. What is imported for types only, or when it is called, counts as well."""
    modules = {".".join((PACKAGE.name, *module_names(path))): path for path in MODULES}
    graph = {
        module: set(imported_modules(path, modules)) - {module} for module, path in modules.items()
    }
    TopologicalSorter(graph).prepare()


def module_names(path: Path) -> tuple[str, ...]:
    names = path.relative_to(PACKAGE).with_suffix("").parts
    return names[:-1] if names[-1] == "__init__" else names


def imported_modules(path: Path, modules: Container[str]) -> Iterator[str]:
    for name, _ in contents(path).imports:
        if name in modules:
            yield name
        elif name.rpartition(".")[0] in modules:
            yield name.rpartition(".")[0]


# --- each rule for all modules at once, with a list of what breaks it ---


def calls(path: Path, names: Container[str]) -> list[str]:
    """The calls in a module of builtin functions."""
    return [f"{path}:{line} calls {name}()" for name, line in contents(path).calls if name in names]


def imported(paths: Iterable[Path], forbidden: Callable[[str], bool]) -> list[str]:
    """The imports in modules that are forbidden."""
    return [
        f"{path}:{line} imports {name}"
        for path in paths
        for name, line in contents(path).imports
        if forbidden(name)
    ]


def long(paths: Iterable[Path], most: int) -> list[str]:
    """The modules that are too long to be read at once."""
    lengths = {path: len(text(path).splitlines()) for path in paths}
    return [f"{path} has {length} lines" for path, length in lengths.items() if length > most]


def crowded(paths: Iterable[Path], *, besides: Container[str]) -> list[str]:
    """The folders that hold too many modules."""
    counts = Counter(path.parent for path in paths if path.name not in besides)
    return [f"{folder} has {count} files" for folder, count in counts.items() if count > 15]


def test_sql_is_text() -> None:
    rooms = {"dialect", "planning"}
    paths = [path for path in MODULES if rooms_of(module_names(path), "spark") in rooms]
    assert imported(paths, lambda name: name.split(".")[0] in {"pyspark", "pyarrow"}) == []


def test_no_input_or_output_below_the_sources() -> None:
    def does_io(name: str) -> bool:
        top, _, rest = name.partition(".")
        if top == "threading":
            return rest != "Lock"
        return top in IO_MODULES or (top == "pathlib" and not rest.startswith("Pure"))

    paths = [path for path in MODULES if is_in(path, PURE) and not is_in(path, DOES_IO)]
    assert imported(paths, does_io) == []
    assert [call for path in paths for call in calls(path, IO_CALLS)] == []


def test_only_the_command_line_prints() -> None:
    """Issue 13, 13: standard output is the log's; what else there is to say goes to `logging`."""
    assert [
        call for path in MODULES if room_of(path) != "cli" for call in calls(path, {"print"})
    ] == []


def test_rooms_have_a_job() -> None:
    assert {path.stem for path in MODULES} & {
        "utils",
        "util",
        "helpers",
        "helper",
        "common",
        "misc",
    } == set()
    assert [path for path in MODULES if not contents(path).docstring] == []


SHARED_NAMES = {
    "Constant": "a term of a template, and of the algebra, where each is the field's word",
    "Dataset": "the option of a query, and the same as Spark's plan knows it",
    "Endpoint": "one that is served, and one that is asked",
    "Groups": "GROUP BY of the algebra, and groups of solutions by their key",
    "Known": "what a watch, and what a reader of a collection, has seen",
    "LogReader": "of a log, and of logs by Spark's name for such a class",
    "Written": "of a log, and of a task on Spark",
}
"""The public classes of several modules that share a name, with the reason. The list only gets shorter."""


def test_names_of_classes_are_unique() -> None:
    """A name that means one thing can be searched for."""
    defined: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for name in contents(path).classes:
            if not name.startswith("_"):
                defined[name].append(str(path.relative_to(PACKAGE)))
    shared = {name: places for name, places in defined.items() if len(places) > 1}
    assert {name: places for name, places in shared.items() if name not in SHARED_NAMES} == {}
    assert SHARED_NAMES.keys() - shared.keys() == set(), "these are unique now: leave them out"


def test_files_are_small() -> None:
    assert long(MODULES, 900) == []


def test_folders_are_small() -> None:
    assert crowded(MODULES, besides={"__init__.py", "__main__.py"}) == []


def test_media_types_are_named_by_formats() -> None:
    strings = [
        (path, *found)
        for path in MODULES
        if not is_in(path, ("rdf/formats",))
        for found in contents(path).strings
    ]
    named = [(path, line, value) for path, value, line in strings if MEDIA_TYPE.search(value)]
    assert [f"{path}:{line} names a media type: {value}" for path, line, value in named] == []


MEDIA_TYPE = re.compile(r"\b(?:application|multipart|text)/[a-z*]")


@pytest.mark.parametrize(
    ("room", "forbidden"), [("streams", {"aiohttp", "http"}), ("server", {"sqlite3"})]
)
def test_streams_and_their_server_meet_in_the_store(room: str, forbidden: set[str]) -> None:
    """No HTTP in the store of streams, and no SQL in the server."""
    paths = [path for path in MODULES if room_of(path) == room]
    assert imported(paths, lambda name: name.split(".")[0] in forbidden) == []


# --- the tests, in rooms of the same names ---


def test_no_test_imports_a_test() -> None:
    """What several tests use is in `tests/support/`; what `conftest.py` has are fixtures."""
    assert (
        imported(
            TEST_MODULES, lambda name: name.startswith("tests.") and name.split(".")[1] != "support"
        )
        == []
    )


def test_test_modules_are_small() -> None:
    tests = [path for path in TEST_MODULES if path.name.startswith("test_")]
    assert long(tests, 656) == []


def test_folders_of_tests_are_small() -> None:
    assert crowded(TEST_MODULES, besides={"__init__.py", "conftest.py"}) == []


def test_the_picture_shows_these_floors() -> None:
    assert PICTURE.read_text(encoding="utf-8") == drawn(FLOORS[""]), (
        "run python -m tests.test_layers"
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(FLOORS[""]), encoding="utf-8")
