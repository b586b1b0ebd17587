"""Print one message per company: run a query over a file and look at the quads of each message."""

from construct_messages import construct_messages

QUERY = """
    PREFIX dbo: <http://dbpedia.org/ontology/>
    PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
    CONSTRUCT { ?company rdfs:label ?name ; dbo:location ?country }
    WHERE { ?company a dbo:Company ; rdfs:label ?name ; dbo:location ?country FILTER (LANG(?name) != "ja") }
    ORDER BY ?company
"""

for number, message in enumerate(construct_messages(QUERY, "queries/data/companies.ttl"), 1):
    print(f"message {number}")
    for quad in message:
        print("   ", quad.object)
