"""What windows hold, as a store that changes as elements enter and leave. No times, and no bounds of windows."""
