"""The house: imports point down, siblings do not know each other, only sources and what is above them do I/O."""

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import construct_messages

PACKAGE = Path(construct_messages.__file__).parent

# From the ground up. A room imports rooms of lower floors only; `/` marks the rooms of one floor, which are siblings.
FLOORS = [
    floor.split(" / ")
    for floor in (
        "errors / compression / unpacking",
        "terms",
        "isomorphism / labels",
        "message / solutions / formats",
        "template / negotiation / once",
        "query",
        "results",
        "sources / logs / output / grouping / spaces / inspection / comparison / checking",
        "assembly / reading",
        "writing",
        "construct",
        "server / spark",
        "cli",
        "__main__",
    )
]
# The same inside `spark`; the rooms up to `expressions` know no pyspark.
SPARK_FLOORS = [
    floor.split(" / ")
    for floor in (
        "property_paths",
        "algebra / statistics / regex",
        "parse_tree / grounding",
        "patterns / calls",
        "groups",
        "plan / values / correlation / cardinality",
        "demand / sinking / equalities / query",
        "distribution / explanation",
        "optimize",
        "numbers / datetimes / lines",
        "comparisons / arithmetic / strings / iris / date_parts",
        "functions / aggregates / casts / value_keys",
        "expressions",
        "session / table / solutions / documents",
        "scans / joins / quads / logs",
        "leaves / paths / stars / gathering",
        "checks",
        "relations",
        "messages",
        "writing",
        "construct",
    )
]
LEVEL = {room: level for level, floor in enumerate(FLOORS) for room in floor}
SPARK_LEVEL = {room: level for level, floor in enumerate(SPARK_FLOORS) for room in floor}

PURE = {
    "errors",
    "unpacking",
    "terms",
    "message",
    "solutions",
    "template",
    "formats",
    "negotiation",
    "checking",
    "once",
    "query",
    "results",
    "logs",
    "grouping",
    "comparison",
    "inspection",
    "isomorphism / labels",
    "spaces",
}
IO_MODULES = {
    *("aiohttp", "http", "os", "requests", "select", "shutil", "socket", "SPARQLWrapper", "ssl", "subprocess", "sys"),
    *("tempfile", "threading", "urllib"),
}
IO_CALLS = {"open", "print", "input"}

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """The full names of what a module imports, wherever in it, and their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down(path: Path) -> None:
    room = room_of(path)
    assert room in LEVEL, f"{room} has no floor: give it one in FLOORS"
    for name, line in imports(path):
        top, *rest = name.split(".")
        if top != PACKAGE.name:
            continue
        imported = rest[0]
        assert imported in LEVEL, f"{path}:{line} imports {name}, which is no room"
        assert imported == room or LEVEL[imported] < LEVEL[room], f"{path}:{line}: {room} imports {imported}"


SPARK_MODULES = [path for path in (PACKAGE / "spark").rglob("*.py") if path != PACKAGE / "spark" / "__init__.py"]


@pytest.mark.parametrize("path", sorted(SPARK_MODULES), ids=name_of)
def test_imports_point_down_in_spark(path: Path) -> None:
    room = path.relative_to(PACKAGE / "spark").parts[0].removesuffix(".py")
    assert room in SPARK_LEVEL, f"{room} has no floor: give it one in SPARK_FLOORS"
    for name, line in imports(path):
        if SPARK_LEVEL[room] <= SPARK_LEVEL["expressions"]:
            assert name.split(".")[0] not in {"pyspark", "pyarrow"}, f"{path}:{line} imports {name}"
        top, *rest = name.split(".")
        if top == PACKAGE.name and rest[0] == "spark":
            imported = rest[1]
            assert imported in SPARK_LEVEL, f"{path}:{line} imports {name}, which is no room"
            assert imported == room or SPARK_LEVEL[imported] < SPARK_LEVEL[room], f"{path}:{line}: {room} → {imported}"


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path) in PURE], ids=name_of)
def test_no_input_or_output_below_the_sources(path: Path) -> None:
    for name, line in imports(path):
        assert name.split(".")[0] not in IO_MODULES, f"{path}:{line} imports {name}"
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


@pytest.mark.filterwarnings("default")  # past 450 lines is a reason to think, past 550 one to stop
def test_rooms_are_small() -> None:
    for path in MODULES:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 550, f"{name_of(path)} has {lines} lines"
        if lines > 450:
            warnings.warn(f"{name_of(path)} has {lines} lines", stacklevel=1)
