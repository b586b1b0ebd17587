"""Delivery: sends batches of messages from a source to a target, each under a key until it is acknowledged."""
