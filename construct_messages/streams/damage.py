"""Damage to the file of a store: its record, and the check that runs when a store is opened.

SQLite detects a damaged page when it reads it. `check.py` also checks elements. Nothing is repaired here.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Final

from construct_messages.rdf.errors import StoreDamaged

_FOUND: Final = 3  # the number of findings in an error


def damaged(path: Path | str | None, found: str) -> StoreDamaged:
    """The error for a store whose file is damaged.

    Args:
        path: the path of the store; None if it is unknown here.
        found: the description of the damage.
    """
    return StoreDamaged(
        f"{path or 'the store'} is damaged: {found}",
        hint=f"stop the server, and run construct-messages streams check {path or 'FILE'};"
        " see docs/reference/streams/store.md",
    )


class Damage:
    """Records the first damage that is found in a store.

    Attributes:
        error: the description of the damage; None if there is none.
    """

    def __init__(self) -> None:
        self.error: StoreDamaged | None = None

    def report(self, error: StoreDamaged) -> None:
        """Records damage."""
        self.error = self.error or error


class OpeningCheck:
    """Reads all pages of a store once, in a thread, by SQLite's `quick_check`.

    Args:
        path: the path of the store.
        damage: records the damage.
    """

    def __init__(self, path: Path, damage: Damage) -> None:
        self._path, self._damage = path, damage
        self._connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=5
        )
        self._thread = Thread(target=self._run, name="streams-check", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Waits for the end of the check up to a limit; the check continues afterwards.

        Raises:
            StoreDamaged: damage was found.
        """
        self._thread.join(seconds)
        if self._damage.error is not None:
            raise self._damage.error

    def close(self) -> None:
        """Ends the check."""
        with suppress(sqlite3.Error):  # it has ended already
            self._connection.interrupt()
        self._thread.join()

    def _run(self) -> None:
        try:
            found = [
                text
                for (text,) in self._connection.execute(f"PRAGMA quick_check({_FOUND})")
                if text != "ok"
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
    """Whether SQLite's error is about a damaged page; extended codes have the primary one in their lowest byte."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT
