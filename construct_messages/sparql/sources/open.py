"""Opens a source: a URL, files, a store directory, or an object of a library."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeGuard, cast
from urllib.parse import unquote, urlsplit

import pyoxigraph as ox

from construct_messages.errors import UsageError
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.options import RETRIES
from construct_messages.rdf.terms import Lenient
from construct_messages.sparql.client.urls import is_object_url, is_url, without_query
from construct_messages.sparql.sources import Source
from construct_messages.sparql.sources.tables import (
    is_table,
    open_files,
    open_table,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    import rdflib
    from SPARQLWrapper import SPARQLWrapper

    from construct_messages.sparql.sources.http.endpoint import Endpoint

    Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
    SourceLike: TypeAlias = (
        Paths | IO[bytes] | ox.Store | rdflib.Graph | SPARQLWrapper | Source | None
    )

VARIABLE: Final = "CONSTRUCT_MESSAGES_SOURCE"
"""The environment variable with the source, used if the caller passes none."""


@checked
def open_source(
    source: SourceLike = None,
    *,
    method: str = "post",
    headers: Mapping[str, str] | None = None,
    results: str = "auto",
    profile: str = "generic",
    retries: int = RETRIES,
    allow_stale: bool = False,
    source_format: str | None = None,
    lenient: Lenient = False,
    read_seconds: float | None = None,
    engine: str = "auto",
    memory_limit: str | None = None,
    threads: int | None = None,
    spill: str | None = None,
    contact: str | None = None,
    resume: str | os.PathLike[str] | None = None,
) -> Source:
    """Opens the source for a URL, files, a store directory, or an object of a library.

    Args:
        source: an endpoint's URL; one or several files, also as `file:` URLs; an open binary file; the directory of an
            Oxigraph store, or of a table of quads, also as the URL of its Parquet files, such as
            `s3://bucket/dump.quads/*.parquet`; a `pyoxigraph.Store`, an `rdflib.Graph` or `Dataset`, a `SPARQLWrapper`;
            a `Source`. None: the URL or path in the environment variable CONSTRUCT_MESSAGES_SOURCE. Credentials for a
            URL come from the environment, too: CONSTRUCT_MESSAGES_USER and CONSTRUCT_MESSAGES_PASSWORD, or
            CONSTRUCT_MESSAGES_TOKEN.
        method: `"post"` (a form) or `"get"`, for URLs.
        headers: additional request headers, for URLs.
        results: the results format to request from an endpoint: `"auto"`, `"json"`, `"xml"` or `"tsv"`.
        profile: the kind of endpoint: `"generic"`, `"oxigraph"`, `"virtuoso"`, `"rdflib"`, `"rdf4j"`, `"graphdb"`,
            `"blazegraph"`, `"fuseki"`, `"stardog"`, `"ontop"` or `"qlever"`.
        retries: the number of retries of a request to an endpoint after a temporary failure.
        allow_stale: open a store directory while another process writes to it.
        source_format: the format of files, by extension, name or media type; None: that of their extension, and for an
            open file one detected from its first bytes.
        lenient: load files with malformed IRIs and language tags. With `"skip"`, DuckDB leaves out the statements with
            them; for other sources, the caller leaves out their solutions.
        read_seconds: seconds in which an endpoint may send nothing; None or `math.inf`: no limit. The timeout of a
            `SPARQLWrapper` overrides it.
        engine: `"duckdb"` reads files by DuckDB, for each query anew; `"oxigraph"` and `"auto"` load them into memory.
        memory_limit: of DuckDB, as in `"1500MB"`; None: four fifths of all.
        threads: of DuckDB; None: one for each core.
        spill: the folder for DuckDB's data beyond the memory; None: a temporary one.
        contact: an address for the User-Agent, by which the operator of an endpoint can reach you; for URLs.
        resume: a file that keeps the responses of an endpoint to a result in pages. A result that ended early continues
            after them, with the same query and options. Remove it when you have the result.

    Raises:
        UsageError: no source is passed, or the value cannot be a source.
        SourceError: the source cannot be opened.

    >>> from construct_messages import construct_messages
    >>> store = ox.Store()
    >>> store.load(b"<urn:a> <urn:p> 1 .", format=ox.RdfFormat.TURTLE)
    >>> source = open_source(store)
    >>> sum(1 for message in construct_messages("CONSTRUCT { ?s a <urn:A> } WHERE { ?s <urn:p> ?o }", source))
    1
    """
    if source is None:
        source = os.environ.get(VARIABLE)
        if not source:
            raise UsageError(
                "no source is named",
                hint=f"pass a file, a store directory or an endpoint's URL, or set {VARIABLE}",
            )
    # each kind of source is imported when it is used: that takes as long as a small query
    if isinstance(source, ox.Store):
        from construct_messages.sparql.sources.oxigraph import OxigraphSource

        return OxigraphSource(source)
    if (module := sys.modules.get("rdflib")) and isinstance(source, module.Graph):
        from construct_messages.sparql.sources.rdflib import RdflibSource

        return RdflibSource(source)
    if (module := sys.modules.get("SPARQLWrapper")) and isinstance(source, module.SPARQLWrapper):
        from construct_messages.sparql.sources.http.endpoint import Endpoint, EndpointSource

        wrapped = Endpoint.of_wrapper(source)
        return EndpointSource(
            wrapped,
            results=results,
            profile=profile,
            retries=retries,
            read_seconds=wrapped.read_seconds or read_seconds,
            resume=resume,
        )
    if _is_source(source):
        return source
    if hasattr(source, "read"):
        if hasattr(source, "encoding"):  # as text files have
            raise UsageError("the file is open for text", hint='open it with mode "rb"')
        from construct_messages.sparql.sources.files import load_open_file
        from construct_messages.sparql.sources.oxigraph import OxigraphSource

        return OxigraphSource(
            load_open_file(cast("IO[bytes]", source), source_format, lenient=bool(lenient))
        )
    paths = [source] if isinstance(source, (str, os.PathLike)) else list(_paths(source))
    limits = {"memory_limit": memory_limit, "threads": threads, "spill": spill}
    if len(paths) == 1 and is_url(paths[0]):
        _refuse_duckdb(engine, limits, "an endpoint")
        from construct_messages.sparql.sources.http.endpoint import EndpointSource

        return EndpointSource(
            _endpoint(paths[0], method, headers, contact),
            results=results,
            profile=profile,
            retries=retries,
            read_seconds=read_seconds,
            resume=resume,
        )
    return _of_files(paths, source_format, limits, engine, allow_stale=allow_stale, lenient=lenient)


def _refuse_duckdb(engine: str, limits: Mapping[str, Any], kind: str) -> None:
    """Refuses the options of DuckDB for a source that something else queries."""
    given = [name for name, value in limits.items() if value is not None]
    for name in [*(["engine"] if engine == "duckdb" else []), *given]:
        raise UsageError(
            f"{name} is an option of DuckDB, and the source is {kind}",
            hint="DuckDB queries tables of quads, and RDF files with the engine duckdb",
        )


def _endpoint(
    url: str, method: str, headers: Mapping[str, str] | None, contact: str | None
) -> Endpoint:
    """The endpoint at a URL, with the credentials in the environment."""
    from construct_messages.sparql.client.responses import (
        TOKEN_URL,
        authorization_of_environment,
    )
    from construct_messages.sparql.sources.http.endpoint import Endpoint

    given = authorization_of_environment() | dict(headers or {})
    tokens = None
    if TOKEN_URL in os.environ:
        from construct_messages.sparql.client.oauth import ClientCredentials, tokens_for

        if (credentials := ClientCredentials.of_environment()) is not None:
            tokens = tokens_for(credentials)
    return Endpoint.at(url, method=method, headers=given, contact=contact, tokens=tokens)


def _of_files(
    paths: Sequence[str | os.PathLike[str]],
    format: str | None,
    limits: Mapping[str, Any],
    engine: str,
    *,
    allow_stale: bool,
    lenient: Lenient,
) -> Source:
    """The source for files, or for one store directory or table."""
    from construct_messages.sparql.sources.files import load_files, open_directory
    from construct_messages.sparql.sources.oxigraph import OxigraphSource

    if len(paths) == 1 and is_object_url(paths[0]):
        return open_table(paths[0], **limits)
    local = [_local(path) for path in paths]
    for path in local:
        if "://" in str(path):
            raise UsageError(
                f"{path} cannot be a source here",
                hint="name one http(s) endpoint, or files, or one store directory",
            )
    directories = [path for path in local if Path(path).is_dir()]
    if directories:
        if len(local) > 1:
            raise UsageError(
                f"{directories[0]} is a directory and cannot be combined",
                hint="name one store directory, or files",
            )
        if is_table(directories[0]):
            return open_table(directories[0], **limits)
        _refuse_duckdb(engine, limits, "a store of Oxigraph")
        return OxigraphSource(open_directory(Path(local[0]), allow_stale=allow_stale))
    if engine == "duckdb":
        return open_files(local, format, lenient=lenient, **limits)
    _refuse_duckdb(engine, limits, "files that Oxigraph queries")
    return OxigraphSource(load_files(list(map(Path, local)), format, lenient=bool(lenient)))


def name_of_source(source: SourceLike) -> dict[str, str]:
    """Returns the names of files, or the URL of an endpoint without secrets, as `source`.

    >>> name_of_source("https://user:secret@example.org/sparql?key=secret"), name_of_source(["a.ttl", "b.ttl"])
    ({'source': 'https://example.org/sparql'}, {'source': 'a.ttl b.ttl'})
    """
    if source is None:
        source = os.environ.get(VARIABLE)
    if isinstance(source, str) and is_url(source):
        parts = urlsplit(without_query(source))
        return {"source": parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()}
    paths = paths_of_source(source)
    return {"source": " ".join(map(str, paths))} if paths else {}


def paths_of_source(source: SourceLike) -> Sequence[str | os.PathLike[str]]:
    """Returns the files or the directory that a source is read from; empty for all other sources.

    >>> paths_of_source("a.ttl"), paths_of_source(["a.ttl", "b.ttl"]), paths_of_source("https://example.org/sparql")
    (['a.ttl'], ['a.ttl', 'b.ttl'], [])
    """
    if source is None:
        source = os.environ.get(VARIABLE)
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(paths, Sequence) or not all(
        isinstance(path, str | os.PathLike) and not is_url(path) for path in paths
    ):
        return []
    return paths


def _local(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Returns the path of a `file:` URL (RFC 8089); other paths stay as they are."""
    if not isinstance(path, str) or not path.lower().startswith("file:/"):
        return path
    parts = urlsplit(path)
    if parts.netloc.lower() not in ("", "localhost"):
        raise UsageError(
            f"{path} names a file of the host {parts.netloc}", hint="copy it, and name the copy"
        )
    return unquote(parts.path)


def _is_source(source: Any) -> TypeGuard[Source]:
    return hasattr(source, "solutions") and hasattr(source, "asolutions")


def _paths(source: Any) -> Iterable[str | os.PathLike[str]]:
    if not isinstance(source, Iterable):
        raise UsageError(
            f"{type(source).__name__} {source!r} is no source",
            hint="pass a path, a URL, a pyoxigraph.Store, an rdflib.Graph or a SPARQLWrapper",
        )
    paths = list(source)
    if not paths:
        raise UsageError("the list of files is empty", hint="name at least one")
    for path in paths:
        if not isinstance(path, (str, os.PathLike)):
            raise UsageError(
                f"{path!r} is no path", hint="a list names files; pass other sources by themselves"
            )
    return paths
