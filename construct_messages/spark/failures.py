"""Failures of Spark as errors of this package, with one line of text and a hint.

The exception of a failed job contains the stacks of Java and of Python workers. The useful parts are the first line and
the last cause. `session.translated` raises errors of this package that Spark has wrapped; this module handles the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from construct_messages.rdf.errors import (
    CannotWrite,
    ConstructMessagesError,
    IncompleteResult,
    SourceError,
    shown,
)

_DEBUG: Final = "--debug shows where"
_MEMORY: Final = "it may have run out of memory: give it more by --conf spark.driver.memory=4g"

# py4j's messages if there is no answer, and if the process ends during a call
_NO_ANSWER: Final = re.compile(
    r"Error while (?:sending or )?receiving|Answer from Java side is empty|An error occurred while calling \S+\Z"
    r"|An error occurred while trying to connect to the Java server"
)
# gRPC's states if no server answers, or if another server without this session answers
_NO_SERVER: Final = re.compile(
    r"StatusCode\.UNAVAILABLE|failed to connect to all addresses|Socket closed"
)
_NO_SESSION: Final = re.compile(r"INVALID_HANDLE\.(?:SESSION|OPERATION)_\w+")

# the files of Spark's committer, and of a run of this package (`logs.runs`)
_RUNS: Final = r"/(?:_temporary|\.\d{8}T\d{12}Z-[0-9a-f]{4})\b"
_REMOVED: Final = (
    # Hadoop sets permissions after it has made a folder, also for the folder above its own files
    re.compile(
        rf"chmod: cannot access '(?:file:)?(?P<folder>[^\n]+?)(?:{_RUNS}[^\n]*)?': No such file"
    ),
    re.compile(rf"Mkdirs failed to create (?:file:)?(?P<folder>[^\n]+?){_RUNS}"),
    re.compile(
        rf"(?:file:)?(?P<folder>[^\s'\"]+?){_RUNS}[^\n]*?(?:does not exist|No such file or directory)"
    ),
)
# of the disk that is written to: Spark's own files for shuffles have a hint below
_FULL: Final = re.compile(
    rf"Task failed while writing rows to (?:file:)?(?P<folder>[^\n]+?)(?:{_RUNS}[^\n]*)?\. SQLSTATE"
    r".*(?P<reason>No space left on device|Disk quota exceeded|File too large)",
    re.DOTALL,
)
_HINTS: Final = (
    (
        re.compile(r"OutOfMemoryError|Java heap space|GC overhead"),
        "give it more memory: --conf spark.driver.memory=4g",
    ),
    (
        re.compile(r"No space left on device"),
        "free some space, or name another disk: --conf spark.local.dir=DIR",
    ),
    (
        re.compile(r"ExecutorLostFailure|executor \S+ exited|Executor heartbeat timed out"),
        "an executor has ended; it may have run out of memory: give it more by --conf spark.executor.memory=4g",
    ),
    (
        re.compile(r"Python worker exited unexpectedly|Python worker failed to connect"),
        "see the log of the executor",
    ),
)
_LOGGED_BEFORE: Final = re.compile(r"An error occurred while calling \S+\.?\s*:?\s*")
_CLASS: Final = re.compile(r"(?:[a-z][\w$]*\.)+(?=[A-Z])")
_STACK: Final = re.compile(
    r"\s*(?:at [\w.$/<>]+\(|\.\.\. \d+ more|File \"|Driver stacktrace:|JVM stacktrace:|Suppressed:)"
)
_CAUSED_BY: Final = "Caused by: "


def error_of(failure: Exception) -> ConstructMessagesError:
    """Returns the error of this package for a failure of Spark.

    Args:
        failure: the exception that Spark's client raised.

    >>> print(error_of(ConnectionRefusedError(111, "Connection refused")))
    Spark's Java process has ended
      hint: it may have run out of memory: give it more by --conf spark.driver.memory=4g
    """
    text = str(failure).strip()
    if isinstance(failure, ConnectionError) or _NO_ANSWER.match(text):
        return SourceError("Spark's Java process has ended", hint=_MEMORY)
    if _NO_SERVER.search(text):
        return SourceError(
            "the Spark Connect server has ended, or cannot be reached any more",
            hint="see its log; it may have run out of memory: start it with --conf spark.driver.memory=4g",
        )
    if _NO_SESSION.search(text):
        return SourceError(
            "the Spark Connect server has ended the session",
            hint="see its log; it may have restarted",
        )
    if removed := files_removed(text):
        return removed
    hint = next((hint for pattern, hint in _HINTS if pattern.search(text)), _DEBUG)
    return SourceError(f"Spark failed: {in_short(text)}", hint=hint)


def files_removed(text: str) -> IncompleteResult | None:
    """Returns the error for a job whose files were removed while it ran, if the text of a failure means that.

    >>> print(files_removed("chmod: cannot access '/logs/_temporary/0': No such file or directory"))
    /logs: the output that was being written there has been removed
      hint: another job may write to the same folder: run one after the other, or use a separate folder for each
    """
    found = next(filter(None, (pattern.search(text) for pattern in _REMOVED)), None)
    if found is None:
        return None
    return IncompleteResult(
        f"{found['folder']}: the output that was being written there has been removed",
        hint="another job may write to the same folder: run one after the other, or use a separate folder for each",
    )


def disk_full(text: str) -> CannotWrite | None:
    """Returns the error for a job whose output has no room, if the text of a failure means that."""
    if (found := _FULL.search(text)) is None:
        return None
    return CannotWrite(
        f"cannot write to {found['folder']}: {found['reason']}",
        hint="free some space there, or choose another place",
    )


def in_short(text: str) -> str:
    r"""Returns the first line of a failure and its last cause, without stacks.

    >>> text = (
    ...     "An error occurred while calling o12.text.\n: org.apache.spark.SparkException: Job aborted.\n"
    ...     "\tat a.B.c(B.java:1)\nCaused by: java.io.IOException: disk\n\tat a.B.c(B.java:1)\n"
    ...     "Caused by: java.lang.Error: broken\n\t... 3 more"
    ... )
    >>> in_short(text)
    'SparkException: Job aborted. (Error: broken)'
    """
    text = _LOGGED_BEFORE.sub("", text, count=1)
    first = " ".join(_until_stack(text))
    causes = [
        line.removeprefix(_CAUSED_BY) for line in text.splitlines() if line.startswith(_CAUSED_BY)
    ]
    last = causes[-1] if causes else _last_of_traceback(text)
    message = _CLASS.sub("", first)
    cause = _CLASS.sub("", last)
    return shown(message if not cause or cause in message else f"{message} ({cause})")


def _until_stack(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if _STACK.match(line) or line.startswith((_CAUSED_BY, "Traceback ")):
            return
        if line.strip():
            yield line.strip()


def _last_of_traceback(text: str) -> str:
    """Returns the exception with which the traceback of a Python worker ends; empty if there is none."""
    _, found, traceback = text.partition("Traceback (most recent call last):\n")
    lines = traceback.splitlines() if found else []
    return next((line for line in lines if line and not line[0].isspace()), "")
