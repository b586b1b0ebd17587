"""The house: imports point down, siblings do not know each other, only sources and what is above them do I/O."""

import ast
import re
from collections.abc import Container, Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import construct_messages
from tests.support.layers import PICTURE, drawn

PACKAGE = Path(construct_messages.__file__).parent


# From the ground up. A room imports rooms of lower floors only; `/` marks the rooms of one floor, which are siblings.
def floors(*floors: str) -> dict[str, int]:
    return {room: level for level, floor in enumerate(floors) for room in floor.split(" / ")}


FLOORS = {
    "": floors(
        "errors",
        "files",
        "terms",
        "isomorphism / labels",
        "message / solutions / formats",
        "template / rows / single_use",
        "query",
        "results",
        "sources / logs / spaces / inspection / checking",
        "assembly / reading / targets",
        "writing / streams",
        "construct",
        "continuous",
        "server / spark / feeds",
        "cli",
        "__main__",
    ),
    "query": floors(
        "tokens",
        "prologue / scope",
        "select / triples / service / refusals / full_names",
        "pages / rewrite / results / algebra",
        "optimizer / continuous",
    ),
    "query/continuous": floors("values", "cursor", "durations", "clauses", "patterns", "parse"),
    "streams": floors(
        "vocabulary",
        "element / database / saved_state / contexts",
        "publication / reading / broadcast",
        "transaction",
        "writer",
        "reader",
        "store",
    ),
    "continuous": floors(
        "windows / stored_terms / event_time / static / transform / comparison / spool",
        "timestamps",
        "solutions",
        "timeline / contents / freshness",
        "windowed / watching",
        "streaming / registered",
    ),
    "continuous/registered": floors("registration", "evaluator", "process", "registry"),
    "feeds": floors(
        "event_stream / documents / client / state",
        "collections / transports / registration",
        "discovery",
        "subscription",
        "publication",
        "forwarding",
    ),
    "feeds/collections": floors("values / collection", "hypermedia / known", "ldes / inbox"),
    "server": floors("config", "http", "pages", "sparql / streams", "runtime"),
    "query/algebra": floors(
        "property_paths",
        "nodes",
        "expressions / correlation / join_order / active_graph / plan / parse_tree",
        "patterns / calls",
        "groups",
        "translation",
    ),
    "query/optimizer": floors(
        "statistics",
        "cardinality / equalities / push_down / shared_scan",
        "distribution / semi_joins / explanation",
        "optimize",
    ),
    "spark": floors(
        "jar / class_archive", "session / planning / regex", "sql", "quads", "frames", "logs", "construct", "archiving"
    ),
    "spark/sql": floors(
        "columns / values",
        "numbers / datetimes / lines",
        "comparisons / arithmetic / strings / iris / date_parts",
        "functions / aggregates / casts / value_keys",
        "expressions",
    ),
    "spark/frames": floors(
        "solutions / scans / messages",
        "joins / leaf_nodes / paths / stars / shared_scan",
        "exists / checks",
        "evaluation",
    ),
}
PURE = {
    "errors",
    "terms",
    "message",
    "solutions",
    "template",
    "rows",
    "formats",
    "checking",
    "single_use",
    "query",
    "results",
    "logs",
    "grouping",
    "inspection",
    "isomorphism / labels",
    "spaces",
}
IO_MODULES = {
    *("aiohttp", "http", "os", "requests", "select", "shutil", "socket", "SPARQLWrapper", "ssl", "subprocess", "sys"),
    *("tempfile", "urllib"),
}
IO_CALLS = {"open", "print", "input"}

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
TESTS = Path(__file__).parent
TEST_MODULES = sorted(TESTS.rglob("*.py"))


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


@cache
def imports(path: Path) -> Sequence[tuple[str, int]]:
    """The full names of what a module imports, wherever in it, and their lines."""
    found: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            found += ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
    return found


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def rooms_of(names: Sequence[str], folder: str) -> str:
    """The room within a folder that a module's name (below the package) lies in; empty where it is not in it."""
    inside = folder.split("/") if folder else []
    return names[len(inside)] if [*names[: len(inside)]] == inside and len(names) > len(inside) else ""


@pytest.mark.parametrize("folder", FLOORS)
def test_imports_point_down(folder: str) -> None:
    floors = FLOORS[folder]
    for path in MODULES:
        room = rooms_of(module_names(path), folder)
        if not room:
            continue
        assert room in floors, f"{room} has no floor: give it one in FLOORS"
        for name, line in imports(path):
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
    graph = {module: set(imported_modules(path, modules)) - {module} for module, path in modules.items()}
    TopologicalSorter(graph).prepare()


def module_names(path: Path) -> tuple[str, ...]:
    names = path.relative_to(PACKAGE).with_suffix("").parts
    return names[:-1] if names[-1] == "__init__" else names


def imported_modules(path: Path, modules: Container[str]) -> Iterator[str]:
    for name, _ in imports(path):
        if name in modules:
            yield name
        elif name.rpartition(".")[0] in modules:
            yield name.rpartition(".")[0]


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if rooms_of(module_names(path), "spark") in {"sql", "regex", "planning"}],
    ids=name_of,
)
def test_sql_is_text(path: Path) -> None:
    for name, line in imports(path):
        assert name.split(".")[0] not in {"pyspark", "pyarrow"}, f"{path}:{line} imports {name}"


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path) in PURE], ids=name_of)
def test_no_input_or_output_below_the_sources(path: Path) -> None:
    for name, line in imports(path):
        assert name.split(".")[0] not in IO_MODULES, f"{path}:{line} imports {name}"
        assert not name.startswith("threading.") or name == "threading.Lock", f"{path}:{line} imports {name}"
        assert not name.startswith("pathlib.") or name.startswith("pathlib.Pure"), f"{path}:{line} imports {name}"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in IO_CALLS, f"{path}:{node.lineno} calls {node.func.id}()"


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path) != "cli"], ids=name_of)
def test_only_the_command_line_prints(path: Path) -> None:
    """Issue 13, 13: standard output is the log's; what else there is to say goes to `logging`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{path}:{node.lineno} prints"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_rooms_have_a_job(path: Path) -> None:
    assert path.stem not in {"utils", "util", "helpers", "helper", "common", "misc"}
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), f"{path} does not say what its job is"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_are_small(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 450, f"{name_of(path)} has {lines} lines"


@pytest.mark.parametrize("folder", sorted({path.parent for path in MODULES}), ids=name_of)
def test_folders_are_small(folder: Path) -> None:
    files = [path for path in folder.glob("*.py") if not path.name.startswith("__")]
    assert len(files) <= 15, f"{name_of(folder)} has {len(files)} files"


# --- the tests, in rooms of the same names ---


def name_of_test(path: Path) -> str:
    return str(path.relative_to(TESTS))


@pytest.mark.parametrize("path", TEST_MODULES, ids=name_of_test)
def test_no_test_imports_a_test(path: Path) -> None:
    """What several tests use is in `tests/support/`; what `conftest.py` has are fixtures."""
    for name, line in imports(path):
        top, *rest = name.split(".")
        assert top != "tests" or rest[0] == "support", f"{path}:{line} imports {name}"


@pytest.mark.parametrize("path", [path for path in TEST_MODULES if path.name.startswith("test_")], ids=name_of_test)
def test_test_modules_are_small(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 450, f"{name_of_test(path)} has {lines} lines"


@pytest.mark.parametrize("folder", sorted({path.parent for path in TEST_MODULES}), ids=name_of_test)
def test_folders_of_tests_are_small(folder: Path) -> None:
    files = [path for path in folder.glob("*.py") if path.name not in ("__init__.py", "conftest.py")]
    assert len(files) <= 15, f"{name_of_test(folder)} has {len(files)} files"


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path) != "formats"], ids=name_of)
def test_media_types_are_named_by_formats(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)) and id(node) not in docstrings:
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            assert not MEDIA_TYPE.search(text), f"{path}:{node.lineno} names a media type: {text}"


MEDIA_TYPE = re.compile(r"\b(?:application|multipart|text)/[a-z*]")


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path) in ("server", "streams")], ids=name_of)
def test_streams_and_their_server_meet_in_the_store(path: Path) -> None:
    """No HTTP in the store of streams, and no SQL in the server."""
    forbidden = {"aiohttp", "http"} if room_of(path) == "streams" else {"sqlite3"}
    for name, line in imports(path):
        assert name.split(".")[0] not in forbidden, f"{path}:{line} imports {name}"


def test_the_picture_shows_these_floors() -> None:
    assert PICTURE.read_text(encoding="utf-8") == drawn(FLOORS[""]), "run python -m tests.test_layers"


if __name__ == "__main__":
    PICTURE.write_text(drawn(FLOORS[""]), encoding="utf-8")
