"""Linked Data Event Streams, from page to page."""
