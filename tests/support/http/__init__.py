"""Servers with faults, clients of several makes, and the server started in this process."""
