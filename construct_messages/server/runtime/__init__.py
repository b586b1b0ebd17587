"""Runs the server: reads its settings, makes its endpoints, and starts its processes."""
