"""Frames of WebSockets."""
