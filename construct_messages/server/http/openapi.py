"""The description of a server's routes as a document of OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.1).

Made from the table of routes, each of which describes its own operations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from construct_messages._version import __version__
from construct_messages.rdf.formats.media_types import FORM, MULTIPART_FORM, PROBLEM
from construct_messages.rdf.options import Option
from construct_messages.server.http.endpoint import Method, RequestParameter, Route

PATH: Final = "/openapi.json"
WHOLE: Final[Mapping[str, object]] = MappingProxyType({"type": "integer", "minimum": 0})
"""The schema of a whole number."""
MANY: Final[Mapping[str, object]] = MappingProxyType({"type": "array", "items": {"type": "string"}})
"""The schema of a parameter that may occur several times."""
SWITCH: Final[Mapping[str, object]] = MappingProxyType({"type": "boolean"})
"""The schema of true and false."""

_FORMS: Final = (FORM, MULTIPART_FORM)
_IN_PATH: Final = re.compile(r"\{(\w+)\}")
# RFC 9457, with the members of `sending.problem`
_PROBLEM: Final = {
    "type": "object",
    "required": ["title", "status"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what is wrong, with its value"},
        "hint": {"type": "string", "description": "the fix"},
        "line": {"type": "integer", "description": "in the query, counted from 1"},
        "column": {"type": "integer"},
        "offered": {**MANY, "description": "the media types that there are"},
        "report": {"description": "why a message does not conform to shapes"},
        "request_id": {"type": "string", "description": "that of the line in the server's log"},
    },
}


def parameter_of(option: Option, name: str) -> RequestParameter:
    """Returns the parameter of a request that sets an option.

    >>> from construct_messages.rdf.options import MessageOptions, options_of
    >>> parameter_of(options_of(MessageOptions)["max_messages"], "max-messages").schema
    {'type': 'integer', 'minimum': 0}
    """
    schema: Mapping[str, object] = {"type": "string"}
    if bool in option.types:
        schema = SWITCH
    elif int in option.types:
        schema = {"type": "integer", "minimum": int(option.bound.least or 0)}
    return RequestParameter(name, option.meaning, schema)


def describe(routes: Iterable[Route], url: str | None) -> dict[str, Any]:
    """Returns the description of routes; `url` is that of the server, None: clients know it."""
    return {
        "openapi": "3.1.1",
        "info": {"title": "construct-messages", "version": __version__},
        "servers": [{"url": url or "/"}],
        "paths": {route.path: _path_item(route) for route in routes},
        "components": {
            "schemas": {"Problem": _PROBLEM},
            "responses": {
                "Problem": {
                    "description": "An error",
                    "content": _content([PROBLEM], {"$ref": "#/components/schemas/Problem"}),
                }
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # where a right has a policy; without one, no token is needed
        "security": [{}, {"token": []}],
    }


def _path_item(route: Route) -> dict[str, Any]:
    item: dict[str, Any] = {}
    if names := _IN_PATH.findall(route.path):
        item["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in names
        ]
    for method in route.methods:
        made = route.described.get("GET" if method == "HEAD" else method)
        if made is not None:
            item[method.lower()] = _operation(made, has_content=method != "HEAD")
    return item


def _operation(made: Method, *, has_content: bool) -> dict[str, Any]:
    answers: dict[str, Any] = {"default": {"$ref": "#/components/responses/Problem"}}
    for status, media_types in made.answers.items():
        answers[str(status)] = {"description": made.summary if status < 300 else "No content"}
        if media_types and has_content:
            answers[str(status)]["content"] = _content(media_types)
    operation: dict[str, Any] = {"summary": made.summary, "responses": answers}
    if made.parameters:
        operation["parameters"] = [
            {
                "name": each.name,
                "in": each.place,
                "description": each.meaning,
                "schema": dict(each.schema),
            }
            for each in made.parameters
        ]
    if made.bodies:
        operation["requestBody"] = {"content": _bodies(made)}
    return operation


def _bodies(made: Method) -> dict[str, Any]:
    properties = {
        each.name: {**each.schema, "description": each.meaning}
        for each in made.parameters
        if each.place == "query"
    }
    form = {"type": "object", "properties": properties}
    plain = [media_type for media_type in made.bodies if media_type not in _FORMS]
    forms = [media_type for media_type in made.bodies if media_type in _FORMS]
    return _content(plain) | _content(forms, form)


def _content(media_types: Sequence[str], schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    described = {} if schema is None else {"schema": dict(schema)}
    return dict.fromkeys(media_types, described)
