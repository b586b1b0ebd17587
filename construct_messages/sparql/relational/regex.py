"""Translation of the regular expressions of REGEX and REPLACE from XPath's syntax to that of `java.util.regex`.

XPath and XQuery Functions and Operators 3.1, section 5.6, over the grammar of XML Schema 1.1 Part 2, appendix G. A
pattern is parsed in full and written again, so Java's own syntax cannot pass through. The result is a Java pattern that
matches the same texts. `IllegalPattern` is raised for patterns that SPARQL treats as an error of the expression, and
`UnsupportedQuery` for patterns that Java cannot match faithfully or that only other engines have (`\\b`, `(?=…)`,
`[\\w-.]`), so that no solutions are lost silently. No SQL here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, NoReturn

from construct_messages.errors import UnsupportedQuery
from construct_messages.rdf.terms import PN_BASE, PN_CHARS

# --- characters -----------------------------------------------------------------------------------
# Characters of regular expressions in Java's syntax: literal ones, escapes for several, and case variants.
#
# XML Schema 1.1 Part 2, appendix G; XPath and XQuery Functions and Operators 3.1, section 5.6.2 (flag `i`). No
# grammar here.

_PLAIN: Final = re.compile(r"[A-Za-z0-9 \u00a1-\U0010ffff]")
SINGLE: Final = {"n": "\n", "r": "\r", "t": "\t"} | {char: char for char in "\\|.?*+(){}$-[]^"}
_SPACES: Final = r"\x{9}\x{a}\x{d} "
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
# The blocks that XML Schema 1.0 names; Java knows them by the same names.
BLOCKS: Final = frozenset(
    """
    BasicLatin Latin-1Supplement LatinExtended-A LatinExtended-B IPAExtensions SpacingModifierLetters
    CombiningDiacriticalMarks Greek Cyrillic Armenian Hebrew Arabic Syriac Thaana Devanagari Bengali Gurmukhi Gujarati
    Oriya Tamil Telugu Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Georgian HangulJamo Ethiopic Cherokee
    UnifiedCanadianAboriginalSyllabics Ogham Runic Khmer Mongolian LatinExtendedAdditional GreekExtended
    GeneralPunctuation SuperscriptsandSubscripts CurrencySymbols CombiningMarksforSymbols LetterlikeSymbols NumberForms
    Arrows MathematicalOperators MiscellaneousTechnical ControlPictures OpticalCharacterRecognition
    EnclosedAlphanumerics BoxDrawing BlockElements GeometricShapes MiscellaneousSymbols Dingbats BraillePatterns
    CJKRadicalsSupplement KangxiRadicals IdeographicDescriptionCharacters CJKSymbolsandPunctuation Hiragana Katakana
    Bopomofo HangulCompatibilityJamo Kanbun BopomofoExtended EnclosedCJKLettersandMonths CJKCompatibility
    CJKUnifiedIdeographsExtensionA CJKUnifiedIdeographs YiSyllables YiRadicals HangulSyllables
    CJKCompatibilityIdeographs AlphabeticPresentationForms ArabicPresentationForms-A CombiningHalfMarks
    CJKCompatibilityForms SmallFormVariants ArabicPresentationForms-B HalfwidthandFullwidthForms Specials OldItalic
    Gothic Deseret ByzantineMusicalSymbols MusicalSymbols MathematicalAlphanumericSymbols
    CJKUnifiedIdeographsExtensionB CJKCompatibilityIdeographsSupplement Tags
    """.split()  # noqa: SIM905  words read better than a list of strings
)


def java_char(char: str) -> str:
    """A character in Java's syntax, in a character class or outside."""
    if _PLAIN.fullmatch(char):
        return char
    return f"\\{char}" if char.isascii() and char.isprintable() else f"\\x{{{ord(char):x}}}"


def java_class(chars: str) -> str:
    return java_char(chars) if len(chars) == 1 else f"[{''.join(map(java_char, chars))}]"


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
class Regex:
    """A translated pattern, which needs no flags."""

    java: str
    groups: int  # how many it captures
    quoted: bool  # flag `q`, which also applies to the replacement
    # The length of text up to which Java's stack certainly suffices; None: any. Java recurses where a group is
    # repeated, and a stack that overflows ends the whole process.
    limit: int | None


_WHITESPACE: Final = "\t\n\r "
_CASELESS: Final = "sd"  # the escapes for several characters of which none has case variants
# Frames of the matcher that are not compiled take up to 160 bytes, and threads of tasks have 1 MB.
_STACK: Final = 6000
_DEEPEST_PATTERN: Final = _STACK // 2
_DEEPEST_NESTING: Final = 100
_GREATEST_COUNT: Final = 2**31 - 1


@lru_cache(maxsize=256)
def translate_pattern(pattern: str, flags: str = "") -> Regex:
    r"""Translates a pattern (F&O 5.6.1) with its flags (5.6.2).

    >>> translate_pattern("^a$").java, translate_pattern("A.b", "i").java, translate_pattern(r"[a-z-[aeiou]]").java
    ('^a\\z', '[Aa][^\\x{a}\\x{d}][Bb]', '[[a-z]&&[^[aeiou]]]')
    """
    if unknown := set(flags) - set("smixq"):
        raise IllegalPattern(
            f"{sorted(unknown)[0]!r} is not a flag of a regular expression; flags are s, m, i, x and q"
        )
    if "q" in flags:
        java = "".join(
            java_class(case_variants(char) if "i" in flags else char) for char in pattern
        )
        return Regex(java, 0, True, None)
    return _Parser(
        _without_whitespace(pattern) if "x" in flags else pattern, frozenset(flags)
    ).regex()


def translate_replacement(text: str, regex: Regex) -> str:
    r"""Translates the replacement string of REPLACE (F&O 5.6.4) into Java's.

    >>> translate_replacement(r"$1$22\$", translate_pattern("(a)(b)"))
    '$1$2\\2\\$'
    """
    if regex.quoted:
        return re.sub(r"[\\$]", r"\\\g<0>", text)
    pieces = []
    for piece in re.finditer(r"\\([\\$])|\$([0-9]+)|([^\\$])|.", text, re.DOTALL):
        escaped, number, plain = piece.groups()
        if escaped:
            pieces.append(f"\\{escaped}")
        elif number:
            digits = len(number)
            while digits > 1 and int(number[:digits]) > regex.groups:
                digits -= 1
            # a group that does not exist is empty; a digit after a group must not become part of its number
            pieces.append(
                f"${int(number[:digits])}" if int(number[:digits]) <= regex.groups else ""
            )
            pieces.extend(f"\\{digit}" for digit in number[digits:])
        elif plain:
            pieces.append(f"\\{plain}" if "0" <= plain <= "9" else plain)
        else:
            raise IllegalPattern(
                f"{piece.group()!r} at {piece.start() + 1} of the replacement {text!r} is not $N, nor escaped as "
                r"\$ or \\"
            )
    return "".join(pieces)


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


class _Piece(NamedTuple):
    """A part of the Java pattern."""

    java: str
    depth: int = 1  # how deep Java recurses to match it, repetitions without bound apart
    growth: int = 0  # how much deeper it recurses for each character of the text
    captured: frozenset[int] = (
        frozenset()
    )  # the groups that have certainly captured a string after it has matched


class _Parser:
    def __init__(self, pattern: str, flags: frozenset[str]) -> None:
        self._pattern, self._at, self._groups, self._closed = pattern, 0, 0, set[int]()
        self._any_case = "i" in flags
        self._cased_atoms, self._cased = (
            0,
            set[int](),
        )  # groups that may capture a character with case variants
        self._dot = r"[\x{0}-\x{10ffff}]" if "s" in flags else r"[^\x{a}\x{d}]"
        # a newline at the very end begins no line: F&O 5.6.2, flag m
        self._start = r"(?:^|(?<=\n)(?!\z))" if "m" in flags else "^"
        self._end = r"(?:(?=\n)|(?<!\n)\z)" if "m" in flags else r"\z"

    def regex(self) -> Regex:
        whole = self._alternatives(frozenset(), 0)
        if self._at < len(self._pattern):
            self._illegal("a ) without its (")
        if whole.depth > _DEEPEST_PATTERN:
            raise UnsupportedQuery(
                f"a regular expression of {len(self._pattern)} characters is too long",
                fragment="REGEX",
            )
        limit = (_STACK - whole.depth) // whole.growth if whole.growth else None
        return Regex(whole.java, self._groups, False, limit)

    # --- reading

    def _ahead(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _skip(self, text: str) -> bool:
        if ahead := self._ahead(text):
            self._at += len(text)
        return ahead

    def _take(self, what: str) -> str:
        if self._at == len(self._pattern):
            self._illegal(f"the end of the pattern where {what} has to stand")
        self._at += 1
        return self._pattern[self._at - 1]

    def _illegal(self, what: str) -> NoReturn:
        raise IllegalPattern(
            f"{what}, at {self._at + 1} of the regular expression {self._pattern!r}"
        )

    def _refuse(self, fragment: str, message: str, hint: str | None = None) -> NoReturn:
        raise UnsupportedQuery(
            f"the regular expression {self._pattern!r} holds {fragment}, {message}",
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

    def _alternatives(self, captured: frozenset[int], nesting: int) -> _Piece:
        if nesting > _DEEPEST_NESTING:
            self._refuse("(", f"more than {_DEEPEST_NESTING} in each other")
        branches = [self._branch(captured, nesting)]
        while self._skip("|"):
            branches.append(self._branch(captured, nesting))
        return _Piece(
            "|".join(branch.java for branch in branches),
            max(branch.depth for branch in branches) + 2 * (len(branches) > 1),
            max(branch.growth for branch in branches),
            frozenset.intersection(*(branch.captured for branch in branches)),
        )

    def _branch(self, captured: frozenset[int], nesting: int) -> _Piece:
        java, depth, growth = "", 0, 0
        while self._at < len(self._pattern) and not self._ahead("|") and not self._ahead(")"):
            piece = self._quantified(captured, nesting)
            java, depth, growth = java + piece.java, depth + piece.depth, max(growth, piece.growth)
            captured = piece.captured
        return _Piece(java, depth, growth, captured)

    def _quantified(self, before: frozenset[int], nesting: int) -> _Piece:
        single = not _GROUP.match(self._pattern, self._at)
        atom = self._atom(before, nesting)
        counts = _COUNTS.match(self._pattern, self._at)
        if counts is None:
            if self._ahead("{"):
                self._illegal("a { that begins no quantity")
            return atom
        self._at = counts.end()
        if _COUNTS.match(self._pattern, self._at) or self._ahead("+"):
            self._foreign(
                counts.group() + self._pattern[self._at], "put the repeated part between ( and )"
            )
        least, most = _bounds(counts)
        if most is not None and least > most:
            self._illegal(f"the quantity {counts.group()}")
        if max(least, most or 0) > _GREATEST_COUNT:
            self._refuse(counts.group(), "which is too many")
        java, captured = atom.java + counts.group(), atom.captured if least else before
        if single and (most is None or counts[1]):
            # Java matches a* in a loop, but not a{2,}
            lazy = "?" if counts.group().endswith("}?") else ""
            java = java if counts[1] else f"{atom.java}{{{least}}}{atom.java}*{lazy}"
            return _Piece(java, atom.depth + 1, 0, captured)
        if most is not None and atom.depth * most <= _DEEPEST_PATTERN // 3:
            return _Piece(java, atom.depth * most + 3, atom.growth, captured)
        return _Piece(java, atom.depth + 3, atom.depth + atom.growth + 3, captured)

    def _atom(self, captured: frozenset[int], nesting: int) -> _Piece:
        match char := self._take("an atom"):
            case "(":
                return self._group(captured, nesting)
            case "[":
                return _Piece(self._char_class(0), captured=captured)
            case ".":
                self._cased_atoms += 1
                return _Piece(self._dot, captured=captured)
            case "^":
                return _Piece(self._start, captured=captured)
            case "$":
                return _Piece(self._end, captured=captured)
            case "\\":
                return self._escape(captured)
            case "?" | "*" | "+" | "{":
                self._at -= 1
                self._illegal(f"a {char} with nothing before it")
            case "]" | "}":
                self._foreign(char, f"write \\{char}")
        return _Piece(java_class(self._variants(char)), captured=captured)

    def _group(self, captured: frozenset[int], nesting: int) -> _Piece:
        capturing = not self._skip("?:")
        if self._ahead("?"):
            self._foreign(f"({self._pattern[self._at : self._at + 2]}")
        number = self._groups = self._groups + capturing
        cased_before = self._cased_atoms
        inner = self._alternatives(captured, nesting + 1)
        if not self._skip(")"):
            self._illegal("a ( without its )")
        if capturing:
            self._closed.add(number)
            if self._cased_atoms > cased_before:
                self._cased.add(number)
        return _Piece(
            f"({'' if capturing else '?:'}{inner.java})",
            inner.depth + 2,
            inner.growth,
            inner.captured | {number} if capturing else inner.captured,
        )

    def _escape(self, captured: frozenset[int]) -> _Piece:
        char = self._take("what \\ escapes")
        if char in "123456789":
            return self._back_reference(char, captured)
        members = self._escaped(char)
        if len(members) == 1:
            return _Piece(java_class(self._variants(members)), captured=captured)
        return _Piece(f"[{members}]", captured=captured)

    def _back_reference(self, number: str, captured: frozenset[int]) -> _Piece:
        if int(number) not in self._closed:
            self._illegal(f"\\{number} before the end of such a group")
        while (more := _DIGIT.match(self._pattern, self._at)) and int(
            number + more.group()
        ) in self._closed:
            number, self._at = number + more.group(), more.end()
        if int(number) not in captured:
            # XPath: then it is the empty string; in Java it matches nothing
            self._refuse(f"\\{number}", "whose group may not have matched")
        if self._any_case and int(number) in self._cased:
            self._refuse(f"\\{number}", "whose case flag i lets vary")
        return _Piece(f"(?:\\{number})", captured=captured)

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
        if not name[1].startswith("Is") or name[1][2:] not in BLOCKS:
            self._refuse(
                f"\\{char}{name.group()}", "which is not a category or block of XML Schema 1.0"
            )
        return f"\\{char}{{In{name[1][2:]}}}"

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
        java = f"[{negative}{''.join(members)}]"
        if self._skip("-["):
            java = f"[{java}&&[^{self._char_class(nesting + 1)}]]"
        if not self._skip("]"):
            self._illegal("a subtraction that does not end its character class")
        return java

    def _member(self, *, first: bool) -> str:
        hyphen = self._ahead("-")
        low = self._end_of_range()
        if hyphen and not first and not _GROUP_END.match(self._pattern, self._at):
            self._foreign("a - in the middle of a character class", "write \\-")
        if len(low) > 1:
            return low
        if not _RANGE.match(self._pattern, self._at):
            return "".join(map(java_char, self._variants(low)))
        self._at += 1
        high = self._end_of_range()
        if len(high) > 1 or low > high:
            self._illegal(f"the range {low}-{high}")
        cased = (
            [char for char in cased_characters() if low <= char <= high] if self._any_case else []
        )
        self._cased_atoms += bool(cased)
        variants = {variant for char in cased for variant in case_variants(char)}
        outside = sorted(char for char in variants if not low <= char <= high)
        return f"{java_char(low)}-{java_char(high)}" + "".join(map(java_char, outside))

    def _end_of_range(self) -> str:
        """Returns one character, or members of a character class."""
        match char := self._take("a ]"):
            case "\\":
                return self._escaped(self._take("what \\ escapes"))
            case "[":
                self._foreign("[ in a character class", "write \\[")
        return char


_COUNTS: Final = re.compile(r"(?:([?*+])|\{([0-9]+)(,?)([0-9]*)\})\??")
_GROUP: Final = re.compile(r"\(|\\[1-9]")
_DIGIT: Final = re.compile("[0-9]")
_PROPERTY: Final = re.compile(r"\{([A-Za-z0-9-]*)\}")
_GROUP_END: Final = re.compile(r"\]|-\[")
_RANGE: Final = re.compile(r"-(?!\[|\]|-\[)")


def _bounds(counts: re.Match[str]) -> tuple[int, int | None]:
    """Returns the least and the greatest number of repetitions; None: no bound."""
    match counts[1]:
        case "?":
            return 0, 1
        case "*":
            return 0, None
        case "+":
            return 1, None
    least = int(counts[2])
    return least, int(counts[4]) if counts[4] else None if counts[3] else least
