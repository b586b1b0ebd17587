"""Reports errors on standard error: one line, and one for the hint."""

from __future__ import annotations

import sys


def report(error: Exception, *, debug: bool) -> None:
    """Reports an error; with `debug` also where in the program it occurred."""
    if debug:
        import traceback  # takes longer to import than to run

        traceback.print_exception(error)
        return
    print("\n".join(report_lines(error)), file=sys.stderr)


def report_lines(error: Exception) -> list[str]:
    """The lines that report an error."""
    message = (
        f"cannot write: {error.strerror}"
        if isinstance(error, OSError) and error.strerror
        else str(error)
    )
    text, _, hint = message.partition("\n  hint: ")
    places = getattr(error, "__notes__", ())
    # the message of an engine may have several lines
    lines = [f"error: {' '.join(': '.join((*places, text)).split())}"]
    return [*lines, f"hint: {' '.join(hint.split())}"] if hint else lines


def warn(text: str) -> None:
    """Reports in one line a failure after which the command continues."""
    print("warning:", " ".join(text.split()), file=sys.stderr)
