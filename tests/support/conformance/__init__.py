"""Reports for the editors of specifications."""
