"""JSON documents and rows, as applications want them: this package beside the scripts that are written today.

`python -m benchmarks values`. `table.py` runs the programs and prints the tables, `truth.py` compares what they wrote,
`tasks/` has the queries, frames and schemas. The other modules are the programs, each a process of its own. Nothing is
imported here, for the programs in Python would wait for it.
"""
