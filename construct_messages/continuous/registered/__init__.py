"""Registered queries: each reads streams of a store, and its output is another stream. No HTTP."""
