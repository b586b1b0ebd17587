"""Following a stream: server-sent events and WebSockets over HTTP. `push.py` serializes the elements."""
