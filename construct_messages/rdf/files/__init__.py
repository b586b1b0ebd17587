"""Files: compression, files that are complete or absent, and growing files. Nothing here depends on their contents."""
