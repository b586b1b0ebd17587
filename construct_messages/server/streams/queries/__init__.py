"""Registering queries over HTTP, and what is said of those that run."""
