"""REGEX and REPLACE: XPath's regular expressions, by the library `regex`.

XPath and XQuery Functions and Operators 3.1, section 5.6, over the grammar of XML Schema 1.1 Part 2, appendix G. A
pattern is parsed in full and written again in the syntax of the library (version 1), so that nothing of its own passes
through. `IllegalPattern` is raised for patterns that SPARQL treats as an error of the expression, and
`UnsupportedQuery` for patterns that only other engines have (`\\b`, `(?=…)`, `[\\w-.]`) or that are too large, so that
no solutions are lost silently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NoReturn

import regex

from construct_messages.errors import UnsupportedQuery
from construct_messages.rdf.terms import PN_BASE, PN_CHARS

# --- characters -----------------------------------------------------------------------------------
# XML Schema 1.1 Part 2, appendix G; XPath and XQuery Functions and Operators 3.1, section 5.6.2 (flag `i`).

SINGLE: Final = {"n": "\n", "r": "\r", "t": "\t"} | {char: char for char in "\\|.?*+(){}$-[]^"}
_SPACES: Final = r"\t\n\r "
_NAME_START: Final = f":_{PN_BASE}"
_NAME: Final = f":.{PN_CHARS}"
# as members of a character class; a complement is a class inside it
MULTIPLE: Final = {
    "s": _SPACES,
    "S": f"[^{_SPACES}]",
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "w": r"[^\p{P}\p{Z}\p{C}]",
    "W": r"\p{P}\p{Z}\p{C}",
    "i": _NAME_START,
    "I": f"[^{_NAME_START}]",
    "c": _NAME,
    "C": f"[^{_NAME}]",
}
CATEGORY: Final = re.compile(r"L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|Z[slp]?|S[mcko]?|C[cfon]?")


def escaped(char: str) -> str:
    """A character in the library's syntax, in a character class or outside."""
    return f"\\{char}" if char.isascii() and not char.isalnum() else char


def one_of(chars: str) -> str:
    return escaped(chars) if len(chars) == 1 else f"[{''.join(map(escaped, chars))}]"


@lru_cache(maxsize=1)
def cased_characters() -> dict[str, str]:
    """Each character that has case variants, with all of them: F&O 5.6.2, flag `i`.

    Two characters are variants if their lower-case or their upper-case forms are equal; no plane but the first two has
    letters with case.
    """
    forms: dict[str, list[str]] = {}
    for char in map(chr, (*range(0xD800), *range(0xE000, 0x20000))):
        if char.lower() != char or char.upper() != char:
            # a letter without an own form in a case is its own form there, so each letter is listed under both
            for form in {"l" + char.lower(), "u" + char.upper()}:
                forms.setdefault(form, []).append(char)
    variants: dict[str, set[str]] = {}
    for chars in forms.values():
        for char in chars:
            variants.setdefault(char, set()).update(chars)
    return {char: "".join(sorted(others)) for char, others in variants.items() if len(others) > 1}


def case_variants(char: str) -> str:
    return cased_characters().get(char, char)


# --- translation ----------------------------------------------------------------------------------


class IllegalPattern(ValueError):
    """An invalid pattern, flag or replacement by XPath (err:FORX0001, FORX0002, FORX0004)."""


@dataclass(frozen=True, slots=True)
class XPathPattern:
    """A translated pattern, which needs no flags."""

    text: str
    groups: int = 0  # how many it captures
    quoted: bool = False  # flag `q`, which also applies to the replacement

    def compiled(self) -> Any:
        return regex.compile(self.text, regex.V1)


_WHITESPACE: Final = "\t\n\r "
_CASELESS: Final = "sd"  # the escapes for several characters of which none has case variants
_DEEPEST_NESTING: Final = 100
_GREATEST_COUNT: Final = 2**31 - 1
_MOST_ATOMS: Final = 100_000
"""The most atoms of a pattern, those of least counts as often: the library copies them, 260 bytes each."""


def translate_pattern(pattern: str, flags: str = "") -> XPathPattern:
    r"""Translates a pattern (F&O 5.6.1) with its flags (5.6.2).

    >>> translate_pattern("^a$").text, translate_pattern("A.b", "i").text, translate_pattern(r"[a-z-[aeiou]]").text
    ('^a\\Z', '[Aa][^\\n\\r][Bb]', '[[a-z]--[aeiou]]')
    """
    if unknown := set(flags) - set("smixq"):
        raise IllegalPattern(f"{sorted(unknown)[0]!r} is not a flag: these are s, m, i, x and q")
    if "q" in flags:
        chars = (case_variants(char) if "i" in flags else char for char in pattern)
        return XPathPattern("".join(map(one_of, chars)), quoted=True)
    parser = _Parser(_without_whitespace(pattern) if "x" in flags else pattern, frozenset(flags))
    return parser.translated()


def translate_replacement(text: str, pattern: XPathPattern) -> Callable[[Any], str]:
    """Returns the function from a match to its replacement (F&O 5.6.4)."""
    if pattern.quoted:
        return lambda _: text
    pieces: list[str | int] = []  # numbers of groups, and what is between them
    for piece in re.finditer(r"\\([\\$])|\$([0-9]+)|([^\\$]+)|.", text, re.DOTALL):
        special, number, others = piece.groups()
        if number:
            digits = len(number)
            while digits > 1 and int(number[:digits]) > pattern.groups:
                digits -= 1
            # a group that does not exist is empty
            if int(number[:digits]) <= pattern.groups:
                pieces.append(int(number[:digits]))
            pieces.append(number[digits:])
        elif special or others:
            pieces.append(special or others)
        else:
            raise IllegalPattern(f"{piece.group()!r} is not $N, nor escaped as \\$ or \\\\")
    if not any(isinstance(piece, int) for piece in pieces):
        plain = "".join(map(str, pieces))
        return lambda _: plain
    return lambda match: "".join(
        piece if isinstance(piece, str) else match[piece] or "" for piece in pieces
    )


def _without_whitespace(pattern: str) -> str:
    """Flag `x`: white space is removed but in character classes, also between a backslash and its character."""
    kept, depth = [], 0
    chars = iter(pattern)
    for char in chars:
        if char in _WHITESPACE and not depth:
            continue
        kept.append(char)
        if char == "\\":
            kept.append(next((char for char in chars if depth or char not in _WHITESPACE), ""))
        elif char == "[":
            depth += 1
        elif char == "]" and depth:
            depth -= 1
    return "".join(kept)


# --- the grammar ----------------------------------------------------------------------------------------------------


class _Parser:
    def __init__(self, pattern: str, flags: frozenset[str]) -> None:
        self._pattern, self._at = pattern, 0
        self._groups, self._closed, self._atoms = 0, set[int](), 0
        self._any_case = "i" in flags
        # groups that may capture a character with case variants
        self._cased_atoms, self._cased = 0, set[int]()
        self._dot = "(?s:.)" if "s" in flags else r"[^\n\r]"
        # a newline at the very end begins no line: F&O 5.6.2, flag m
        self._start = r"(?:^|(?<=\n)(?!\Z))" if "m" in flags else "^"
        self._end = r"(?:(?=\n)|(?<!\n)\Z)" if "m" in flags else r"\Z"

    def translated(self) -> XPathPattern:
        text = self._alternatives(0)
        if self._at < len(self._pattern):
            raise IllegalPattern("a ) without its (")
        return XPathPattern(text, self._groups)

    # --- reading

    def _ahead(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _skip(self, text: str) -> bool:
        if ahead := self._ahead(text):
            self._at += len(text)
        return ahead

    def _take(self) -> str:
        if self._at == len(self._pattern):
            raise IllegalPattern("the pattern ends too early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _refuse(self, fragment: str, message: str, hint: str | None = None) -> NoReturn:
        pattern = repr(self._pattern if len(self._pattern) <= 200 else f"{self._pattern[:200]}…")
        raise UnsupportedQuery(
            f"the regular expression {pattern} holds {fragment}, {message}",
            fragment=fragment,
            hint=hint,
        )

    def _foreign(self, fragment: str, hint: str | None = None) -> NoReturn:
        self._refuse(fragment, "which XPath does not have, though other engines may", hint)

    def _variants(self, char: str) -> str:
        if not self._any_case:
            return char
        variants = case_variants(char)
        self._cased_atoms += len(variants) > 1
        return variants

    # --- expressions

    def _alternatives(self, nesting: int) -> str:
        if nesting > _DEEPEST_NESTING:
            self._refuse("(", f"more than {_DEEPEST_NESTING} in each other")
        branches = [self._branch(nesting)]
        while self._skip("|"):
            branches.append(self._branch(nesting))
        return "|".join(branches)

    def _branch(self, nesting: int) -> str:
        pieces = []
        while self._at < len(self._pattern) and not self._ahead("|") and not self._ahead(")"):
            pieces.append(self._quantified(nesting))
        return "".join(pieces)

    def _quantified(self, nesting: int) -> str:
        before = self._atoms
        atom = self._atom(nesting)
        counts = _COUNTS.match(self._pattern, self._at)
        if counts is None:
            if self._ahead("{"):
                raise IllegalPattern("a { that begins no quantity")
            return atom
        self._at = counts.end()
        if _COUNTS.match(self._pattern, self._at) or self._ahead("+"):
            self._foreign(
                counts.group() + self._pattern[self._at], "put the repeated part between ( and )"
            )
        least = int(counts[1] or 0)
        most = int(counts[2] or least)
        if most < least:
            raise IllegalPattern(f"the quantity {counts.group()}")
        self._atoms = before + (self._atoms - before) * max(least, 1)
        if most > _GREATEST_COUNT or (least > 1 and self._atoms > _MOST_ATOMS):
            self._refuse(counts.group(), "which is too many")
        return atom + counts.group()

    def _atom(self, nesting: int) -> str:
        self._atoms += 1
        match char := self._take():
            case "(":
                return self._group(nesting)
            case "[":
                return self._char_class(0)
            case ".":
                self._cased_atoms += 1
                return self._dot
            case "^":
                return self._start
            case "$":
                return self._end
            case "\\":
                return self._escape()
            case "?" | "*" | "+" | "{":
                raise IllegalPattern(f"a {char} with nothing before it")
            case "]" | "}":
                self._foreign(char, f"write \\{char}")
        return one_of(self._variants(char))

    def _group(self, nesting: int) -> str:
        capturing = not self._skip("?:")
        if self._ahead("?"):
            self._foreign(f"({self._pattern[self._at : self._at + 2]}")
        number = self._groups = self._groups + capturing
        cased_before = self._cased_atoms
        inner = self._alternatives(nesting + 1)
        if not self._skip(")"):
            raise IllegalPattern("a ( without its )")
        if not capturing:
            return f"(?:{inner})"
        self._closed.add(number)
        if self._cased_atoms > cased_before:
            self._cased.add(number)
        return f"({inner})"

    def _escape(self) -> str:
        char = self._take()
        if char in "123456789":
            return self._back_reference(char)
        members = self._escaped(char)
        return one_of(self._variants(members)) if len(members) == 1 else f"[{members}]"

    def _back_reference(self, number: str) -> str:
        if int(number) not in self._closed:
            raise IllegalPattern(f"\\{number} before the end of such a group")
        while (more := _DIGIT.match(self._pattern, self._at)) and int(
            number + more.group()
        ) in self._closed:
            number, self._at = number + more.group(), more.end()
        if self._any_case and int(number) in self._cased:
            self._refuse(f"\\{number}", "whose case flag i lets vary")
        # of a group that has matched nothing it is the empty string
        return rf"(?({number})\g<{number}>|)"

    def _escaped(self, char: str) -> str:
        r"""Returns the meaning of `\` and a character: one character, or members of a character class."""
        if char in SINGLE:
            return SINGLE[char]
        if char in MULTIPLE:
            self._cased_atoms += char not in _CASELESS
            return MULTIPLE[char]
        if char not in "pP":
            self._foreign(f"\\{char}", None if char.isalnum() else f"write {char} without the \\")
        name = _PROPERTY.match(self._pattern, self._at)
        if name is None:
            self._foreign(
                f"\\{char}{self._pattern[self._at : self._at + 1]}", rf"write \{char}{{…}}"
            )
        self._at = name.end()
        self._cased_atoms += char == "P" or name[1][:1] not in ("P", "Z")
        if CATEGORY.fullmatch(name[1]):
            return f"\\{char}{name.group()}"
        block = f"\\{char}{{In{name[1][2:]}}}"
        if not name[1].startswith("Is") or not _is_known(block):
            self._refuse(f"\\{char}{name.group()}", "which is not a category or block of Unicode")
        return block

    # --- character classes

    def _char_class(self, nesting: int) -> str:
        if nesting > _DEEPEST_NESTING:
            self._refuse("[", f"more than {_DEEPEST_NESTING} in each other")
        negative = "^" if self._skip("^") else ""
        self._cased_atoms += bool(negative)
        members: list[str] = []
        while not _GROUP_END.match(self._pattern, self._at):
            members.append(self._member(first=not members))
        if not members:
            self._foreign(
                f"[{negative}{self._pattern[self._at]}", "write \\] or \\- for the character"
            )
        text = f"[{negative}{''.join(members)}]"
        if self._skip("-["):
            text = f"[{text}--{self._char_class(nesting + 1)}]"
        if not self._skip("]"):
            raise IllegalPattern("a subtraction that does not end its character class")
        return text

    def _member(self, *, first: bool) -> str:
        hyphen = self._ahead("-")
        low = self._end_of_range()
        if hyphen and not first and not _GROUP_END.match(self._pattern, self._at):
            self._foreign("a - in the middle of a character class", "write \\-")
        if len(low) > 1:
            return low
        if not _RANGE.match(self._pattern, self._at):
            return "".join(map(escaped, self._variants(low)))
        self._at += 1
        high = self._end_of_range()
        if len(high) > 1 or low > high:
            raise IllegalPattern(f"the range {low}-{high}")
        cased = (
            [char for char in cased_characters() if low <= char <= high] if self._any_case else []
        )
        self._cased_atoms += bool(cased)
        variants = {variant for char in cased for variant in case_variants(char)}
        outside = sorted(char for char in variants if not low <= char <= high)
        return f"{escaped(low)}-{escaped(high)}" + "".join(map(escaped, outside))

    def _end_of_range(self) -> str:
        """Returns one character, or members of a character class."""
        match char := self._take():
            case "\\":
                return self._escaped(self._take())
            case "[":
                self._foreign("[ in a character class", "write \\[")
        return char


_COUNTS: Final = re.compile(r"(?:[?*+]|\{([0-9]+)(?:,([0-9]*))?\})\??")
_DIGIT: Final = re.compile("[0-9]")
_PROPERTY: Final = re.compile(r"\{([A-Za-z0-9-]*)\}")
_GROUP_END: Final = re.compile(r"\]|-\[")
_RANGE: Final = re.compile(r"-(?!\[|\]|-\[)")


def _is_known(text: str) -> bool:
    try:
        regex.compile(text, regex.V1)
    except regex.error:
        return False
    return True
