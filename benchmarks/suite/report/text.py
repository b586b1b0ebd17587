"""Numbers, names and tables as Markdown."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Sequence

# what Markdown takes as markup within a line, and what at the start of one
_MARKUP = re.compile(r"[\\`*_{}\[\]|~#]|^[-+=:]|^\d+[.)](?= |$)")
MISSING = "–"


def escape(text: str) -> str:
    """Return text so that Markdown shows it as it is, in one line: white space becomes single spaces."""
    line = " ".join(text.split())
    return _MARKUP.sub(
        lambda found: "".join(f"&#{ord(each)};" for each in found[0]),
        html.escape(line, quote=False),
    )


def number(value: float) -> str:
    """Return a number with three significant digits, and with all digits before the decimal point.

    >>> [number(value) for value in (0.01234, 1.2, 123.4, 123456, 0)]
    ['0.0123', '1.20', '123', '123,456', '0']
    """
    if value == 0 or abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".")


def seconds(value: float | None) -> str:
    """Return seconds without the unit."""
    return MISSING if value is None else number(value)


def mebibytes(value: float | None) -> str:
    """Return bytes as MiB without the unit."""
    return MISSING if value is None else number(value / 2**20)


def times(value: float | None) -> str:
    """Return a ratio.

    >>> [times(value) for value in (0.5, 1, 12.34, 1234)]
    ['0.50 ×', '1.00 ×', '12.3 ×', '1,234 ×']
    """
    if value is None:
        return MISSING
    if abs(value) < 9.995:
        return f"{value:.2f} ×"
    return f"{number(value)} ×"


def share(part: int, whole: int) -> str:
    """Return a part in percent; 0 % and 100 % are exact.

    >>> [share(part, 10_000) for part in (0, 1, 5_000, 9_999, 10_000)]
    ['0 %', '0.1 %', '50.0 %', '99.9 %', '100 %']
    """
    if whole == 0:
        return MISSING
    if part in (0, whole):
        return "100 %" if part else "0 %"
    return (
        f"{min(max(100 * part / whole, 0.1), 99.9) if part < whole else 100 * part / whole:.1f} %"
    )


def size(triples: int) -> str:
    """Return a number of triples, shortened; 0 is that of a live endpoint, which nobody has counted.

    >>> [size(triples) for triples in (1_000, 100_000, 1_000_000, 437_797, 0)]
    ['1k', '100k', '1M', '437,797', 'unknown']
    """
    if not triples:
        return "unknown"
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if triples % unit == 0:
            return f"{triples // unit}{letter}"
    return f"{triples:,}"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Return the lines of a table; columns but the first `left` ones are aligned right."""
    rule = ["---" if index < left else "--:" for index in range(len(columns))]
    return [f"| {' | '.join(cells)} |" for cells in (columns, rule, *rows)]


def wrapped(text: str) -> str:
    """Return a paragraph or a list with lines of at most 120 characters.

    >>> print(wrapped("- " + "word " * 24 + "and more").replace("word ", ""))
    - word
      and more
    """
    lines = text.splitlines()
    # at the start of a line, a plus would begin a list
    kept = [line.replace(" + ", "\0+\0") for line in lines]
    filled = [
        textwrap.fill(
            line,
            120,
            subsequent_indent="  " if line.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in kept
    ]
    return "\n".join(filled).replace("\0", " ")


def listed(names: Sequence[str]) -> str:
    """Join names.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
