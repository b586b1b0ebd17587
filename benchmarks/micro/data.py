"""A seeded generator of DBpedia-shaped data of any size, and the queries that the benchmarks ask.

Companies lie in countries, which have labels in several languages and a population. One company in fifty has
something that CONSTRUCT must leave out: a location that is a literal; one country in ten has no population, and
one location in fifty is a blank node.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox

DBR, DBO, DBP = (
    "http://dbpedia.org/resource/",
    "http://dbpedia.org/ontology/",
    "http://dbpedia.org/property/",
)
RDF_TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
LABEL = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
LANGUAGES = {"en": "Country", "de": "Land", "fr": "Pays", "el": "Χώρα", "ja": "国", "ru": "Страна"}

PROLOGUE = f"""PREFIX rdf: <{RDF_TYPE.value.removesuffix("type")}>
PREFIX rdfs: <{LABEL.value.removesuffix("label")}>
PREFIX dbo: <{DBO}>
PREFIX dbp: <{DBP}>
"""
TEMPLATE = """CONSTRUCT {
  ?company a dbo:Company ;
       dbo:location ?location .
  ?location rdf:type dbo:Country ;
            rdfs:label ?lname ;
            dbp:populationCensus ?pop .
}"""

# The query of the RDF Messages specification, section 4.2, without its ORDER BY and LIMIT.
SPECIFICATION = f"""{PROLOGUE}{TEMPLATE} WHERE {{
    ?company dbo:location | dbo:locationCountry ?location .
    ?location rdf:type dbo:Country ;
              rdfs:label ?lname ;
              dbp:populationCensus | dbo:populationTotal ?pop .
    FILTER (LANG(?lname) = "en")
}}"""

# The same template over everything that must be left out: unbound, literal subjects, equal triples, blank nodes.
HOSTILE = f"""{PROLOGUE}{TEMPLATE.removesuffix("}")}  ?location dbo:seat _:seat .
  _:seat dbo:of ?company .
  ?company dbo:location ?other .
}} WHERE {{
    ?company dbo:location | dbo:locationCountry ?location .
    OPTIONAL {{ ?location rdfs:label ?lname FILTER (LANG(?lname) = "ja") }}
    OPTIONAL {{ ?location dbp:populationCensus ?pop }}
    OPTIONAL {{ ?company dbo:location ?other }}
}}"""


def generate(companies: int, seed: int = 42) -> Iterator[ox.Quad]:
    """The quads of a data set with so many companies.

    >>> len(list(generate(100)))
    1903
    """
    chance = random.Random(seed)
    countries = [ox.NamedNode(f"{DBR}Country_{number:03}") for number in range(200)]
    for number, country in enumerate(countries):
        yield ox.Quad(country, RDF_TYPE, ox.NamedNode(f"{DBO}Country"))
        for language, word in LANGUAGES.items():
            yield ox.Quad(country, LABEL, ox.Literal(f"{word} №{number}", language=language))
        if number % 10:
            yield ox.Quad(
                country,
                ox.NamedNode(f"{DBP}populationCensus"),
                ox.Literal(chance.randrange(10**4, 10**9)),
            )
        else:
            yield ox.Quad(
                country,
                ox.NamedNode(f"{DBO}populationTotal"),
                ox.Literal(chance.randrange(10**4, 10**9)),
            )
    for number in range(companies):
        company = ox.NamedNode(
            f"{DBR}{chance.choice(('Société', 'Company', 'Gesellschaft'))}_{number:07}"
        )
        predicate = ox.NamedNode(DBO + chance.choice(("location", "locationCountry")))
        yield ox.Quad(company, predicate, chance.choice(countries))
        if number % 50 == 0:
            yield ox.Quad(company, predicate, ox.Literal("somewhere"))
        if number % 50 == 25:
            yield ox.Quad(company, predicate, ox.BlankNode(f"place{number}"))


def store(companies: int, path: Path | None = None) -> ox.Store:
    """A store with the data set; in memory, or in the directory `path`."""
    loaded = ox.Store(path)
    loaded.bulk_extend(generate(companies))
    if path is not None:
        loaded.flush()
        loaded.optimize()
    return loaded
