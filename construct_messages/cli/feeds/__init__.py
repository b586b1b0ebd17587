"""The commands `publish`, `subscribe`, `relay` and `register`, and the options that others share with them."""

from __future__ import annotations

from construct_messages.cli.arguments import Commands


def add(commands: Commands) -> None:
    """Adds the commands."""
    # imported here: other commands need the options alone
    from construct_messages.cli.feeds import commands as clients
    from construct_messages.cli.feeds import relay

    clients.add(commands)
    relay.add(commands)
