"""Process messages with asyncio, while others are still being evaluated."""

import asyncio

from construct_messages import construct_messages

QUERY = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } ORDER BY ?s ?p ?o"


async def main():
    """Count the messages by their predicate."""
    counts = {}
    async for message in construct_messages(QUERY, "queries/data/companies.ttl"):
        for quad in message:
            name = quad.predicate.rstrip(">").rpartition("/")[2].rpartition("#")[2]
            counts[name] = counts.get(name, 0) + 1
    for name, count in sorted(counts.items()):
        print(count, name)


asyncio.run(main())
