"""The tables and examples of settings in docs/reference/server.md are those of the code.

`python -m tests.server.runtime.test_settings_manual` writes the tables into the page.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from construct_messages.errors import UsageError
from construct_messages.rdf.options import REQUIRED
from construct_messages.server.config import (
    BridgeSettings,
    Config,
    EndpointSettings,
    ExampleSettings,
    JwtSettings,
    Limits,
    StreamsSettings,
    dotted_name,
)
from construct_messages.server.runtime.settings import in_words, load_config, settings_of
from tests.support.docs import BLOCKS
from tests.support.places import ROOT

PAGE = ROOT / "docs" / "reference" / "server.md"
TABLES = {
    "server": Config,
    "endpoint": EndpointSettings,
    "endpoint, `limits.`": Limits,
    "`examples.`": ExampleSettings,
    "`streams.`": StreamsSettings,
    "`streams.NAME.`": BridgeSettings,
    "`jwt.`": JwtSettings,
}
TABLES_OF_THEIR_OWN = {
    *((Config, name) for name in ("endpoints", "streams", "jwt")),
    *((EndpointSettings, "limits"), (StreamsSettings, "bridges")),
}


def table_of(heading: str, kind: type) -> str:
    """The table of a structure, in Markdown."""
    lines = [f"| {heading} | is | default | meaning |", "|---|---|---|---|"]
    for name, each in settings_of(kind).items():
        if (kind, name) in TABLES_OF_THEIR_OWN:
            continue
        shown = "none" if each.default is None else each.default
        default = (
            "required"
            if each.default is REQUIRED
            else f"`{json.dumps(shown, separators=(',', ':'))}`"
        )
        assert each.meaning, f"{kind.__name__}.{name} has no meaning"
        lines.append(f"| `{name}` | {in_words(each)} | {default} | {each.meaning} |")
    return "\n".join(lines)


def with_tables(page: str) -> str:
    """The page with the tables of the code."""
    for heading, kind in TABLES.items():
        old = re.compile(rf"^\| {re.escape(heading)} \| is \| default .*?(?=\n\n|\Z)", re.M | re.S)
        found = old.search(page)
        assert found is not None, heading
        page = page[: found.start()] + table_of(heading, kind) + page[found.end() :]
    return page


def test_the_manual_has_every_setting() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tables(page)


@pytest.mark.parametrize(
    "block",
    [block for block in BLOCKS if block.language == "toml" and block.title != "options.toml"],
    ids=lambda block: block.page,
)
def test_the_settings_of_the_manual_can_be_served(tmp_path: Path, block: Any) -> None:
    (tmp_path / "companies.ttl").write_text("")
    (tmp_path / "queries").symlink_to(ROOT / "queries")
    for name in ("company.json", "schema.org.jsonld"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "server.toml").write_text(block.text)
    config = load_config(tmp_path / "server.toml", {"EXAMPLE_TOKEN": "x"}, {})
    named = {
        "docs/reference/server.md": {
            "endpoint.source",
            "endpoints.dbpedia.source",
            "endpoints.private.source",
        },
        "docs/guides/agents.md": {"endpoint.source"},
        "docs/guides/dbpedia.md": {"endpoints.dbpedia.source"},
    }
    assert {dotted_name(("endpoints", name, "source")) for name in config.endpoints} == named[
        block.page
    ]


def test_frames_are_beside_the_file(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.ttl", "city.json", "other.json")]
    for file in files:
        file.write_text("{}" if file.suffix == ".json" else "")
    (tmp_path / "server.toml").write_text(
        f'[endpoint]\nsource = "a.ttl"\nframes = {{ city = "city.json", other = "{files[2]}" }}\n'
    )
    config = load_config(tmp_path / "server.toml", {}, {})
    assert config.endpoints[""].frames == {"city": str(files[1]), "other": str(files[2])}


@pytest.mark.parametrize(
    ("example", "message", "hint"),
    [
        ("name = 'a'\nquerry = 'b'", "there is no setting 'querry'", "did you mean query?"),
        ("name = 'a'", r"field `query` - at `\$\[0\]`", r"\[\[endpoint.examples\]\]"),
        ("name = ''\nquery = 'b'", "an example needs a name and a query", "table"),
    ],
)
def test_an_example_that_makes_no_sense(
    tmp_path: Path, example: str, message: str, hint: str
) -> None:
    path = tmp_path / "server.toml"
    path.write_text(f"[endpoint]\nsource = 'a.ttl'\n[[endpoint.examples]]\n{example}")
    with pytest.raises(UsageError, match=f"endpoint.examples.*{message}") as refused:
        load_config(path, {}, {})
    assert re.search(hint, refused.value.hint or "")


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
