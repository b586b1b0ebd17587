"""What is known of damage to the file of a store, and the check for it that runs when a store is opened.

SQLite notices a damaged page when it reads it. `check.py` looks at elements, too. Nothing is repaired here.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Final

from construct_messages.errors import StoreDamaged

_FOUND: Final = 3  # as many findings as an error names


def damaged(path: Path | str | None, found: str) -> StoreDamaged:
    """The error for a store whose file is damaged.

    Args:
        path: of the store; None: it is not known here.
        found: what is wrong with it.
    """
    return StoreDamaged(
        f"{path or 'the store'} is damaged: {found}",
        hint=f"stop the server, and run construct-messages streams check {path or 'FILE'};"
        " see docs/reference/streams/store.md",
    )


class Damage:
    """The first damage that was found in a store; None: none so far.

    Attributes:
        error: its description.
    """

    def __init__(self) -> None:
        self.error: StoreDamaged | None = None

    def report(self, error: StoreDamaged) -> None:
        """Takes note of damage."""
        self.error = self.error or error


class OpeningCheck:
    """Reads all pages of a store once, in a thread: SQLite's `quick_check`.

    Args:
        path: of the store.
        damage: takes what is found.
    """

    def __init__(self, path: Path, damage: Damage) -> None:
        self._path, self._damage = path, damage
        self._connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=5
        )
        self._thread = Thread(target=self._run, name="streams-check", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Waits for the end of the check, for so long at most; it goes on afterwards.

        Raises:
            StoreDamaged: damage was found.
        """
        self._thread.join(seconds)
        if self._damage.error is not None:
            raise self._damage.error

    def close(self) -> None:
        """Ends the check."""
        with suppress(sqlite3.Error):  # it is over already
            self._connection.interrupt()
        self._thread.join()

    def _run(self) -> None:
        try:
            found = [
                said
                for (said,) in self._connection.execute(f"PRAGMA quick_check({_FOUND})")
                if said != "ok"
            ]
        except sqlite3.DatabaseError as error:
            # other errors are not about the pages: the check was interrupted, or the disk cannot be read
            found = [str(error)] if is_damage(error) else []
        finally:
            self._connection.close()
        if found:
            self._damage.report(
                damaged(self._path, "; ".join(" ".join(each.split()) for each in found))
            )


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite's error is that of a damaged page; extended codes have the plain one in their lowest byte."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT
