"""The page for browsers: its files, and the endpoint that serves them. Asks no source; the page asks the server."""
