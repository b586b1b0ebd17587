"""Registered queries: each runs over the streams of a store, and what it gives out is one of them. No HTTP."""
