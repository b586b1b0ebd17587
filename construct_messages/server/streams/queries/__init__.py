"""Registering queries over HTTP, and the descriptions of running ones."""
