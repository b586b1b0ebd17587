"""Keep a live stream in a file: append messages, and read those that came after the last one that was seen."""

from construct_messages import construct_messages
from construct_messages.streams import open_store

QUERY = """
    PREFIX dbo: <http://dbpedia.org/ontology/>
    CONSTRUCT { ?company dbo:location ?country } WHERE { ?company dbo:location ?country } ORDER BY ?company
"""

with open_store("temperatures.db") as store:
    store.create("companies")
    store.append_all("companies", list(construct_messages(QUERY, "queries/data/companies.ttl")))
    seen = 1
    for element in store.read("companies", after=seen):
        print(element.sequence, *element.message)
