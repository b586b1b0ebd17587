"""The same solutions from a better plan, and what a plan does in words. No I/O, and no engine is known here."""
