"""A seeded generator of papers, journals, authors and citations of any size, and queries of the shape of SP2Bench's.

Of the shape that SP2Bench (Schmidt and others, 2009) took from DBLP; data and queries are written anew, and each query
has the number of that whose shape it has. Authors write as Zipf's law has it: a few much, many little. Papers cite by
bags, more often what is cited already. One person, the hub, writes with many others. The same seed gives the same dump.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_HOST = "http://example.org/papers/"
_RDF, _RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
_DC, _DCTERMS = "http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"
_FOAF, _XSD = "http://xmlns.com/foaf/0.1/", "http://www.w3.org/2001/XMLSchema#"
_HUB: Final = "Ada Hub"
_FIRST, _LAST = 1950, 2020
_A_PAPER = 12.8  # triples, with its share of persons, journals and citations

PREFIXES = f"""PREFIX : <{_HOST}>
PREFIX dc: <{_DC}>
PREFIX dcterms: <{_DCTERMS}>
PREFIX foaf: <{_FOAF}>
PREFIX rdf: <{_RDF}>
PREFIX rdfs: <{_RDFS}>
PREFIX xsd: <{_XSD}>
"""
_NAMESAKES = """?article a :Article ; dc:creator ?author . ?author foaf:name ?name .
  ?talk a :Talk ; dc:creator ?speaker . ?speaker foaf:name ?name2 FILTER (?name = ?name2)"""
_NEAR_THE_HUB = f"""?hub a foaf:Person ; foaf:name "{_HUB}" .
  {{ ?paper dc:creator ?hub , ?author . ?other dc:creator ?author , ?colleague . ?colleague foaf:name ?name
    FILTER (?author != ?hub && ?other != ?paper && ?colleague != ?hub && ?colleague != ?author) }}
  UNION
  {{ ?paper dc:creator ?hub , ?author . ?author foaf:name ?name FILTER (?author != ?hub) }}"""
_WHERE = {
    # one paper of many, by a literal
    "q1": """CONSTRUCT { ?journal dcterms:issued ?year } WHERE {
  ?journal a :Journal ; dc:title "Journal 1 (1960)" ; dcterms:issued ?year
}""",
    # a star of nine patterns with an optional part, in order
    "q2": """CONSTRUCT { ?talk a :Talk ; dc:creator ?author ; :booktitle ?book ; dc:title ?title ; :abstract ?abstract }
WHERE {
  ?talk a :Talk ; dc:creator ?author ; :booktitle ?book ; dc:title ?title ; dcterms:partOf ?proceedings ;
    rdfs:seeAlso ?also ; :pages ?pages ; foaf:homepage ?home ; dcterms:issued ?year
  OPTIONAL { ?talk :abstract ?abstract }
} ORDER BY ?year""",
    # a property that nearly all articles have, that few have, and that none has
    "q3a": "CONSTRUCT { ?article :is ?value } WHERE { ?article a :Article ; ?property ?value "
    "FILTER (?property = :pages) }",
    "q3b": "CONSTRUCT { ?article :is ?value } WHERE { ?article a :Article ; ?property ?value "
    "FILTER (?property = :month) }",
    "q3c": "CONSTRUCT { ?article :is ?value } WHERE { ?article a :Article ; ?property ?value "
    "FILTER (?property = :isbn) }",
    # all pairs of authors of a journal; of those of one year, as all years give twenty times the data
    "q4": """CONSTRUCT { [ :one ?name1 ; :other ?name2 ] } WHERE { SELECT DISTINCT ?name1 ?name2 WHERE {
  ?journal a :Journal ; dcterms:issued 2000 .
  ?one a :Article ; dc:creator ?author1 ; :journal ?journal . ?author1 foaf:name ?name1 .
  ?other a :Article ; dc:creator ?author2 ; :journal ?journal . ?author2 foaf:name ?name2 FILTER (?name1 < ?name2)
} }""",
    # those who wrote an article and gave a talk: linked by the equality of names alone, and by the person
    "q5a": f"""CONSTRUCT {{ ?author foaf:name ?name }} WHERE {{ SELECT DISTINCT ?author ?name WHERE {{
  {_NAMESAKES}
}} }}""",
    "q5b": """CONSTRUCT { ?author foaf:name ?name } WHERE { SELECT DISTINCT ?author ?name WHERE {
  ?article a :Article ; dc:creator ?author . ?talk a :Talk ; dc:creator ?author . ?author foaf:name ?name
} }""",
    # negation by OPTIONAL and BOUND, which an equality alone links to what it is asked of
    "q6": """CONSTRUCT { ?paper :debutOf ?name ; dcterms:issued ?year } WHERE {
  ?kind rdfs:subClassOf foaf:Document .
  ?paper a ?kind ; dcterms:issued ?year ; dc:creator ?author . ?author foaf:name ?name
  OPTIONAL {
    ?kind2 rdfs:subClassOf foaf:Document .
    ?earlier a ?kind2 ; dcterms:issued ?before ; dc:creator ?same FILTER (?author = ?same && ?before < ?year)
  } FILTER (!BOUND(?same))
}""",
    # the same twice, in each other: what only papers cite that are cited themselves
    "q7": """CONSTRUCT { ?paper dc:title ?title } WHERE { SELECT DISTINCT ?paper ?title WHERE {
  ?kind rdfs:subClassOf foaf:Document . ?paper a ?kind ; dc:title ?title .
  ?bag2 ?member2 ?paper . ?citing2 dcterms:references ?bag2
  OPTIONAL {
    ?kind3 rdfs:subClassOf foaf:Document . ?citing3 a ?kind3 ; dcterms:references ?bag3 . ?bag3 ?member3 ?paper
    OPTIONAL {
      ?kind4 rdfs:subClassOf foaf:Document . ?citing4 a ?kind4 ; dcterms:references ?bag4 . ?bag4 ?member4 ?citing3
    } FILTER (!BOUND(?citing4))
  } FILTER (!BOUND(?citing3))
} }""",
    # two ways from one person, whom only what stands beside the UNION knows
    "q8": f"""CONSTRUCT {{ :colleagues :include ?name }} WHERE {{ SELECT DISTINCT ?name WHERE {{
  {_NEAR_THE_HUB}
}} }}""",
    # which properties lead to persons, and which away from them
    "q9": """CONSTRUCT { ?property a rdf:Property } WHERE { SELECT DISTINCT ?property WHERE {
  ?person a foaf:Person
  { ?subject ?property ?person } UNION { ?person ?property ?object }
} }""",
    # all that points to one thing, whatever the predicate
    "q10": "CONSTRUCT { ?subject ?property :hub } WHERE { ?subject ?property :hub }",
    # a piece of an order
    "q11": "CONSTRUCT { :link rdfs:seeAlso ?also } WHERE { ?paper rdfs:seeAlso ?also } ORDER BY ?also "
    "LIMIT 10 OFFSET 50",
    # questions for whether there is any: of the shapes of q5a and q8, and for a triple that is not there
    "q12a": f"CONSTRUCT {{ :there :are ?name }} WHERE {{\n  {_NAMESAKES}\n}} LIMIT 1",
    "q12b": f"CONSTRUCT {{ :there :are ?name }} WHERE {{\n  {_NEAR_THE_HUB}\n}} LIMIT 1",
    "q12c": "CONSTRUCT { :nobody a foaf:Person } WHERE { :nobody a foaf:Person }",
}
QUERIES: Final = {name: PREFIXES + text for name, text in _WHERE.items()}


def write_papers(path: Path, triples: int, seed: int = 42) -> None:
    """Writes a dump of about so many triples. One person in fifty has the name of another."""
    with path.open("w", encoding="utf-8") as dump:
        dump.writelines(
            f"{line} .\n" for line in _Papers(random.Random(seed)).lines(int(triples / _A_PAPER))
        )


class _Papers:
    """Papers year by year, and those who write them."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._persons = 0
        self._written: list[int] = []  # by whom, once for each paper of theirs
        self._cited: list[int] = []  # papers, once for themselves and once for each citation
        self._bags = 0

    def lines(self, papers: int) -> Iterator[str]:
        """The triples, without their full stops."""
        kind, document = f"<{_RDFS}subClassOf>", f"<{_FOAF}Document>"
        for name in ("Article", "Talk", "Journal", "Proceedings"):
            yield f"<{_HOST}{name}> {kind} {document}"
        yield from _described("hub", f"<{_FOAF}Person>", [(f"{_FOAF}name", f'"{_HUB}"')])
        years = _LAST - _FIRST
        of_year = [
            papers * 2 * year // (years * (years - 1)) for year in range(years)
        ]  # more each year
        first = 0
        for year, number in enumerate(of_year, _FIRST):
            volumes = max(1, number // 40)
            for volume in range(1, volumes + 1):
                for name in ("Journal", "Proceedings"):
                    about = [
                        (f"{_DC}title", f'"{name} {volume} ({year})"'),
                        (f"{_DCTERMS}issued", _integer(year)),
                    ]
                    yield from _described(f"{name}{volume}_{year}", f"<{_HOST}{name}>", about)
            for paper in range(first, first + number):
                yield from self._paper(paper, year, self._chance.randint(1, volumes))
            first += number

    def _paper(self, paper: int, year: int, volume: int) -> Iterator[str]:
        chance, name = self._chance, f"paper{paper}"
        article = chance.random() < 0.5
        page = chance.randrange(1000)
        about = [
            (f"{_DC}title", f'"On matter {paper}"'),
            (f"{_DCTERMS}issued", _integer(year)),
            (f"{_HOST}pages", f'"{page}-{page + chance.randrange(30)}"'),
            (f"{_RDFS}seeAlso", f"<http://example.com/see/{chance.getrandbits(48):x}>"),
        ]
        if article:
            about.append((f"{_HOST}journal", f"<{_HOST}Journal{volume}_{year}>"))
            if chance.random() < 0.05:
                about.append((f"{_HOST}month", _integer(chance.randint(1, 12))))
        else:
            about.append((f"{_DCTERMS}partOf", f"<{_HOST}Proceedings{volume}_{year}>"))
            about.append((f"{_HOST}booktitle", f'"Proceedings {volume} ({year})"'))
        if chance.random() < 0.8:
            about.append((f"{_FOAF}homepage", f"<http://example.com/home/{paper}>"))
        if chance.random() < 0.02:
            about.append(
                (f"{_HOST}abstract", f'"What is known of matter {paper}, and what is not."')
            )
        authors = {"hub"} if paper % 400 == 0 else set()
        for _ in range(chance.choice((1, 1, 2, 2, 3))):
            if not self._written or chance.random() < 0.4:
                yield from self._person()
                author = self._persons - 1
            else:
                author = chance.choice(self._written)
            self._written.append(author)
            authors.add(f"person{author}")
        about += ((f"{_DC}creator", f"<{_HOST}{author}>") for author in sorted(authors))
        if self._cited and chance.random() < 0.25:
            about.append((f"{_DCTERMS}references", f"<{_HOST}bag{self._bags}>"))
            yield from self._bag()
        self._cited.append(paper)
        yield from _described(name, f"<{_HOST}{'Article' if article else 'Talk'}>", about)

    def _person(self) -> Iterator[str]:
        number = self._persons
        self._persons += 1
        name = (f"{_FOAF}name", f'"Person {number - (number % 50 == 49)}"')
        yield from _described(f"person{number}", f"<{_FOAF}Person>", [name])

    def _bag(self) -> Iterator[str]:
        """The papers that one cites, as a container of them."""
        cited = sorted(
            {self._chance.choice(self._cited) for _ in range(self._chance.randint(1, 12))}
        )
        self._cited += cited
        members = [
            (f"{_RDF}_{index}", f"<{_HOST}paper{paper}>") for index, paper in enumerate(cited, 1)
        ]
        yield from _described(f"bag{self._bags}", f"<{_RDF}Bag>", members)
        self._bags += 1


def _described(name: str, kind: str, about: list[tuple[str, str]]) -> Iterator[str]:
    subject = f"<{_HOST}{name}>"
    yield f"{subject} <{_RDF}type> {kind}"
    for predicate, object in about:
        yield f"{subject} <{predicate}> {object}"


def _integer(number: int) -> str:
    return f'"{number}"^^<{_XSD}integer>'
