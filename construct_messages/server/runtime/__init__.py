"""Runs the server: reads its settings, creates its endpoints, and starts its processes."""
