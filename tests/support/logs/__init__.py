"""Logs of every kind: valid, broken, hostile and growing ones, and their readers."""
