"""Checks that settings are consistent and can be served, before sockets and stores are opened.

Raises `UsageError` with the setting, its value and the fix. Reads files and environment variables. `config.py` has the
types of settings.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from construct_messages.errors import ConstructMessagesError, UsageError
from construct_messages.feeds.opening import check_dead_letters, check_token, check_via
from construct_messages.feeds.opening import check_url as check_stream
from construct_messages.feeds.table import kinds_for
from construct_messages.query.prologue import check_prefixes
from construct_messages.rdf.terms import iri, is_iri
from construct_messages.server.config import (
    OF_FILES,
    OF_URLS,
    BridgeSettings,
    Config,
    EndpointSettings,
    JwtSettings,
    Key,
    StreamsSettings,
    dotted_name,
)
from construct_messages.server.sparql.messages import KnownFrames
from construct_messages.server.streams.publishing import known_contexts
from construct_messages.sparql.client.oauth import read_secret
from construct_messages.sparql.client.responses import HEADER_NAME
from construct_messages.sparql.client.tls import server_tls_context
from construct_messages.sparql.client.urls import check_secure, check_url, is_url
from construct_messages.sparql.sources.http.profiles import Profile
from construct_messages.sparql.sources.tables import check_directory
from construct_messages.streams.store import is_name

# --- memory ---------------------------------------------------------------------------------------
# The memory that an evaluating process may use by default: a share of the available memory.
#
# That is the machine's memory, or less in a container or a systemd unit: the smallest `memory.max` of the control
# groups (https://docs.kernel.org/admin-guide/cgroup-v2.html, "Memory Interface Files"), or the limit of version 1.
# Sets no limit.

LEAST: Final = 512 << 20
"""The minimal number of bytes for a process: an evaluation over a few million quads needs them."""

_SHARE: Final = 2
"""The divisor for the share of all evaluators; the rest is for the server, the page cache and other programs."""


def available_bytes(root: Path = Path("/")) -> int:
    """Returns the memory that this process may use, in bytes; `proc` and `sys` are mounted below `root`."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in _limit_files(root):
        try:
            text = file.read_text().strip()
        except OSError:  # the control group does not exist, or cannot be read
            continue
        if text.isdecimal():  # else "max"
            limits.append(int(text))
    return min(limits)


def _limit_files(root: Path) -> list[Path]:
    groups = root / "sys/fs/cgroup"
    # in a container the group itself is mounted there
    files = [groups / "memory.max", groups / "memory/memory.limit_in_bytes"]
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return files
    for line in lines:
        _, controllers, group = line.split(":", 2)
        path = group.lstrip("/")
        if controllers == "":
            # the limits of all parent groups apply as well
            files += [groups / part / "memory.max" for part in (Path(path), *Path(path).parents)]
        elif "memory" in controllers.split(","):
            files.append(groups / "memory" / path / "memory.limit_in_bytes")
    return files


def evaluator_bytes(evaluators: int, available: int) -> int:
    """Returns the limit of each of several evaluating processes, in bytes.

    >>> evaluator_bytes(8, 24 << 30) >> 20, evaluator_bytes(8, 2 << 30) >> 20
    (1536, 512)
    """
    return max(LEAST, available // _SHARE // evaluators)


def bounded(config: Config) -> Config:
    """Returns the settings with a number for each `evaluator_bytes` that is `"auto"`: all evaluators share the memory.

    >>> from construct_messages.server.config import EndpointSettings
    >>> bounded(Config(endpoints={"": EndpointSettings(source=("a.ttl",))})).endpoints[""].evaluator_bytes >= LEAST
    True
    """
    open_ended = [
        e for e in config.endpoints.values() if not e.is_remote and e.evaluator_bytes == "auto"
    ]
    if not open_ended:
        return config
    share = evaluator_bytes(sum(e.evaluators for e in open_ended), available_bytes())
    endpoints = {
        name: replace(endpoint, evaluator_bytes=share) if endpoint in open_ended else endpoint
        for name, endpoint in config.endpoints.items()
    }
    return replace(config, endpoints=endpoints)


# --- checks ---------------------------------------------------------------------------------------

Where = Callable[..., str]
"""The places where settings were written, by their keys."""

# unescaped: a name is a segment of a path
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")
_ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519", "EdDSA"),
)
_ORIGIN: Final = re.compile(
    r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?"
)

# headers of the connection or of the message itself (RFC 9110, sections 7.6.1 and 8.6), or set by the HTTP client
_NEVER_FORWARDED: Final = {
    *("accept", "accept-encoding", "connection", "content-encoding", "content-length"),
    *("content-type", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection"),
    *("range", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"),
}


def check_config(config: Config, environ: Mapping[str, str], origins: Mapping[Key, str]) -> None:
    """Checks settings that have the right types. Errors name their `origins`, the places where they were written."""

    def where(*key: str) -> str:
        return origins.get(key, dotted_name(key))

    _check_at(where("bind"), lambda: config.address)
    if config.public_url is not None:
        _check_at(where("public_url"), lambda: check_url(config.public_url or ""))
    for origin in config.cors:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise UsageError(
                f"{where('cors')}: {origin!r} is no origin",
                hint="write * or a scheme and host, as in https://example.org",
            )
    if config.jwt is not None:
        _check_jwt(config.jwt, where)
    if config.streams is not None:
        _check_streams(config, config.streams, environ, where)
    for name, endpoint in config.endpoints.items():
        if name and not _NAME.fullmatch(name):
            raise UsageError(
                f"{where('endpoints', name, 'source')}: {name!r} cannot be a path segment of a URL",
                hint="use letters, digits, - . _ and ~ for the name of an endpoint",
            )

        def of(*key: str, name: str = name) -> str:
            return where("endpoints", name, *key)

        _check_endpoint(endpoint, environ, of)
        for setting in OF_FILES if endpoint.is_remote else OF_URLS:
            if ("endpoints", name, setting) in origins:
                kind = "URLs" if setting in OF_URLS else "files"
                raise UsageError(
                    f"{of(setting)} is for {kind} only, and the source is not one",
                    hint="leave it out",
                )
        for setting in ("concurrency", *(() if endpoint.is_remote else ("evaluators",))):
            if (value := getattr(endpoint, setting)) < config.workers:
                raise UsageError(
                    f"{of(setting)} is {value}, which {config.workers} workers cannot share",
                    hint=f"set {setting} to at least {config.workers}, or workers to at most {value}",
                )


def _check_streams(
    config: Config, streams: StreamsSettings, environ: Mapping[str, str], where: Where
) -> None:
    if config.workers > 1:
        raise UsageError(
            f"{where('workers')} is {config.workers}, and one process can write streams",
            hint="set workers = 1",
        )
    _check_at(where("streams", "contexts"), lambda: known_contexts(streams.contexts))
    if not Path(streams.file).absolute().parent.is_dir():
        raise UsageError(
            f"{where('streams', 'file')}: {streams.file}: no such folder",
            hint="make the folder first",
        )
    named = [(right, getattr(streams, right)) for right in ("read", "publish", "register")]
    for setting, policy in (*named, *(("tokens", variable) for variable in streams.tokens)):
        if policy == "jwt":
            if config.jwt is None:
                raise UsageError(
                    f"{where('streams', setting)} is jwt, and there is no table [jwt]",
                    hint="name the issuer, the audience and the keys there",
                )
        elif policy not in (None, "deny", "allow") and not environ.get(policy):
            raise UsageError(
                f"{where('streams', setting)} names {policy}, which is not set",
                hint=f"set the environment variable {policy} to a token, or write deny or allow",
            )
    _check_grpc(streams, where)
    for name, bridge in streams.bridges.items():

        def of(*key: str, name: str = name) -> str:
            return where("streams", "bridges", name, *key)

        _check_bridge(name, bridge, environ, of)
    _check_loops(config, streams, where)
    if streams.ldes_version_of_path is not None and not is_iri(streams.ldes_version_of_path):
        raise UsageError(
            f"{where('streams', 'ldes_version_of_path')}: {streams.ldes_version_of_path!r} is no absolute IRI",
            hint="name a property, such as http://purl.org/dc/terms/isVersionOf",
        )


def _check_grpc(streams: StreamsSettings, where: Where) -> None:
    certificate, key, url = streams.grpc_certificate, streams.grpc_key, streams.grpc_url
    for setting in ("grpc_certificate", "grpc_key", "grpc_url"):
        if streams.grpc is None and getattr(streams, setting) is not None:
            raise UsageError(
                f"{where('streams', setting)} is set, but not grpc",
                hint="set grpc to the address of the service, or leave it out",
            )
    if streams.grpc is None:
        return
    _check_at(where("streams", "grpc"), lambda: streams.grpc_address)
    if find_spec("grpclib") is None:
        raise UsageError(
            f"{where('streams', 'grpc')} is set, and grpclib is not installed",
            hint="pip install 'construct-messages[grpc]'",
        )
    if (certificate is None) != (key is None):
        given = "grpc_certificate" if key is None else "grpc_key"
        raise UsageError(
            f"{where('streams', given)} is set without the other file",
            hint="set grpc_certificate and grpc_key",
        )
    if certificate is not None and key is not None:
        pair = certificate, key
        _check_at(where("streams", "grpc_certificate"), lambda: server_tls_context(*pair))
    if url is not None and not re.fullmatch(r"grpcs?://[^/?#@]+", url):
        raise UsageError(
            f"{where('streams', 'grpc_url')}: {url!r} is no URL of a gRPC service",
            hint="write it as grpcs://data.example.org, or with a port",
        )


def _check_bridge(
    name: str, bridge: BridgeSettings, environ: Mapping[str, str], where: Where
) -> None:
    if not is_name(name):
        raise UsageError(
            f"{where('from')}: {name!r} is not the name of a stream",
            hint="take up to 128 letters, digits and -._~, with a letter or digit at both ends",
        )
    if bridge.source is None and bridge.target is None and not bridge.shapes:
        raise UsageError(
            f"{dotted_name(('streams', name))} has neither from nor to nor shapes",
            hint='write from = "URL", to = "URL" or shapes = "FILE"; settings of all streams are in [streams]',
        )
    for setting in ("shapes_data", "allow_warnings", "invalid_to"):
        if getattr(bridge, setting) and not bridge.shapes:
            raise UsageError(f"{where(setting)} needs shapes", hint='write shapes = "FILE", too')
    if bridge.invalid_to is not None and (
        not is_name(bridge.invalid_to) or bridge.invalid_to == name
    ):
        raise UsageError(
            f"{where('invalid_to')}: {bridge.invalid_to!r} is no name of another stream",
            hint="name the stream that gets messages which do not conform",
        )
    if bridge.shapes:
        from construct_messages.construct.shapes import Shapes  # needs an extra

        _check_at(where("shapes"), lambda: Shapes(bridge.shapes, data=bridge.shapes_data))
    if bridge.source is not None:
        source = bridge.source
        _check_at(where("from"), lambda: check_via(source, bridge.via, follow=True))
        if bridge.dead_letters is not None:
            place = bridge.dead_letters
            _check_at(where("dead_letters"), lambda: check_dead_letters(source, place))
    if bridge.target is not None:
        target = bridge.target
        _check_at(where("to"), lambda: check_stream(target))
        if not any(kind.capabilities.writes for kind in kinds_for(target)):
            raise UsageError(
                f"{where('to')}: {target} takes no messages", hint="name a stream that does"
            )
    for side, url in (("from", bridge.source), ("to", bridge.target)):
        variable = getattr(bridge, f"{side}_token_variable")
        _check_variable(variable, where(f"{side}_token_variable"), environ)
        if _has_client(bridge, environ, where, f"{side}_") and variable is not None:
            raise UsageError(
                f"{where(f'{side}_token_url')} is set beside a token",
                hint=f"set {side}_token_variable, or the credentials that tokens are fetched with",
            )
        has_token = variable is not None or getattr(bridge, f"{side}_token_url") is not None
        if has_token and url is not None:
            _check_at(where(side), partial(check_token, url))


def _check_loops(config: Config, streams: StreamsSettings, where: Where) -> None:
    """Refuses bridges that would bring each message back to the stream that it comes from, again and again."""
    bases = [f"http://{config.bind}", *([config.public_url] if config.public_url else [])]
    own = {f"{base.rstrip('/')}/streams/{name}": name for base in bases for name in streams.bridges}
    onward = defaultdict[str, list[str]](list)
    for name, bridge in streams.bridges.items():
        if bridge.source is not None:
            onward[own.get(bridge.source.rstrip("/"), bridge.source)].append(name)
        if bridge.target is not None:
            onward[name].append(own.get(bridge.target.rstrip("/"), bridge.target))
    for name in streams.bridges:
        reached, paths = set[str](), [[name]]
        while paths:
            path = paths.pop()
            for each in onward[path[-1]]:
                if each == name:
                    raise UsageError(
                        f"{where('streams', 'bridges', name)} is a loop: {' → '.join([*path, name])}",
                        hint="leave out one of its bridges: each message would go round for ever",
                    )
                if each not in reached:
                    reached.add(each)
                    paths.append([*path, each])


def _check_jwt(settings: JwtSettings, where: Where) -> None:
    if find_spec("joserfc") is None:
        raise UsageError(
            f"{where('jwt', 'issuer')} is set, and joserfc is not installed",
            hint="pip install 'construct-messages[jwt]'",
        )
    if not settings.algorithms or (unknown := set(settings.algorithms) - set(_ALGORITHMS)):
        shown = sorted(unknown) if settings.algorithms else []
        raise UsageError(
            f"{where('jwt', 'algorithms')} has {', '.join(shown) or 'nothing'}",
            hint=f"choose from {', '.join(_ALGORITHMS)}, whose keys are public",
        )
    if is_url(settings.keys):
        _check_at(where("jwt", "keys"), lambda: check_secure(settings.keys))
    elif not Path(settings.keys).is_file():
        raise UsageError(
            f"{where('jwt', 'keys')}: {settings.keys}: no such file",
            hint="name the issuer's jwks_uri, or a file with its keys",
        )


def _check_endpoint(endpoint: EndpointSettings, environ: Mapping[str, str], where: Where) -> None:
    if not endpoint.source:
        raise UsageError(
            f"{where('source')} is empty", hint="name a URL, RDF files or a store directory"
        )
    if endpoint.is_remote:
        if len(endpoint.source) > 1:
            raise UsageError(
                f"{where('source')} has more than a URL", hint="name one URL, or RDF files"
            )
        _check_at(where("source"), lambda: check_url(endpoint.source[0]))
        if endpoint.update_source is not None:
            _check_at(where("update_source"), lambda: check_url(endpoint.update_source or ""))
            if not endpoint.update:
                raise UsageError(
                    f"{where('update_source')} is set, but not update", hint="set update = true"
                )
    else:
        _check_files(endpoint.source, where("source"))
    _check_at(where("profile"), lambda: Profile.named(endpoint.profile))
    _check_at(where("prefixes"), lambda: check_prefixes(endpoint.prefixes))
    _check_at(where("frames"), lambda: KnownFrames(endpoint.frames))
    if isinstance(endpoint.service, tuple):
        for address in endpoint.service:
            _check_at(where("service"), lambda address=address: iri(address))  # type: ignore[misc] # mypy infers no defaults
    for header in endpoint.forward_headers:
        if not HEADER_NAME.fullmatch(header) or header.lower() in _NEVER_FORWARDED:
            raise UsageError(
                f"{where('forward_headers')}: {header!r} cannot be sent on",
                hint="leave it out; see docs/reference/server.md",
            )
    if endpoint.contact is not None and not (
        endpoint.contact.isascii() and endpoint.contact.isprintable()
    ):
        raise UsageError(
            f"{where('contact')}: {endpoint.contact!r} is not allowed in a header",
            hint="write it in plain ASCII",
        )
    _check_credentials(endpoint, environ, where)


def _check_files(source: tuple[str, ...], where: str) -> None:
    for name in source:
        path = Path(name)
        if "://" in name:
            raise UsageError(
                f"{where} has a URL that cannot be a source here",
                hint="name one http(s) URL, or RDF files, or a store directory",
            )
        if not path.exists():
            raise UsageError(
                f"{where}: {name}: no such file",
                hint="check the path; in a file it is relative to the file",
            )
        if path.is_dir() and len(source) > 1:
            raise UsageError(
                f"{where}: {name} is a directory", hint="name one store directory, or RDF files"
            )
        if path.is_dir():
            _check_at(where, lambda path=path: check_directory(path))  # type: ignore[misc] # mypy infers no defaults


def _check_credentials(
    endpoint: EndpointSettings, environ: Mapping[str, str], where: Where
) -> None:
    settings = ("user_variable", "password_variable", "token_variable")
    user, password, token = names = tuple(getattr(endpoint, setting) for setting in settings)
    for setting, variable in zip(settings, names, strict=True):
        _check_variable(variable, where(setting), environ)
        if variable is not None and not environ[variable].isprintable():
            raise UsageError(
                f"{where(setting)}: {variable} holds a line break or a control character",
                hint="remove it",
            )
    if _has_client(endpoint, environ, where) and (
        names != (None, None, None) or "authorization" in map(str.lower, endpoint.forward_headers)
    ):
        raise UsageError(
            f"{where('token_url')} is set beside other credentials",
            hint="set one: a token or a password, client credentials, or the client's own header",
        )
    if (user is None) != (password is None):
        given, missing = settings[:2] if password is None else settings[1::-1]
        raise UsageError(
            f"{where(given)} is set, but not {missing}", hint="set both, or token_variable"
        )
    if user is not None and token is not None:
        raise UsageError(
            f"{where('token_variable')} and user_variable are both set",
            hint="set one: a bearer token, or user and password",
        )
    if names != (None, None, None) and "authorization" in map(str.lower, endpoint.forward_headers):
        raise UsageError(
            f"{where('forward_headers')} has Authorization, in addition to the server's own credentials",
            hint="forward the client's, or set the server's",
        )


def _check_variable(variable: str | None, where: str, environ: Mapping[str, str]) -> None:
    if variable is not None and not environ.get(variable):
        raise UsageError(
            f"{where} names {variable}, which is not set",
            hint=f"set the environment variable {variable}",
        )


def _has_client(
    settings: EndpointSettings | BridgeSettings,
    environ: Mapping[str, str],
    where: Where,
    prefix: str = "",
) -> bool:
    """Checks the credentials that are exchanged for access tokens, and returns whether they are set.

    The names of these settings begin with `prefix`.
    """
    names = ("token_url", "client_id", "client_secret_variable", "client_secret_file", "scope")
    values = [getattr(settings, prefix + name) for name in names]
    if not any(value is not None for value in values):
        return False
    url, client, variable, file, _ = values
    if url is None or client is None or (variable is None) == (file is None):
        given = next(name for name, value in zip(names, values, strict=True) if value is not None)
        raise UsageError(
            f"{where(prefix + given)} is set, but not all that a token is fetched with",
            hint=f"set {prefix}token_url, {prefix}client_id, and {prefix}client_secret_variable or "
            f"{prefix}client_secret_file",
        )
    _check_at(where(f"{prefix}token_url"), lambda: check_secure(url))
    secret = "client_secret_file" if variable is None else "client_secret_variable"
    _check_at(where(prefix + secret), lambda: read_secret(environ.get(variable or ""), file))
    return True


def _check_at(where: str, check: Callable[[], object]) -> None:
    """Runs a check, and adds the place of the value to its error."""
    try:
        check()
    except ConstructMessagesError as error:
        raise UsageError(
            f"{where}: {error.message}", position=error.position, hint=error.hint
        ) from error
