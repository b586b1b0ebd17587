"""The commands `publish`, `subscribe`, `relay` and `register`, and options that they share with other commands."""

from __future__ import annotations

from construct_messages.cli.arguments import Commands


def add(commands: Commands) -> None:
    """Adds the commands."""
    # imported here because other commands only need the options
    from construct_messages.cli.feeds import commands as clients
    from construct_messages.cli.feeds import relay

    clients.add(commands)
    relay.add(commands)
