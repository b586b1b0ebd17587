"""Tests of Linked Data Event Streams."""
