"""Logs of one format as data, a module a format."""
