"""What runs the server: its settings as they are read, its processes and their memory."""
