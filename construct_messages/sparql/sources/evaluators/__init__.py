"""Evaluation by the embedded engine in child processes: the processes, their pool, and the pipes between them."""
