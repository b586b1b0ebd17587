"""Queries to messages: a query and its source, grouping of solutions, and shapes."""
