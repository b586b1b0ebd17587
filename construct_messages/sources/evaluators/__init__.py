"""Evaluation by the embedded engine: in processes of its own, the pool of these processes, the pipes between."""
