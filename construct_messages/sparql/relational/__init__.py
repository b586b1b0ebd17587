"""The relational plan of a query, as SQL, and the exact evaluator of the expressions that SQL does not know."""
