"""Settings of bridges: tables `[streams.NAME]` of the file and variables of the environment, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from construct_messages.errors import UsageError
from construct_messages.server.config import BridgeSettings
from construct_messages.server.runtime.settings import PREFIX, as_toml, load_config

STREAMS = '[streams]\nfile = "streams.db"\n'


def load(folder: Path, text: str, **environ: str) -> dict[str, BridgeSettings]:
    path = folder / "server.toml"
    path.write_text(text)
    config = load_config(path, {PREFIX + name: value for name, value in environ.items()}, {})
    assert config.streams is not None
    (folder / "again.toml").write_text(as_toml(config))
    assert load_config(folder / "again.toml", {}, {}) == config
    return config.streams.bridges


def test_tables_and_variables(tmp_path: Path) -> None:
    text = (
        f'{STREAMS}[streams.rooms]\nfrom = "http://localhost/streams/a"\nbatch = 3\n'
        '[streams.halls]\nto = "kafka://localhost/halls"\nto_options = { partition = "0" }\n'
    )
    assert load(tmp_path, text, STREAMS__ROOMS__TO="http://localhost/streams/b") == {
        "rooms": BridgeSettings(
            source="http://localhost/streams/a", target="http://localhost/streams/b", batch=3
        ),
        "halls": BridgeSettings(target="kafka://localhost/halls", to_options={"partition": "0"}),
    }
    options = '{ partition = "1" }'
    changed = load(tmp_path, text, STREAMS__HALLS__TO_OPTIONS=options, STREAMS__ROOMS__BATCH="7")
    assert changed["halls"].to_options == {"partition": "1"}
    assert changed["rooms"].batch == 7
    assert load(tmp_path, STREAMS) == {}


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ("[streams.rooms]\nbatch = 1", "streams.rooms has neither from nor to"),
        ('[streams.rooms]\nfrom = "mail://a"', r"streams.rooms.from: the URL is malformed"),
        ('[streams.rooms]\nfrom = "http://u:p@a/"', r"streams.rooms.from: the URL holds credent"),
        ('[streams.rooms]\nto = "ws://a/"', r"streams.rooms.to: ws://a/ takes no messages"),
        ('[streams.rooms]\nfrom = "http://a/"\nvia = "kafka"', "has no such URLs"),
        ('[streams.rooms]\nfrom = "http://a/"\nbatch = 0', "streams.rooms.batch must be a whole"),
        ('[streams.rooms]\nform = "http://a/"', "there is no setting 'form'"),
        ('[streams.rooms]\nto = "http://a/"\nto_token_variable = "NONE"', "which is not set"),
        ('[streams.rooms]\nto = "http://a/"\nto_scope = "x"', "to_scope is set, but not all"),
        (
            '[streams.rooms]\nto = "http://a/"\nto_token_url = "http://a/"\nto_client_id = "me"\n'
            'to_client_secret_file = "x"',
            "to_token_url.*changed in transit",
        ),
        (
            '[streams.rooms]\nfrom = "http://a/"\nfrom_token_url = "https://a/"\n'
            'from_client_id = "me"\nfrom_client_secret_file = "absent"',
            "from_client_secret_file.*cannot be read",
        ),
        ('[streams."a/b"]\nto = "http://a/"', "'a/b' is not the name of a stream"),
        ('[streams.read]\nto = "http://a/"', "streams.read is the name of a setting"),
        ("[streams.bridges.rooms]\nbatch = 1", "there is no setting 'rooms'"),
    ],
)
def test_refusals(tmp_path: Path, table: str, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        load(tmp_path, f"{STREAMS}{table}\n")


@pytest.mark.parametrize(
    ("tables", "loop"),
    [
        ('[streams.x]\nfrom = "nats://a/t"\nto = "nats://a/t"\n', "x → nats://a/t → x"),
        (
            '[streams.x]\nto = "http://127.0.0.1:8080/streams/y"\n'
            '[streams.y]\nto = "http://127.0.0.1:8080/streams/x/"\n',
            "x → y → x",
        ),
        (
            '[streams.x]\nfrom = "nats://a/t"\nto = "nats://a/u"\n'
            '[streams.y]\nfrom = "nats://a/u"\nto = "nats://a/t"\n',
            "x → nats://a/u → y → nats://a/t → x",
        ),
        (
            '[streams.x]\nto = "nats://a/u"\n[streams.y]\nfrom = "nats://a/u"\nto = "nats://a/t"\n',
            None,
        ),
    ],
    ids=["one", "two of this server", "two through a broker", "a chain"],
)
def test_loops(tmp_path: Path, tables: str, loop: str | None) -> None:
    if loop is None:
        assert load(tmp_path, STREAMS + tables).keys() == {"x", "y"}
    else:
        with pytest.raises(UsageError, match=f"is a loop: {re.escape(loop)}"):
            load(tmp_path, STREAMS + tables)


def test_a_bridge_without_a_store(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is set, but not streams\.file"):
        load(tmp_path, '[streams.rooms]\nto = "http://localhost/streams/b"\n')


def test_credentials_of_a_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret is beside the file, as all files that it names."""
    (tmp_path / "secret").write_text("s")
    table = (
        f'{STREAMS}[streams.rooms]\nfrom = "http://a/"\nfrom_token_url = "https://a/"\n'
        'from_client_id = "me"\nfrom_client_secret_file = "secret"\n'
    )
    (bridge,) = load(tmp_path, table).values()
    assert bridge.from_client_secret_file == str(tmp_path / "secret")
    monkeypatch.setenv("TOKEN", "t")
    path = tmp_path / "server.toml"
    path.write_text(f'{table}from_token_variable = "TOKEN"\n')
    with pytest.raises(UsageError, match="from_token_url is set beside a token"):
        load_config(path, {"TOKEN": "t"}, {})


def test_brokers_have_no_tokens(tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    path.write_text(
        f'{STREAMS}[streams.rooms]\nfrom = "mqtt://a/b"\nfrom_token_variable = "TOKEN"\n'
    )
    with pytest.raises(UsageError, match=r"streams.rooms.from: a token is given") as refused:
        load_config(path, {"TOKEN": "secret"}, {})
    assert "username and password" in str(refused.value)
    assert "secret" not in str(refused.value)
