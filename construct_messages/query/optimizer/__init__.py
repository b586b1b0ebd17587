"""Query optimization: plans with the same solutions that are cheaper to evaluate. No I/O, and no engine."""
