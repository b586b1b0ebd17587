"""Streams in a browser."""
