"""Linked Data Event Streams, page by page."""
