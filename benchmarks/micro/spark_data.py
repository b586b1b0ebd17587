"""A seeded generator of dumps of any size for the benchmarks of Spark, written as N-Triples without holding them.

Companies as DBpedia has them, a subject's triples together: types, labels in three languages, a location, numbers and
dates as typed literals, an abstract. One subject, the register, lists every company. Places and their labels come
first. One company in ten has no founding date.
"""

from __future__ import annotations

import random
from pathlib import Path

_RESOURCE, _ONTOLOGY = "http://dbpedia.org/resource/", "http://dbpedia.org/ontology/"
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_PLACES = 1000
_A_COMPANY = 8.9  # triples

# five patterns, an OPTIONAL and a FILTER, of which one company in four is left
QUERY = f"""PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX dbo: <{_ONTOLOGY}>
CONSTRUCT {{
  ?company a dbo:Company ; rdfs:label ?name ; dbo:location ?place ; dbo:foundingDate ?founded .
  ?place rdfs:label ?where .
}} WHERE {{
  ?company a dbo:Company ; rdfs:label ?name ; dbo:location ?place ; dbo:numberOfEmployees ?employees .
  ?place rdfs:label ?where .
  OPTIONAL {{ ?company dbo:foundingDate ?founded }}
  FILTER (LANG(?name) = "en" && LANG(?where) = "en" && ?employees >= 75000)
}}"""


def write_dump(path: Path, triples: int, seed: int = 42) -> None:
    """Writes a dump of about so many triples."""
    chance = random.Random(seed)
    with path.open("w", encoding="utf-8") as dump:
        for number in range(_PLACES):
            place = f"<{_RESOURCE}Place_{number}>"
            dump.write(
                f'{place} {_TYPE} <{_ONTOLOGY}Place> .\n{place} {_LABEL} "Place {number}"@en .\n'
            )
            dump.write(f'{place} {_LABEL} "Straße Nr. {number}"@de .\n')
        for number in range(int(triples / _A_COMPANY)):
            company = f"<{_RESOURCE}Company_{number:08}>"
            at = chance.randrange(_PLACES)
            lines = [
                f"{_TYPE} <{_ONTOLOGY}Company>",
                f'{_LABEL} "Company {number}"@en',
                f'{_LABEL} "Gesellschaft \\"Größe {number}\\""@de',
                f"<{_ONTOLOGY}location> <{_RESOURCE}Place_{at}>",
                f'<{_ONTOLOGY}numberOfEmployees> "{chance.randrange(100_000)}"^^<{_XSD}integer>',
                f"<http://xmlns.com/foaf/0.1/homepage> <http://www.company{number}.example.com/>",
                f'<{_ONTOLOGY}abstract> "A company in place {at}, with the number {number}."@en',
            ]
            if number % 10:
                date = f"{chance.randrange(1900, 2000)}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
                lines.append(f'<{_ONTOLOGY}foundingDate> "{date}"^^<{_XSD}date>')
            dump.writelines(f"{company} {line} .\n" for line in lines)
            dump.write(f"<{_RESOURCE}Register> <{_ONTOLOGY}lists> {company} .\n")
