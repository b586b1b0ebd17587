"""Publishing to a stream, by POST and over a WebSocket. What bodies mean is in `input.py`."""
