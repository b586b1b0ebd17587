"""Child processes: starts them, sends orders, receives reports, and ends them. All use one protocol.

A child is a module of this package. It is started with one end of a Unix socket for orders and reports, which are
frames of MessagePack (`frames.py`); an order may include descriptors (SCM_RIGHTS). Its standard output is closed, so
that output of libraries does not interfere. Both ends run the same version of the package. POSIX only.
"""
