"""The tables and examples of settings in docs/reference/server.md are those of the code."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

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
from construct_messages.server.runtime.settings import described, load_config
from tests.support.docs import BLOCKS
from tests.support.places import ROOT

PAGE = (ROOT / "docs" / "reference" / "server.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("heading", "struct"),
    [
        ("server", Config),
        ("endpoint", EndpointSettings),
        ("endpoint, `limits.`", Limits),
        ("`examples.`", ExampleSettings),
        ("`streams.`", StreamsSettings),
        ("`streams.NAME.`", BridgeSettings),
        ("`jwt.`", JwtSettings),
    ],
)
def test_the_manual_has_every_setting(heading: str, struct: type[msgspec.Struct]) -> None:
    table = PAGE.partition(f"| {heading} | is | default | meaning |\n|---|---|---|---|\n")[
        2
    ].partition("\n\n")[0]
    documented = [
        tuple(cell.strip() for cell in line.strip("|").split(" | "))[:3]
        for line in table.splitlines()
    ]
    expected = []
    for field in msgspec.structs.fields(struct):
        if field.name == "bridges":
            continue  # `streams.NAME.`
        if struct is StreamsSettings or field.name not in ("endpoints", "jwt", "limits", "streams"):
            default = (
                field.default
                if field.default_factory is msgspec.NODEFAULT
                else field.default_factory()
            )
            shown_default = (
                f"`{msgspec.json.encode('none' if default is None else default).decode()}`"
                if not field.required
                else "required"
            )
            expected.append((f"`{field.encode_name}`", described(field.type), shown_default))
    assert documented == expected


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language == "toml"], ids=lambda block: block.page
)
def test_the_settings_of_the_manual_can_be_served(tmp_path: Path, block: Any) -> None:
    (tmp_path / "companies.ttl").write_text("")
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
