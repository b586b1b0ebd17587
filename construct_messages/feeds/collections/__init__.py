"""Shared by event streams and inboxes: pages of members in RDF, and the known members. No I/O."""
