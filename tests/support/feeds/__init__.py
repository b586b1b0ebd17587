"""Helpers for tests of clients of streams."""
