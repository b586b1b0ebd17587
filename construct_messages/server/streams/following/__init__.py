"""Following a stream: server-sent events and WebSockets over HTTP. What is pushed is made ready in `push.py`."""
