"""One RDF Message per SPARQL CONSTRUCT solution."""
