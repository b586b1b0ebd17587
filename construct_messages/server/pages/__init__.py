"""The page for browsers: its files, and the endpoint that serves them. The page sends its queries to the server."""
