"""The child's side of its parent process: receives orders, and sends reports."""

from __future__ import annotations

import os
import select as polling
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from construct_messages.sparql.children.frames import RECEIVED, Frames, frame

T = TypeVar("T")

_DESCRIPTORS = 2  # the most in an order


class Parent(Generic[T]):
    """The other end of the socket whose descriptor is this process's first argument; `orders` is the type of its
    orders.
    """

    def __init__(self, orders: Any) -> None:
        self._socket = socket.socket(fileno=int(sys.argv[1]))
        self._orders = Frames[T](orders)

    def fileno(self) -> int:
        """The descriptor of the socket, which is readable after an order or the parent's end."""
        return self._socket.fileno()

    def end_with(self) -> None:
        """Ignores signals, and ends this process at once when its parent closes the socket, or ends."""
        for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)

        def wait() -> None:
            poll = polling.poll()
            poll.register(self._socket, 0)  # hang-ups are always reported
            poll.poll()
            os._exit(0)

        threading.Thread(target=wait, daemon=True).start()

    def orders(self) -> Iterator[tuple[T, list[int]]]:
        """Yields each order with the descriptors that came with it, until the parent closes the socket."""
        descriptors = list[int]()
        while True:
            while (order := self._orders.take()) is None:
                data, came, _, _ = socket.recv_fds(self._socket, RECEIVED, _DESCRIPTORS)
                if not data:
                    return
                self._orders.feed(data)
                descriptors += came
            yield order, descriptors
            descriptors = []

    def report(self, value: object) -> None:
        """Sends a report; if the parent has ended, ends this process."""
        try:
            self._socket.sendall(frame(value))
        except ConnectionError:
            os._exit(1)
