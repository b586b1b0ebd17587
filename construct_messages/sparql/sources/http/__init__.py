"""SPARQL endpoints as sources: requests, responses, pages, retries. SPARQL 1.1 Protocol, section 2."""
