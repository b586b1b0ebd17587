"""Examples in docstrings that need more than their module: a Spark session, or a server of streams.

They name it `spark` or `server` (its URL), and tests/docs/test_api.py runs them; `--doctest-modules` leaves them out.
"""

from __future__ import annotations

import builtins
import doctest
import symtable

PROVIDED = {"spark", "server"}


def undefined(program: str) -> set[str]:
    """The names that a program uses and neither defines nor imports."""
    top = symtable.symtable(program, "block", "exec")
    tables, names = [top], set[str]()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        names |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (table is top or symbol.is_global())
        }
    known = {
        symbol.get_name()
        for symbol in top.get_symbols()
        if symbol.is_assigned() or symbol.is_imported()
    }
    return names - known - {*vars(builtins), "__name__", "__file__"}


def needed(test: doctest.DocTest) -> set[str]:
    """Which of `PROVIDED` the examples of a docstring need."""
    program = "".join(example.source for example in test.examples)
    return (undefined(program) & PROVIDED) - test.globs.keys() if program else set()
