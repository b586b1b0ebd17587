"""The embedded engine in processes of its own: what runs in one, the pool that leases them, the pipes between."""
