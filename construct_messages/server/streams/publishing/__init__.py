"""Publishing to a stream, by POST and over a WebSocket. `messages.py` interprets bodies."""
