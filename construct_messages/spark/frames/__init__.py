"""Evaluation of plans on DataFrames, and messages from solutions."""
