"""Engines that tests start, the cases they answer, and where they differ."""
