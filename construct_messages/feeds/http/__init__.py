"""Streams of HTTP servers: requests, discovery, connections, and logs by GET and POST."""
