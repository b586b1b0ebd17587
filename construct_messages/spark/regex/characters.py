"""Characters of regular expressions in Java's syntax: literal ones, escapes for several, and case variants.

XML Schema 1.1 Part 2, appendix G; XPath and XQuery Functions and Operators 3.1, section 5.6.2 (flag `i`). No grammar
here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from construct_messages.rdf.terms import PN_BASE, PN_CHARS

_PLAIN: Final = re.compile(r"[A-Za-z0-9 \u00a1-\U0010ffff]")
SINGLE: Final = {"n": "\n", "r": "\r", "t": "\t"} | {char: char for char in "\\|.?*+(){}$-[]^"}
_SPACES: Final = r"\x{9}\x{a}\x{d} "
_NAME_START: Final = f":_{PN_BASE}"
_NAME: Final = f":.{PN_CHARS}"
# as members of a character class; a complement is a class of its own inside it
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
    """Returns a character in Java's syntax, in a character class or outside."""
    if _PLAIN.fullmatch(char):
        return char
    return f"\\{char}" if char.isascii() and char.isprintable() else f"\\x{{{ord(char):x}}}"


def java_class(chars: str) -> str:
    """Returns one of some characters."""
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
    """Returns a character and its case variants."""
    return cased_characters().get(char, char)
