"""A SPARQL server in front of a source, whose CONSTRUCT answers can be message logs. Decides nothing about messages."""
