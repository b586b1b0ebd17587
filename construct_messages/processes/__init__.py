"""Child processes: how they are started, told what to do, heard and ended. One protocol for all of them.

A child is a module of this package. It is started with one end of a Unix socket, over which orders and reports go as
frames of MessagePack (`frames.py`); descriptors may come with an order (SCM_RIGHTS). Its standard output is closed, so
nothing that a library prints gets between. Both ends run the same version of the package. POSIX only.
"""
