"""Names of the columns that hold variables. No pyspark here."""

from __future__ import annotations

from construct_messages.query.algebra.nodes import Var


def column(variable: Var) -> str:
    """The name of a variable's column: unique even where case is ignored, and an SQL identifier without quotes.

    >>> column(Var("company")), column(Var("aName")), column(Var(".g0"))
    ('v_company', 'v_a_4e_ame', 'v__2e_g0')
    """
    return "v_" + "".join(
        char if char.isascii() and (char.islower() or char.isdigit()) else f"_{ord(char):x}_"
        for char in variable.name
    )
