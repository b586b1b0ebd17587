"""Chooses the answer to an operation: the source's own, a log, framed JSON documents, or server-sent events.

`rdf/formats/negotiation.py` chooses between the first two. `Accept: text/event-stream` requests events. JSON documents
are requested by a frame (the parameter `frame`, or a `Link` header of the relation that JSON-LD has for frames in its
namespace), or by `Accept: application/x-ndjson`. No frame is fetched: it is in the request, or in the settings under
its IRI.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from construct_messages.logs import FormatOptions
from construct_messages.rdf.errors import LimitExceeded, LogError, NotAcceptable, UsageError, shown
from construct_messages.rdf.formats import JSON_DOCUMENTS, NDJSON_LD, RDFM, LogType, content_type
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.media_types import EVENT_STREAM, JSON, NDJSON
from construct_messages.rdf.formats.negotiation import Plain, media_ranges, negotiate, prefer

if TYPE_CHECKING:
    from construct_messages.logs.json.options import JsonOptions

FRAME_RELATION: Final = "http://www.w3.org/ns/json-ld#frame"
_MOST_CHARACTERS: Final = 1 << 16
"""The maximal size of a frame in a request: larger than hand-written ones, and still fast to parse."""
_OFFERED: Final = (NDJSON, JSON)
_FORMATS: Final = {"ndjson": NDJSON, NDJSON: NDJSON, "json": JSON, JSON: JSON}
# RFC 8288, section 3
_LINK: Final = re.compile(r'<([^<>]*)>\s*((?:;\s*[\w*]+(?:=(?:"[^"]*"|[^\s",;]*))?\s*)*)')
_PARAMETER: Final = re.compile(r';\s*([\w*]+)=(?:"([^"]*)"|([^\s",;]*))')


@dataclass(frozen=True)
class MessagesAnswer:
    """An answer of messages.

    Args:
        type: the type of the log.
        content_type: the media type of the answer, or of the data of its events.
        options: the options of the format; None: the defaults.
        events: whether each message is an event.
    """

    type: LogType
    content_type: str
    options: FormatOptions | None = None
    events: bool = False


class KnownFrames:
    """The frames and contexts of an endpoint, by their names or IRIs in requests.

    Args:
        files: their files.

    Raises:
        UsageError: a file cannot be read, is not JSON, or is not a frame.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._known: dict[str, Any] = {}
        for name, file in files.items():
            try:
                read = json.loads(Path(file).read_bytes())
            except OSError as error:
                raise UsageError(f"cannot read the frame {file}: {error.strerror}") from error
            except (ValueError, RecursionError) as error:
                raise UsageError(f"the frame {file} is not JSON: {error}") from error
            if not isinstance(read, dict):
                raise UsageError(f"the frame {file} is no JSON object")
            self._known[name] = read

    def options(self, frame: str, *, array: bool) -> JsonOptions:
        """Returns the options of documents with a frame.

        Args:
            frame: JSON, or the name of a frame of the settings; empty: none.
            array: whether the documents are one array.

        Raises:
            UsageError: an unknown name, or not a frame.
            LimitExceeded: the frame is too large.
        """
        # loaded when a client requests documents
        from construct_messages.logs.json.options import JsonOptions

        if not frame:
            return JsonOptions(array=array)
        if not frame.lstrip().startswith("{"):
            if frame not in self._known:
                known = ", ".join(sorted(self._known)) or "none here"
                raise UsageError(
                    f"the frame {shown(frame)} is not known, and none is fetched",
                    hint=f"send it as JSON, or name one of the endpoint's: {known}",
                )
            return JsonOptions(self._known[frame], contexts=self._known, array=array)
        options = JsonOptions(_read(frame), contexts=self._known, array=array)
        _check(options)
        return options


def choose_answer(
    links: Sequence[str],
    accept: str | None,
    parameters: Mapping[str, str | None],
    frames: KnownFrames,
    *,
    construct: bool,
) -> Plain | MessagesAnswer:
    """Chooses the answer for a request.

    Args:
        links: the values of the `Link` headers, which may name a frame.
        accept: the value of `Accept`.
        parameters: `format`, `messages` and `frame`.
        frames: the frames of the endpoint.
        construct: whether the query is a CONSTRUCT.

    Raises:
        NotAcceptable, UsageError: see `negotiate`; a frame with another form of query, or with media types other than
            JSON.
    """
    frame = parameters["frame"] or frame_of(links)
    if construct and not parameters["messages"] and _wants_events(accept):
        return _events(parameters["format"] or "", frame, frames)
    if not frame and not (construct and _wants_documents(accept, parameters)):
        choice = negotiate(
            accept,
            format=parameters["format"],
            messages=parameters["messages"],
            construct=construct,
        )
        if isinstance(choice, Plain):
            return choice
        return MessagesAnswer(choice, content_type(*choice))
    if not construct:
        raise NotAcceptable(
            "JSON documents are asked for, and only CONSTRUCT queries return messages",
            hint="leave the frame out, or ask for another media type",
            offered=(),
        )
    media_type = _media_type(parameters["format"] or "", accept)
    assert JSON_DOCUMENTS.own is not None
    return MessagesAnswer(
        LogType(JSON_DOCUMENTS, JSON_DOCUMENTS.own),
        media_type,
        frames.options(frame or "", array=media_type == JSON),
    )


def _wants_events(accept: str | None) -> bool:
    """Returns whether a client prefers events to all other media types in its Accept header."""
    weights = dict(reversed(list(media_ranges(accept or ""))))
    events = weights.pop(EVENT_STREAM, 0)
    named = (weight for range, weight in weights.items() if "*" not in range)
    return events > max(named, default=0) and events >= max(weights.values(), default=0)


def _events(format: str, frame: str | None, frames: KnownFrames) -> MessagesAnswer:
    """Returns the answer of events with data in the format of the URL: framed documents, or documents of a log
    format.
    """
    if frame or format.lower() in ("json", JSON):
        _media_type(format, NDJSON)
        assert JSON_DOCUMENTS.own is not None
        documents = LogType(JSON_DOCUMENTS, JSON_DOCUMENTS.own)
        return MessagesAnswer(
            documents, JSON, frames.options(frame or "", array=False), events=True
        )
    found, syntax = find_format(format or "nq")
    type = LogType(found, syntax or found.own or RDFM)
    return MessagesAnswer(type, found.document_type, events=True)


def _media_type(format: str, accept: str | None) -> str:
    if not format:
        return prefer(accept, _OFFERED)
    if format.lower() not in _FORMATS:
        raise UsageError(
            f"format={format} is no format of framed documents", hint="write format=json or ndjson"
        )
    return _FORMATS[format.lower()]


def frame_of(links: Sequence[str]) -> str | None:
    """Returns the frame in `Link` headers (RFC 8288); None: they have none.

    >>> frame_of(['<https://example.org/f>; rel="http://www.w3.org/ns/json-ld#frame"'])
    'https://example.org/f'
    """
    for link in links:
        for target, parameters in _LINK.findall(link):
            for name, quoted, token in _PARAMETER.findall(parameters):
                if name.lower() == "rel" and FRAME_RELATION in (quoted or token).split():
                    return str(target)
    return None


def _wants_documents(accept: str | None, parameters: Mapping[str, str | None]) -> bool:
    """Returns whether a client prefers NDJSON to all other media types, without a format in the URL."""
    if parameters["format"] or parameters["messages"]:
        return False
    weights = dict(reversed(list(media_ranges(accept or ""))))
    ndjson = weights.pop(NDJSON, 0)
    return ndjson > max(weights.values(), default=0)


def _read(text: str) -> Any:
    from construct_messages.logs.jsonld.json_text import JsonReader

    if len(text) > _MOST_CHARACTERS:
        raise LimitExceeded(
            f"the frame has {len(text)} characters, and {_MOST_CHARACTERS} are allowed"
        )
    try:
        return JsonReader().read(text, number=1, line=1)
    except LogError as error:
        raise UsageError(f"the frame is malformed: {error.message}", hint=error.hint) from error


def _check(options: JsonOptions) -> None:
    """Rejects a client's frame that takes long, or requires PyLD."""
    from construct_messages.logs.json.compiled import is_compiled
    from construct_messages.logs.jsonld.contexts import Weight

    weight = Weight()
    weight.add(options.frame, options.contexts)
    weight.check(1, _MOST_CHARACTERS << 4)
    if not is_compiled(options):
        raise UsageError(
            "the frame or its context has features that only frames of the settings may have, as @reverse or @nest",
            hint=f"ask for the messages in {NDJSON_LD.media_type}, and frame them",
        )
