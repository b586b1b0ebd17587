"""What event streams and inboxes have in common: pages of members in RDF, and which members are known. No I/O."""
