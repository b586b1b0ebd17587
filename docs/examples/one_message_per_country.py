"""Group solutions: one message per country, with all of its companies, as an rdflib graph."""

from pathlib import Path

from rdflib.namespace import RDFS

from construct_messages import construct_messages

query = Path("queries/companies-by-country.rq").read_text(encoding="utf-8")
for message in construct_messages(query, "queries/data/companies.ttl", group_by=["country"]):
    graph = message.to_rdflib()
    print(sorted(str(name) for name in graph.objects(predicate=RDFS.label)))
