"""The program of a child process for tests, which does as each order says."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import sys
import time

import msgspec
import pyoxigraph as ox

from construct_messages.sparql.children import Parent, packed


class Order(msgspec.Struct, frozen=True):
    """What to do; `text` is what to do it with."""

    do: str
    text: str = ""


class Report(msgspec.Struct, frozen=True):
    """What was done."""

    text: str


def main() -> None:
    """Does what it is told, until its parent ends."""
    parent = Parent[Order](Order)
    parent.end_with()
    raw = socket.socket(fileno=os.dup(parent.fileno()))
    for order, descriptors in parent.orders():
        match order.do:
            case "echo":
                parent.report(Report(order.text))
            case "write":
                for descriptor in descriptors:
                    with open(descriptor, "w", encoding="utf-8") as file:
                        file.write(order.text)
                parent.report(Report(str(len(descriptors))))
            case "print":
                print(order.text, flush=True)
                os.write(1, order.text.encode())
                parent.report(Report("printed"))
            case "hang":
                time.sleep(3600)
            case "spin":  # in C, where neither signal handlers nor other threads run
                sum(range(10**15))
            case "crash":
                ctypes.string_at(0)
            case "sort":  # as the embedded engine does by itself: its comparison is no total order
                rows = " ".join(f'{n} "{n}"' for n in range(40))
                ox.Store().query(f"SELECT ?v {{ VALUES ?v {{ {rows} }} }} ORDER BY ?v")
            case "exit":
                os._exit(int(order.text))
            case "allocate":
                resource.setrlimit(resource.RLIMIT_DATA, (1 << 28, 1 << 28))
                parent.report(Report(str(len(b"x" * (1 << 30)))))
            case "half":
                raw.sendall(packed(Report(order.text))[:-1])
                os._exit(0)
            case "garbage":
                raw.sendall(bytes.fromhex(order.text))
                time.sleep(3600)
            case _:
                sys.exit(f"there is no order {order.do}")


if __name__ == "__main__":
    main()
