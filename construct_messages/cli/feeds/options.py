"""Shared parts of the commands that read and write streams: the options of transports, and the target `--to`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from construct_messages.cli.arguments import (
    add_contexts,
    add_token,
    format_options,
    option,
    pairs,
    token_of,
)
from construct_messages.cli.standard import STANDARD
from construct_messages.rdf.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from construct_messages.feeds.delivery import Target

# `feeds` is imported where it is used: other commands would take longer to start


def add_start(command: argparse.ArgumentParser) -> None:
    """Adds the options for the start and the end of reading a stream."""
    where = command.add_mutually_exclusive_group()
    option(where, "--last N", "start with the N newest messages", type=int)
    option(
        where,
        "--after N",
        "start after the message with this sequence; 0: with the first",
        type=int,
    )
    option(
        where,
        "--since TIME",
        "start with messages stored at this time or later, as in 2026-11-22T12:00:00Z",
    )
    option(
        command,
        "--follow",
        "wait for more messages, by default from the next one on; without --follow, end after the newest",
    )


def start(options: argparse.Namespace) -> dict[str, Any]:
    """The positions of `add_start`, of which at most one is not None.

    Raises:
        UsageError: an invalid time.
    """
    since = None if options.since is None else _time(options.since)
    return {"last": options.last, "after": options.after, "since": since}


def _time(text: str) -> datetime:
    from datetime import datetime  # imported here because other commands do not need it

    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--since {text} is not a time", hint="write it as in 2026-11-22T12:00:00Z"
        ) from None
    if time.tzinfo is None:
        raise UsageError(
            f"--since {text} has no time zone", hint="write it as in 2026-11-22T12:00:00Z"
        )
    return time


def add_reading(group: argparse._ActionsContainer) -> None:
    """Adds the options of an input stream, except for its token and the options of its transport."""
    from construct_messages.feeds.table import TRANSPORTS

    names = [kind.name for kind in TRANSPORTS]
    option(
        group,
        "--via TRANSPORT",
        f"one of {', '.join(names)}; default: the first that the stream offers",
        choices=names,
    )
    option(
        group,
        "--allow-origin ORIGIN",
        "also read pages and notifications of this origin; default: that of URL",
        repeatable=True,
    )
    add_contexts(group, "a JSON-LD context")
    option(
        group,
        "--dead-letters PLACE",
        "append records of a broker that are not messages to this file or topic, instead of stopping",
    )


def add_transport(group: argparse._ActionsContainer) -> None:
    """Adds the options of the transport of an output stream."""
    option(group, "--create", "create the stream if it does not exist")
    add_token(group)
    add_set(group, "--set")
    option(group, "--media-type TYPE", "of the records that a broker gets; default: N-Quads")


def add_set(group: argparse._ActionsContainer, name: str) -> None:
    """Adds the option for the options of a transport."""
    option(
        group,
        f"{name} NAME=VALUE",
        "an option of the transport, as its library calls it; $NAME is the value of an environment variable",
        repeatable=True,
    )


def transport_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_transport`, and `--retries`, as `publish` and `Settings` take them."""
    return {
        "create": options.create,
        "token": token_of(options),
        "retries": options.retries,
        "media_type": options.media_type,
        "options": pairs("--set", options.set, "NAME=VALUE"),
    }


def refuse_stream_options(options: argparse.Namespace, reason: str) -> None:
    """Rejects the options of `add_transport` if the output is not a stream.

    Args:
        options: the options of the command.
        reason: a clause that names the output.

    Raises:
        UsageError: one of them is set.
    """
    for name in ("create", "token_variable", "oauth", "set", "media_type"):
        if getattr(options, name):
            raise UsageError(
                f"--{name.replace('_', '-')} is for a stream, and {reason}",
                hint="pass its URL as --to",
            )


def refuse_log_options(options: argparse.Namespace, *names: str) -> None:
    """Rejects options of a log if the output is a stream.

    Args:
        options: the options of the command.
        names: the names of the options.

    Raises:
        UsageError: one of them is set.
    """
    for name in names:
        if getattr(options, name) not in (None, STANDARD):
            raise UsageError(
                f"--{name} is for a log, and {options.to} is a stream",
                hint="leave it out; --media-type is for records of a broker",
            )


def is_stream(place: str) -> bool:
    """Whether a target is the URL of a stream, and not the name of a log."""
    return "://" in place


def target_of(options: argparse.Namespace) -> Target:
    """Returns the target `--to`: a stream, a log that grows, or standard output.

    Raises:
        UsageError: options that do not apply to this target.
    """
    from construct_messages.feeds.delivery import targets
    from construct_messages.feeds.transport import Settings

    if is_stream(options.to):
        refuse_log_options(options, "format", "syntax")
        settings = Settings(**transport_arguments(options))
    else:
        refuse_stream_options(options, f"{options.to} is a log")
        settings = Settings(media_type=options.format)
    place = sys.stdout.buffer if options.to == STANDARD else options.to
    own = format_options(options)
    return targets.target_of(place, settings, syntax=options.syntax, own=own)
