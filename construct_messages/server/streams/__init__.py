"""Live streams over HTTP: Linked Data Notifications for RDF streams, SSE, WebSocket, LDES. No SQLite, no windows."""
