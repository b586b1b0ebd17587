"""The contents of windows, as a store that changes as elements enter and leave. No times or bounds of windows here."""
