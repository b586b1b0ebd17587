"""The server's settings: which layer wins, and what is said of a setting that makes no sense."""

import re
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import UsageError
from construct_messages.rdf.options import REQUIRED, options_of
from construct_messages.server.config import (
    OF_FILES,
    OF_URLS,
    Config,
    EndpointSettings,
    JwtSettings,
    Limits,
    StreamsSettings,
)
from construct_messages.server.runtime.settings import PREFIX, as_toml, load_config

URL = "https://example.org/sparql"
REMOTE = f'[endpoints.d]\nsource = "{URL}"\n'
FILES = '[endpoint]\nsource = "data.ttl"\n'
CREDENTIALS = {"SECRET": "hunter2", "LINES": "a\r\nb: c"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with an RDF file, a store directory and a folder that is none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.ttl").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "CURRENT").write_text("")
    return tmp_path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for many examples."""
    return tmp_path_factory.mktemp("settings")


def load(text: str | None = None, environ: dict[str, str] | None = None, **flags: Any) -> Config:
    path = None
    if text is not None:
        path = Path("server.toml")
        path.write_text(text, encoding="utf-8")
    variables = {PREFIX + name: value for name, value in (environ or {}).items()} | CREDENTIALS
    return load_config(
        path, variables, {name.replace("__", "."): value for name, value in flags.items()}
    )


@pytest.mark.usefixtures("here")
def test_defaults_are_those_of_the_structures() -> None:
    assert load(REMOTE) == Config(endpoints={"d": EndpointSettings(source=(URL,))})
    assert load(endpoint__source=["data.ttl"]) == Config(
        endpoints={"": EndpointSettings(source=("data.ttl",))}
    )


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("text", "environ", "flags", "workers"),
    [
        (REMOTE, {}, {}, 1),
        ("workers = 2\n" + REMOTE, {}, {}, 2),
        ("workers = 2\n" + REMOTE, {"WORKERS": "3"}, {}, 3),
        ("workers = 2\n" + REMOTE, {"WORKERS": "3"}, {"workers": "4"}, 4),
        ("workers = 2\n" + REMOTE, {}, {"workers": "4"}, 4),
        ("workers = 2\n" + REMOTE, {"WORKERS": ""}, {}, 2),
        (None, {"ENDPOINT__SOURCE": URL, "WORKERS": "3"}, {}, 3),
    ],
    ids=[
        "default",
        "file",
        "environment",
        "flag",
        "flag over file",
        "an empty variable",
        "no file",
    ],
)
def test_the_later_layer_wins(
    text: str | None, environ: dict[str, str], flags: dict[str, Any], workers: int
) -> None:
    assert load(text, environ, **flags).workers == workers


@pytest.mark.usefixtures("here")
def test_layers_replace_single_settings() -> None:
    text = REMOTE + "page_size = 10\nretries = 1\nlimits.seconds = 5\nlimits.messages = 7\n"
    environ = {"ENDPOINTS__D__RETRIES": "2", "ENDPOINTS__D__LIMITS__SECONDS": "none"}
    endpoint = load(text, environ).endpoints["d"]
    assert (endpoint.page_size, endpoint.retries) == (10, 2)
    assert endpoint.limits == Limits(seconds=None, messages=7)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("variable", "value", "attribute", "expected"),
    [
        ("BIND", "0.0.0.0:80", "bind", "0.0.0.0:80"),
        ("BIND", "[::1]:80", "bind", "[::1]:80"),
        ("LOG_QUERIES", "true", "log_queries", True),
        ("SHUTDOWN_SECONDS", "2.5", "shutdown_seconds", 2.5),
        ("SHUTDOWN_SECONDS", "2", "shutdown_seconds", 2.0),
        ("CORS", "https://example.org", "cors", ("https://example.org",)),
        ("CORS", '["https://a.org", "https://b.org"]', "cors", ("https://a.org", "https://b.org")),
        ("CORS", "[]", "cors", ()),
        ("PUBLIC_URL", "none", "public_url", None),
        ("ENDPOINTS__D__PAGE_SIZE", "10", "endpoints.d.page_size", 10),
        ("ENDPOINTS__D__PAGE_SIZE", "none", "endpoints.d.page_size", None),
        ("ENDPOINTS__D__CONTACT", "42", "endpoints.d.contact", "42"),
        ("ENDPOINTS__D__SERVICE", "allow", "endpoints.d.service", "allow"),
        ("ENDPOINTS__D__SERVICE", '["http://a.org/"]', "endpoints.d.service", ("http://a.org/",)),
        (
            "ENDPOINTS__D__PREFIXES",
            '{ex = "http://a.org/"}',
            "endpoints.d.prefixes",
            {"ex": "http://a.org/"},
        ),
        ("ENDPOINTS__NEW__SOURCE", URL, "endpoints.new.source", (URL,)),
        ("ENDPOINT__SOURCE", '["data.ttl"]', "endpoints..source", ("data.ttl",)),
    ],
)
def test_variables(variable: str, value: str, attribute: str, expected: object) -> None:
    found: Any = load(REMOTE, {variable: value})
    for part in attribute.split("."):
        found = found[part] if isinstance(found, dict) else getattr(found, part)
    assert found == expected


@pytest.mark.usefixtures("here")
def test_every_setting_has_a_variable() -> None:
    """Written into its variable as the check of settings prints it, each setting gives the same again."""
    for struct, above, others in (
        (Config, "", {}),
        (EndpointSettings, "ENDPOINTS__D__", {}),
        (Limits, "ENDPOINTS__D__LIMITS__", {}),
        (StreamsSettings, "STREAMS__", {"STREAMS__FILE": "streams.db"}),
        (JwtSettings, "JWT__", dict.fromkeys(("JWT__ISSUER", "JWT__AUDIENCE", "JWT__KEYS"), URL)),
    ):
        for field in fields(struct):
            tables = {"endpoints", "limits", "streams", "jwt", "bridges"}
            if struct is StreamsSettings:
                tables.discard("streams")  # their number
            default = options_of(struct)[field.name].default
            if default is REQUIRED or field.name in (*tables, *OF_FILES):
                continue
            value = msgspec.json.encode(default).decode().strip('"').replace("null", "none")
            if value:
                assert load(REMOTE, {above + field.name.upper(): value} | others) == load(
                    REMOTE, others
                )


@pytest.mark.usefixtures("here")
def test_a_setting_may_have_the_name_of_its_table() -> None:
    config = load("[streams]\nfile = 'streams.db'\nstreams = 5")
    assert (config.streams and config.streams.streams) == 5


@pytest.mark.usefixtures("here")
def test_a_variable_finds_the_endpoint_of_the_file() -> None:
    text = f'[endpoints.My-Data]\nsource = "{URL}"\n'
    assert load(text, {"ENDPOINTS__MY_DATA__PAGE_SIZE": "5"}).endpoints["My-Data"].page_size == 5
    with pytest.raises(
        UsageError,
        match=r"ENDPOINTS__MY_DATA__PAGE_SIZE could mean the endpoints My-Data and my_data",
    ):
        load(
            text + f'[endpoints.my_data]\nsource = "{URL}"\n',
            {"ENDPOINTS__MY_DATA__PAGE_SIZE": "5"},
        )


@pytest.mark.usefixtures("here")
def test_the_source_of_the_other_commands_is_the_last_resort() -> None:
    variable = {"CONSTRUCT_MESSAGES_SOURCE": "data.ttl"}
    assert load_config(None, variable, {}).endpoints[""].source == ("data.ttl",)
    assert set(
        load_config(None, variable, {"endpoint.source": ["store"]}).endpoints[""].source
    ) == {"store"}


def test_paths_in_a_file_are_beside_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "server.toml").write_text(FILES + f'[endpoints.d]\nsource = "{URL}"\n')
    monkeypatch.chdir("/")
    config = load_config(here / "server.toml", {}, {})
    assert config.endpoints[""].source == (str(here / "data.ttl"),)
    assert config.endpoints["d"].source == (URL,)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a b", "line 1, column 3: server.toml is not TOML: Expected '=' after a key", "toml.io"),
        ("a = ", "server.toml is not TOML: Invalid value", "toml.io"),
        ("a = 1\nb = 2 3", "line 2, column 7: server.toml is not TOML", "toml.io"),
        ("", "no endpoint is named", "--source"),
        (
            "wokers = 3\n" + REMOTE,
            "server.toml: wokers: there is no setting 'wokers'",
            "did you mean workers?",
        ),
        ("xyz = 3\n" + REMOTE, "server.toml: xyz: there is no setting 'xyz'", "choose one of"),
        (
            REMOTE + "page_sise = 3",
            "server.toml: endpoints.d.page_sise: there is no setting",
            "did you mean page_size?",
        ),
        (
            REMOTE + "limits.secnds = 3",
            "endpoints.d.limits.secnds: there is no setting",
            "did you mean seconds?",
        ),
        ("[endpont]\nsource = 'x'", "endpont: there is no setting", "did you mean endpoint?"),
        (
            REMOTE + "page_size = 0",
            "endpoints.d.page_size must be a whole number of at least 1",
            'page_size = "auto"',
        ),
        (
            REMOTE + "page_size = 'ten'",
            "page_size must be a whole number .*, not the string 'ten'",
            'page_size = "auto"',
        ),
        (
            REMOTE + "page_size = 1.5",
            "page_size must be a whole number .*, not the number 1.5",
            'page_size = "auto"',
        ),
        (
            REMOTE + "page_size = true",
            "page_size must be a whole number .*, not True",
            'page_size = "auto"',
        ),
        (
            REMOTE + "update = 1",
            "endpoints.d.update must be true or false, not the number 1",
            "update = true",
        ),
        (
            REMOTE + "limits.seconds = 0",
            "limits.seconds must be a number above 0",
            "seconds = 300.0",
        ),
        (
            REMOTE + "limits.seconds = nan",
            "limits.seconds must be a number above 0",
            "seconds = 300.0",
        ),
        (
            REMOTE + "limits.seconds = inf",
            "limits.seconds must be a number above 0",
            "seconds = 300.0",
        ),
        (
            REMOTE + "concurrency = 'none'",
            "concurrency must be a whole number of at least 1, not",
            "concurrency = 50",
        ),
        (
            REMOTE + "method = 'put'",
            'method must be "get" or "post", not the string',
            'method = "(get|post)"',
        ),
        (
            REMOTE + "service = 'http://a.org/'",
            'service must be "allow" or "deny" or a list',
            'service = "(allow|deny)"',
        ),
        (REMOTE + "prefixes = { a = 1 }", "prefixes must be a table of strings", "prefixes = {"),
        (
            REMOTE + "forward_headers = [1]",
            "forward_headers must be a list of strings",
            r"forward_headers = \[",
        ),
        (REMOTE + "contact = 2026-01-01", "contact must be a string", 'contact = "…"'),
        ("endpoints = 3", "server.toml: endpoints must be a table", r"\[endpoints.NAME\]"),
        (
            "endpoint = 3",
            "server.toml: endpoint must be a table, not the number 3",
            r"\[endpoint\]",
        ),
        (REMOTE + "limits = 3", "endpoints.d.limits must be a table", r"\[endpoints.d.limits\]"),
        (
            FILES + "[endpoints.'']\nsource = 'data.ttl'",
            "both endpoint and endpoints",
            r"\[endpoint\]",
        ),
        (
            "[endpoint]\nretries = 1",
            "endpoint.retries is set, but not endpoint.source",
            "set endpoint.source",
        ),
        ("[endpoint]\nsource = []", "endpoint.source is empty", "name a URL"),
        (
            "[endpoint]\nsource = 'no.ttl'",
            "endpoint.source: no.ttl: no such file",
            "relative to the file",
        ),
        (
            "[endpoint]\nsource = 'other'",
            "other is not an Oxigraph store directory",
            "oxigraph load",
        ),
        (
            "[endpoint]\nsource = ['store', 'data.ttl']",
            "store is a directory",
            "one store directory",
        ),
        (
            f"[endpoint]\nsource = ['{URL}', 'data.ttl']",
            "endpoint.source has more than a URL",
            "one URL",
        ),
        (f"[endpoint]\nsource = ['data.ttl', '{URL}']", "endpoint.source has a URL", "one http"),
        ("[endpoint]\nsource = 'ftp://example.org/'", "endpoint.source has a URL", "one http"),
        (
            "[endpoint]\nsource = 'https://'",
            "endpoint.source: the URL is malformed",
            "https://example.org/sparql",
        ),
        (
            "[endpoint]\nsource = 'https://example.org:99999/'",
            "endpoint.source: the URL is malformed",
            "https://",
        ),
        (
            "[endpoint]\nsource = 'https://[::1/'",
            "endpoint.source: the URL is malformed",
            "https://",
        ),
        (
            "[endpoint]\nsource = 'https://example.org/a b'",
            "endpoint.source: the URL is malformed",
            "https://",
        ),
        (
            "[endpoint]\nsource = 'https://example.org/#x'",
            "endpoint.source: the URL has a fragment",
            "leave out #",
        ),
        (FILES + "page_size = 3", "endpoint.page_size is for URLs only", "leave it out"),
        (FILES + "update = true", "endpoint.update is for URLs only", "leave it out"),
        (
            REMOTE + f"update = true\nupdate_source = '{URL}#x'",
            "endpoints.d.update_source: the URL has a fragment",
            "leave out",
        ),
        (
            REMOTE + f"update_source = '{URL}'",
            "endpoints.d.update_source is set, but not update",
            "update = true",
        ),
        (
            FILES + f"update_source = '{URL}'",
            "endpoint.update_source is for URLs only",
            "leave it out",
        ),
        # an example of a value is the setting's default (issue 13, 24)
        (
            "workers = 0\n" + REMOTE,
            "workers must be a whole number of at least 1, not the number 0",
            "workers = 1$",
        ),
        (
            FILES + "evaluator_bytes = 'much'",
            'whole number of at least 1 or "auto" or "none"',
            "evaluator_bytes = ",
        ),
        (REMOTE + "evaluators = 3", "endpoints.d.evaluators is for files only", "leave it out"),
        (
            REMOTE + "profile = 'virtuso'",
            "endpoints.d.profile: there is no endpoint profile 'virtuso'",
            "virtuoso",
        ),
        (
            REMOTE + "prefixes = { a = 'b' }",
            "endpoints.d.prefixes: prefix a:: IRI <b> is relative",
            "absolute",
        ),
        (
            REMOTE + "prefixes = { 'a b' = 'http://a.org/' }",
            "prefixes: 'a b' is not a prefix",
            "without colon",
        ),
        (REMOTE + "service = ['a b']", "endpoints.d.service: IRI <a b>", "percent-encode"),
        (
            REMOTE + "forward_headers = ['Host']",
            "forward_headers: 'Host' cannot be sent on",
            "leave it out",
        ),
        (
            REMOTE + "forward_headers = ['a b']",
            "forward_headers: 'a b' cannot be sent on",
            "leave it out",
        ),
        (REMOTE + 'contact = "a\\r\\nb: c"', "contact: .* is not allowed in a header", "ASCII"),
        (
            REMOTE + "user_variable = 'NOT_SET'",
            "user_variable names NOT_SET, which is not set",
            "set the environment",
        ),
        (REMOTE + "token_variable = 'LINES'", "LINES holds a line break", "remove it"),
        (
            REMOTE + "user_variable = 'SECRET'",
            "user_variable is set, but not password_variable",
            "set both",
        ),
        (
            REMOTE + "password_variable = 'SECRET'",
            "password_variable is set, but not user_variable",
            "set both",
        ),
        (
            REMOTE
            + "user_variable = 'SECRET'\npassword_variable = 'SECRET'\ntoken_variable = 'SECRET'",
            "token_variable and user_variable are both set",
            "set one",
        ),
        (
            REMOTE + "token_variable = 'SECRET'\nforward_headers = ['authorization']",
            "forward_headers has Authorization, in addition to the server's own credentials",
            "forward the client's",
        ),
        (
            f"[endpoints.'a b']\nsource = '{URL}'",
            r'endpoints."a b".source: .a b. cannot be a path segment',
            "letters",
        ),
        (f"[endpoints.'..']\nsource = '{URL}'", "cannot be a path segment", "letters"),
        (
            "bind = ':80'\n" + REMOTE,
            "server.toml: bind: ':80' is no address to listen at",
            "127.0.0.1:8080",
        ),
        ("bind = '127.0.0.1'\n" + REMOTE, "bind: .* is no address to listen at", "127.0.0.1:8080"),
        ("bind = 'a:65536'\n" + REMOTE, "bind: .* is no address to listen at", "127.0.0.1:8080"),
        ("public_url = 'example.org'\n" + REMOTE, "public_url: the URL is malformed", "https://"),
        (
            "cors = ['example.org']\n" + REMOTE,
            "cors: 'example.org' is no origin",
            "https://example.org",
        ),
        (
            "cors = ['https://example.org/']\n" + REMOTE,
            "cors: .* is no origin",
            "https://example.org",
        ),
        (
            "workers = 9\n" + FILES,
            "endpoint.evaluators is 8, which 9 workers cannot share",
            "at least 9",
        ),
        (
            "workers = 3\n" + REMOTE + "concurrency = 2",
            "endpoints.d.concurrency is 2, which 3 workers",
            "at least 3",
        ),
    ],
    ids=lambda value: (
        value.replace(REMOTE, "").replace("\n", "; ")[:50] if isinstance(value, str) else None
    ),
)
def test_what_makes_no_sense_is_named_with_its_fix(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        load(text)
    position = f"{refused.value.position}: " if refused.value.position else ""
    assert re.search(message, position + refused.value.message), refused.value
    assert re.search(hint, refused.value.hint or ""), refused.value.hint


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (
            "WORKERS",
            "two",
            "CONSTRUCT_MESSAGES_SERVER_WORKERS must be a whole number of at least 1, not the string 'two'",
        ),
        ("WORKER", "2", "CONSTRUCT_MESSAGES_SERVER_WORKER: there is no setting 'worker'"),
        ("ENDPOINTS", "x", "CONSTRUCT_MESSAGES_SERVER_ENDPOINTS: there is no setting 'endpoints'"),
        ("ENDPOINTS__D", "x", "CONSTRUCT_MESSAGES_SERVER_ENDPOINTS__D: there is no setting 'd'"),
        (
            "ENDPOINTS__D__LIMITS",
            "x",
            "CONSTRUCT_MESSAGES_SERVER_ENDPOINTS__D__LIMITS: there is no setting 'limits'",
        ),
        ("ENDPOINTS__D__LIMITS__X", "1", "ENDPOINTS__D__LIMITS__X: there is no setting 'x'"),
        ("ENDPOINTS__D__PAGE_SIZE__X", "1", "ENDPOINTS__D__PAGE_SIZE__X: there is no setting 'x'"),
        (
            "ENDPOINTS__E__PAGE_SIZE",
            "1",
            "ENDPOINTS__E__PAGE_SIZE is set, but not endpoints.e.source",
        ),
        ("CORS", "[", "CORS is no list or table of TOML"),
        ("LOG_QUERIES", "yes", "LOG_QUERIES must be true or false, not the string 'yes'"),
        ("ENDPOINTS__D__LIMITS__SECONDS", "null", 'must be a number above 0 or "none", not'),
        ("ENDPOINTS__D__UPDATE", "2", "ENDPOINTS__D__UPDATE must be true or false"),
        ("ENDPOINT__SOURCE", "no.ttl", "ENDPOINT__SOURCE: no.ttl: no such file"),
    ],
)
def test_variables_that_make_no_sense(variable: str, value: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        load(REMOTE, {variable: value})
    assert message in refused.value.message
    assert refused.value.hint


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"workers": "0"}, "--workers must be a whole number of at least 1, not the number 0"),
        ({"endpoint__page_size": "10"}, "--page-size is set, but not endpoint.source"),
        ({"log_format": "xml"}, '--log-format must be "json" or "text", not the string \'xml\''),
        ({"endpoint__source": ["no.ttl"]}, "--source: no.ttl: no such file"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_flags_that_make_no_sense(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        load(REMOTE, **flags)
    assert message in refused.value.message


@pytest.mark.usefixtures("here")
def test_a_file_that_cannot_be_read() -> None:
    with pytest.raises(UsageError, match=r"cannot read the settings no\.toml: No such file"):
        load_config(Path("no.toml"), {}, {})
    Path("latin.toml").write_bytes(b'bind = "\xe9"')
    with pytest.raises(UsageError, match="not UTF-8 at byte 8"):
        load_config(Path("latin.toml"), {}, {})


SECRETS = [
    "[endpoint]\nsource = 'https://user:hunter2@example.org/'",
    "[endpoint]\nsource = 'ftp://user:hunter2@example.org/'",
    "[endpoint]\nsource = 'https://hunter2 /'",
    "[endpoint]\nsource = ['https://user:hunter2@example.org/', 'data.ttl']",
    "[endpoint]\nsource = ['data.ttl', 'https://user:hunter2@example.org/']",
    "public_url = 'https://user:hunter2@example.org/'\n" + REMOTE,
    REMOTE + "password = 'hunter2'",
    REMOTE + "password = 'hunter2",
    REMOTE + "token_variable = 'SECRET'\nuser_variable = 'SECRET'",
]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("text", SECRETS)
def test_errors_hold_no_secrets(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        load(text)
    assert "hunter2" not in str(refused.value)


@pytest.mark.usefixtures("here")
def test_what_is_shown_holds_no_secrets() -> None:
    text = "[endpoint]\nsource = 'https://example.org/?key=hunter2'\ntoken_variable = 'SECRET'"
    assert "hunter2" not in as_toml(load(text))


SETTINGS = st.fixed_dictionaries(
    {"source": st.just([URL])},
    optional={
        "page_size": st.integers(1, 10**6) | st.just("none"),
        "rate": st.floats(0.001, 1000) | st.just("none"),
        "contact": st.sampled_from(["", "none of that", "mailto:a@b.org", "\\\"'#="]),
        "prefixes": st.dictionaries(
            st.sampled_from(["a", "b", ""]), st.just("http://example.org/")
        ),
        "service": st.sampled_from(["deny", "allow", "none"]) | st.just(["http://example.org/"]),
        "update": st.booleans(),
        "limits": st.fixed_dictionaries(
            {}, optional={"seconds": st.floats(0.1, 1000), "messages": st.just("none")}
        ),
    },
)
NAMES = st.sampled_from(["a", "0", "A.b_c~d-e", "limits", "endpoint"])


@given(
    endpoints=st.dictionaries(NAMES, SETTINGS, min_size=1, max_size=3), unnamed=SETTINGS | st.none()
)
def test_what_is_shown_reads_back(
    place: Path, endpoints: dict[str, Any], unnamed: dict[str, Any] | None
) -> None:
    path = place / "server.toml"
    document = {"endpoints": endpoints} | ({} if unnamed is None else {"endpoint": unnamed})
    path.write_bytes(msgspec.toml.encode(document))
    config = load_config(path, {}, {})
    again = path.with_name("again.toml")
    again.write_text(as_toml(config), encoding="utf-8")
    assert load_config(again, {}, {}) == config


KEYS = st.sampled_from(
    [field.name for struct in (Config, EndpointSettings, Limits) for field in fields(struct)]
    + ["endpoint", "", "x"]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)


@given(
    document=st.dictionaries(KEYS, VALUES | st.dictionaries(KEYS, VALUES, max_size=4), max_size=4)
)
def test_whatever_is_written_is_read_or_refused(place: Path, document: dict[str, Any]) -> None:
    path = place / "server.toml"
    path.write_bytes(msgspec.toml.encode(document))
    with suppress(UsageError):
        assert load_config(path, {}, {}).endpoints


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z_]{0,30}", fullmatch=True), st.text(max_size=20), max_size=3
    )
)
def test_whatever_the_environment_holds_is_read_or_refused(environ: dict[str, str]) -> None:
    variables = {PREFIX + name: value for name, value in environ.items()}
    with suppress(UsageError):
        assert (
            "d"
            in load_config(None, variables | {PREFIX + "ENDPOINTS__D__SOURCE": URL}, {}).endpoints
        )


def test_every_setting_is_of_one_kind_of_source_or_of_both() -> None:
    names = {field.name for field in fields(EndpointSettings)}
    assert set(OF_URLS) | set(OF_FILES) <= names
    assert not set(OF_URLS) & set(OF_FILES)
