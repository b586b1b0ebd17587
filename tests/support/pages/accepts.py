"""The Accept headers of browsers, programs and libraries, as they send them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

BROWSERS: Final[Mapping[str, str]] = {
    "Chromium": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
    "application/signed-exchange;v=b3;q=0.7",
    "Firefox": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "Firefox 132": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Lynx": "text/html, text/plain, text/sgml, text/css, application/xhtml+xml, */*;q=0.01",
    "HTML only": "text/html",
}
"""Those that would rather have a page."""

PROGRAMS: Final[Mapping[str, str | None]] = {
    "none": None,
    "curl": "*/*",
    "rdflib": "application/rdf+xml,text/rdf+n3;q=0.9,application/xhtml+xml;q=0.5, */*;q=0.1",
    "rdflib, Turtle": "text/turtle, application/x-turtle, */*;q=0.1",
    "SPARQLWrapper": "application/rdf+xml,application/turtle,text/turtle,text/n3,application/ld+json",
    "ldes-client, Comunica": "application/n-quads,application/trig;q=0.95,application/ld+json;q=0.9,"
    "application/n-triples;q=0.8,text/turtle;q=0.6,application/rdf+xml;q=0.5,application/json;q=0.45,text/n3;q=0.35,"
    "application/xml;q=0.3,image/svg+xml;q=0.3,text/xml;q=0.3,text/html;q=0.2,application/xhtml+xml;q=0.18",
    "Jena": "text/turtle,application/n-triples;q=0.9,application/ld+json;q=0.8,application/rdf+xml;q=0.7,*/*;q=0.3",
    "fetch of a script": "application/json",
    "as gladly": "text/html, application/ld+json, application/n-quads",
    "anything as gladly": "text/html, */*",
    "refused": "text/html;q=0, */*",
    "a log": "text/html;q=0.9, application/trig; messages=rdfm",
    "malformed": "text/html;q=2, */*",
}
"""Those that get what they always got."""
