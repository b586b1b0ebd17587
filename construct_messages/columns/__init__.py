"""Solutions and messages as columns of Arrow, for pandas, Polars, DuckDB and files: in batches, and back.

Three layouts: `solutions` has a row for each solution and a typed column for each variable, `quads` has a row for each
quad with the number of its message, and `nested` has a row for each message. `options.py` has their options,
`types.py` the types of columns, `typed.py` a column of a variable, `solutions.py` and `quads.py` the rows. No files,
formats or sources here. docs/reference/columns.md is the documentation of the schemas.

pyarrow is an extra: only `arrow.py` imports it, on first use.
"""
