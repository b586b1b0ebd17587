"""RDF terms, messages, templates, and the table of formats: everything that needs no other room."""
