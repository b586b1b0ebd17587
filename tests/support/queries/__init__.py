"""Queries and the algebra: oracles, cases, the W3C's tests."""
