"""Plans as DataFrames: each node of the algebra as an operation on solutions, and solutions as messages."""
