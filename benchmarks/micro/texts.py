"""Logs as other people write them: the text of each kind of message in each format.

The layout of every text is that of a program or of files which are in use: Jena's riot, rdflib, n3's writer and
jsonld.js wrote one message each, and numbers, values and times are put in; tabs are those of Freebase's dumps. Single
quotes, lower-case `prefix` and BASE are written by hand, here as elsewhere. Jelly is made of these texts by pyjelly.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

DATA: Final = "https://data.example.org/"
NAMES: Final = {
    "obs": f"{DATA}observation/",
    "qudt": "http://qudt.org/schema/qudt/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "sensor": f"{DATA}sensor/",
    "sosa": "http://www.w3.org/ns/sosa/",
    "unit": "http://qudt.org/vocab/unit/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
SCHEMA: Final = "https://schema.org/"
ANNOUNCEMENT: Final = 'VERSION "1.2-messages"\n'
DELIMITER: Final = "MESSAGE\n"


def schema_context() -> dict[str, object]:
    """A context of the form and size of that of schema.org, 157 kB, which names 2,700 classes and properties."""
    terms: dict[str, object] = {"type": "@type", "id": "@id", "@vocab": "http://schema.org/"}
    terms |= NAMES | {"schema": "http://schema.org/"}
    for name in ("Event", "Place", "name", "description", "identifier"):
        terms[name] = {"@id": f"schema:{name}"}
    terms |= {"startDate": {"@id": "schema:startDate", "@type": "Date"}}
    terms |= {"location": {"@id": "schema:location", "@type": "@id"}}
    for number in range(2700):
        terms[f"someLongerName{number:04}"] = {"@id": f"schema:someLongerName{number:04}"}
    return {"@context": terms}


# --- Turtle and TriG: one observation, of five quads ---

_RIOT: Final = """\
obs:@N  a                     sosa:Observation;
        rdfs:label            "Température à la gare"@fr;
        sosa:hasSimpleResult  @V;
        sosa:madeBySensor     sensor:s17;
        sosa:resultTime       "@T"^^xsd:dateTime .
"""
_N3: Final = """\
obs:@N a sosa:Observation;
    sosa:madeBySensor sensor:s17;
    sosa:resultTime "@T"^^xsd:dateTime;
    sosa:hasSimpleResult @V;
    rdfs:label "Température à la gare"@fr.
"""
_RDFLIB: Final = """\
obs:@N a sosa:Observation ;
    rdfs:label "Température à la gare"@fr ;
    sosa:hasSimpleResult @V ;
    sosa:madeBySensor sensor:s17 ;
    sosa:resultTime "@T"^^xsd:dateTime .

"""
_BLANK_RIOT: Final = """\
obs:@N  a           sosa:Observation;
        sosa:hasResult   [ qudt:numericValue  "@V"^^xsd:double;
                           qudt:unit          unit:DEG_C
                         ];
        sosa:resultTime  "@T"^^xsd:dateTime .
"""
_BLANK_RDFLIB: Final = """\
obs:@N a sosa:Observation ;
    sosa:hasResult [ qudt:numericValue "@V"^^xsd:double ;
            qudt:unit unit:DEG_C ] ;
    sosa:resultTime "@T"^^xsd:dateTime .

"""
_LONG: Final = (
    "The station stands at the northern end of the platform, 430 m above the sea.\n"
    'It measures "air" temperature each minute, in the shade of the roof;\n\n'
    "the sensor was replaced after the flood, and calibrated in the same week.\n"
)

TURTLE: Final[dict[str, Sequence[str]]] = {
    "plain": (_RIOT, _N3, _RDFLIB),
    "blank": (_BLANK_RIOT, _BLANK_RDFLIB),
    "half": (_RIOT, _BLANK_RIOT),
    "list": ("obs:@N sosa:hasSimpleResult ( @V 48 ) .\n\n",),
    "single": (_RDFLIB.replace('"', "'"),),
    "long": (_RDFLIB.replace('"Température à la gare"', f'"""{_LONG}"""'),),
    "prefix": (_RDFLIB,),
    "base": (_RDFLIB.replace("obs:@N", "<observation/@N>").replace("sensor:s17", "<sensor/s17>"),),
    "triple": (
        _RIOT.replace('"Température à la gare"@fr', "<<( sensor:s17 sosa:observes obs:heat )>>"),
    ),
    "names": (
        _RDFLIB.replace("obs:@N", r"obs:2026\/@N\(a\)").replace("sensor:s17", r"sensor:s\,17"),
    ),
    "hosts": (
        _RDFLIB.replace("obs:@N", "<http://anna@data.example.org/observation/@N>").replace(
            "sensor:s17", "<http://[2001:db8::17]/sensor>"
        ),
    ),
    "language": (_RIOT.replace('"Température à la gare"@fr', '"Temperature"@en-US'),),
    "escapes": (_RIOT.replace("Température à", r"Temp\u00E9rature \u00E0"),),
    "graphs": (f"obs:@N {{\n{textwrap.indent(_RDFLIB.rstrip(), '    ')}\n}}\n\n",),
    "document": (_RIOT, _N3, _RDFLIB),
}
"""One observation each; a message has one or six, and takes the layouts in turn."""

# --- N-Quads ---

_OBS: Final = f"<{NAMES['obs']}@N>"
_TYPE: Final = f"{_OBS} <{NAMES['rdf']}type> <{NAMES['sosa']}Observation> ."
_TIME: Final = f'{_OBS} <{NAMES["sosa"]}resultTime> "@T"^^<{NAMES["xsd"]}dateTime> .'
_LINES: Final = f"""\
{_TYPE}
{_OBS} <{NAMES["sosa"]}madeBySensor> <{NAMES["sensor"]}s17> .
{_TIME}
{_OBS} <{NAMES["sosa"]}hasSimpleResult> "@V"^^<{NAMES["xsd"]}decimal> .
{_OBS} <{NAMES["rdfs"]}label> "Température à la gare"@fr .
"""
_NODE: Final = "_:nf45c43f341f540a3a09fa11b@N"
_BLANK_LINES: Final = f"""\
{_NODE} <{NAMES["qudt"]}unit> <{NAMES["unit"]}DEG_C> .
{_NODE} <{NAMES["qudt"]}numericValue> "@V"^^<{NAMES["xsd"]}double> .
{_OBS} <{NAMES["sosa"]}hasResult> {_NODE} .
{_TIME}
{_TYPE}
"""
_LABEL: Final = '"Température à la gare"@fr'

N_QUADS: Final[dict[str, Sequence[str]]] = {
    "plain": (_LINES,),
    "blank": (_BLANK_LINES,),
    "triple": (
        _LINES.replace(
            _LABEL,
            "<<( <https://data.example.org/sensor/s17> <http://www.w3.org/ns/sosa/observes> "
            "<https://data.example.org/observation/heat> )>>",
        ),
    ),
    "hosts": (
        _LINES.replace("https://data", "http://anna@data").replace(
            "anna@data.example.org/sensor/s17", "[2001:db8::17]/sensor"
        ),
    ),
    "language": (_LINES.replace(_LABEL, '"Temperature"@en-US'),),
    "escapes": (_LINES.replace("Température à", r"Temp\u00E9rature \u00E0"),),
    "tabs": (_LINES.replace("> ", ">\t").replace("fr .", "fr\t."),),
    "dots": (_LINES.replace(" .", "."),),
    "string": (_LINES.replace("@fr", "^^<http://www.w3.org/2001/XMLSchema#string>"),),
    "quads": (_LINES.replace(" .", " <https://data.example.org/observation/@N> ."),),
    "document": (_LINES,),
}

# --- JSON-LD ---

_COMPACT: Final[dict[str, object]] = {
    "@id": "obs:@N",
    "rdfs:label": {"@language": "fr", "@value": "Température à la gare"},
    "sosa:hasSimpleResult": {"@value": "@V", "@type": "xsd:decimal"},
    "sosa:resultTime": {"@value": "@T", "@type": "xsd:dateTime"},
    "sosa:madeBySensor": {"@id": "sensor:s17"},
    "@type": "sosa:Observation",
}
_TERMS: Final = {
    "sosa": NAMES["sosa"],
    "xsd": NAMES["xsd"],
    "id": "@id",
    "type": "@type",
    "Observation": "sosa:Observation",
    "Sensor": "sosa:Sensor",
    "label": {"@id": f"{NAMES['rdfs']}label", "@language": "fr"},
    "hasSimpleResult": {"@id": "sosa:hasSimpleResult", "@type": "xsd:decimal"},
    "resultTime": {"@id": "sosa:resultTime", "@type": "xsd:dateTime"},
    "phenomenonTime": {"@id": "sosa:phenomenonTime", "@type": "xsd:dateTime"},
    "madeBySensor": {"@id": "sosa:madeBySensor", "@type": "@id"},
    "observedProperty": {"@id": "sosa:observedProperty", "@type": "@id"},
    "hasFeatureOfInterest": {"@id": "sosa:hasFeatureOfInterest", "@type": "@id"},
}
_BY_TERMS: Final = {
    "id": f"{NAMES['obs']}@N",
    "type": "Observation",
    "label": "Température à la gare",
    "hasSimpleResult": "@V",
    "resultTime": "@T",
    "madeBySensor": f"{DATA}sensor/s17",
}
_EVENT: Final = {
    "id": f"{NAMES['obs']}@N",
    "type": "Event",
    "name": "Concert à la gare",
    "description": "@V",
    "startDate": "@T",
    "location": f"{DATA}place/s17",
}

JSON_LD: Final[dict[str, tuple[object, Mapping[str, object]]]] = {
    "plain": (NAMES, _COMPACT),
    "blank": (
        NAMES,
        {
            "@id": "obs:@N",
            "@type": "sosa:Observation",
            "sosa:hasResult": {
                # of an xsd:double, PyLD and jsonld.js rewrite the digits
                "qudt:numericValue": {"@value": "@V", "@type": "xsd:decimal"},
                "qudt:unit": {"@id": "unit:DEG_C"},
            },
            "sosa:resultTime": {"@value": "@T", "@type": "xsd:dateTime"},
        },
    ),
    "list": (
        NAMES,
        {
            "@id": "obs:@N",
            "sosa:hasSimpleResult": {
                "@list": [
                    {"@value": "@V", "@type": "xsd:decimal"},
                    {"@value": "48", "@type": "xsd:integer"},
                ]
            },
        },
    ),
    "base": (
        NAMES | {"@base": DATA},
        _COMPACT | {"@id": "observation/@N", "sosa:madeBySensor": {"@id": "sensor/s17"}},
    ),
    "language": (
        NAMES,
        _COMPACT | {"rdfs:label": {"@language": "en-US", "@value": "Temperature"}},
    ),
    "graphs": (NAMES, {"@id": "obs:@N", "@graph": [_COMPACT]}),
    "named": (SCHEMA, _EVENT),
    "terms": (_TERMS, _BY_TERMS),
}
"""The context and one observation."""

# --- RDF/XML: as riot writes it, on one line ---

_XML: Final = (
    '<sosa:Observation rdf:about="https://data.example.org/observation/@N">'
    '<rdfs:label xml:lang="fr">Température à la gare</rdfs:label>'
    '<sosa:hasSimpleResult rdf:datatype="http://www.w3.org/2001/XMLSchema#decimal">@V</sosa:hasSimpleResult>'
    '<sosa:resultTime rdf:datatype="http://www.w3.org/2001/XMLSchema#dateTime">@T</sosa:resultTime>'
    '<sosa:madeBySensor rdf:resource="https://data.example.org/sensor/s17"/></sosa:Observation>'
)

RDF_XML: Final[dict[str, str]] = {
    "plain": _XML,
    "blank": (
        '<sosa:Observation rdf:about="https://data.example.org/observation/@N"><sosa:hasResult '
        'rdf:parseType="Resource"><qudt:unit rdf:resource="http://qudt.org/vocab/unit/DEG_C"/><qudt:numericValue '
        'rdf:datatype="http://www.w3.org/2001/XMLSchema#double">@V</qudt:numericValue></sosa:hasResult>'
        '<sosa:resultTime rdf:datatype="http://www.w3.org/2001/XMLSchema#dateTime">@T</sosa:resultTime>'
        "</sosa:Observation>"
    ),
    "list": (
        '<rdf:Description rdf:about="https://data.example.org/observation/@N"><sosa:hasSimpleResult '
        'rdf:parseType="Resource"><rdf:rest rdf:parseType="Resource">'
        '<rdf:rest rdf:resource="http://www.w3.org/1999/02/22-rdf-syntax-ns#nil"/>'
        '<rdf:first rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">48</rdf:first></rdf:rest>'
        '<rdf:first rdf:datatype="http://www.w3.org/2001/XMLSchema#decimal">@V</rdf:first>'
        "</sosa:hasSimpleResult></rdf:Description>"
    ),
    "base": _XML.replace(DATA, ""),
    "language": _XML.replace('"fr"', '"en-US"'),
}

# --- logs ---


def messages(shape: str, extension: str, size: int, count: int) -> Iterator[str]:
    """Messages of a shape without what is around them. `size`: observations in each, of five quads."""
    for number in range(count):
        yield _message(shape, extension, range(number * size, (number + 1) * size))


def _message(shape: str, extension: str, numbers: range) -> str:
    if extension == "ndjsonld":
        context, node = JSON_LD[shape]
        text = json.dumps(node, ensure_ascii=False)
        nodes = [json.loads(_fill(text, number)) for number in numbers]
        body = nodes[0] if len(nodes) == 1 else {"@graph": nodes}
        return json.dumps({"@context": context, **body}, ensure_ascii=False)
    if extension == "rdfxml":
        names = " ".join(f'xmlns:{name}="{iri}"' for name, iri in NAMES.items())
        base = f' xml:base="{DATA}"' if shape == "base" else ""
        written = "".join(_fill(RDF_XML[shape], number) for number in numbers)
        return f"<rdf:RDF {names}{base}>{written}</rdf:RDF>"
    texts = (N_QUADS if extension == "nq" else TURTLE)[shape]
    layout = texts[numbers[0] // len(numbers) % len(texts)]
    return "".join(_fill(layout, number) for number in numbers)


def _fill(text: str, number: int) -> str:
    time = f"2026-11-{1 + number // 1440 % 28:02}T{number // 60 % 24:02}:{number % 60:02}:00Z"
    value = f"{number * 7 % 600 / 10 - 20}"
    return text.replace("@N", str(1_000_000 + number)).replace("@V", value).replace("@T", time)


def log(shape: str, extension: str, size: int, count: int) -> bytes:
    """A log of such messages."""
    made = messages(shape, extension, size, count)
    if extension in ("ndjsonld", "rdfxml"):
        return "".join(f"{message}\n" for message in made).encode()
    lower = "".join(f"prefix {name}: <{iri}>\n" for name, iri in NAMES.items())
    if extension == "nq":
        head = before = ""
    elif shape == "prefix":
        head, before = "", lower
    else:
        head = lower.replace("prefix", "PREFIX")
        head += f"BASE <{DATA}>\n" if shape == "base" else ""
        before = ""
    if shape == "document":
        return (head + "".join(made)).encode()
    delimited = "".join(f"{before}{message}{DELIMITER}" for message in made)
    return f"{ANNOUNCEMENT}{head}{delimited}".encode()


def document(log: bytes) -> bytes:
    """A log as one document, without what delimits its messages."""
    mark = DELIMITER.encode()
    return log.removeprefix(ANNOUNCEMENT.encode()).replace(b"\n" + mark, b"\n")
