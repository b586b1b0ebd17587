"""XPath's regular expressions: what they become, what is refused, and what they match."""

from __future__ import annotations

import re
import unicodedata

import pytest

pytest.importorskip("regex")

from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.errors import UnsupportedQuery
from construct_messages.query.algebra.nodes import Call, Constant, Var
from construct_messages.rdf.terms import literal
from construct_messages.sparql.relational.expressions import terms, truths
from construct_messages.sparql.relational.regex import (
    IllegalPattern,
    translate_pattern,
    translate_replacement,
)

TRANSLATED = {
    ("", ""): "",
    ("abc", ""): "abc",
    ("^a$", ""): r"^a\Z",
    ("^a$", "m"): r"(?:^|(?<=\n)(?!\Z))a(?:(?=\n)|(?<!\n)\Z)",
    ("a.", ""): r"a[^\n\r]",
    ("a.", "s"): "a(?s:.)",
    ("a.*", "q"): r"a\.\*",
    ("é!", "qi"): r"[Éé]\!",
    ("k", "i"): "[Kk\u212a]",
    ("[k-l]", "i"): "[k-lKL\u212a]",
    (r"\p{Lu}", "i"): r"[\p{Lu}]",
    (r"\d+\.\w*?", ""): r"[\p{Nd}]+\.[[^\p{P}\p{Z}\p{C}]]*?",
    (r"[^\W\s-]", ""): r"[^\p{P}\p{Z}\p{C}\t\n\r \-]",
    (r"[a-z-[aeiou]]", ""): "[[a-z]--[aeiou]]",
    (r"[^a-[b-[c]]]", ""): "[[^a]--[[b]--[c]]]",
    ("[&&~#-]", ""): r"[\&\&\~\#\-]",
    (r"\p{IsBasicLatin}\P{IsGreek}", ""): r"[\p{InBasicLatin}][\P{InGreek}]",
    ("(?:a|b)?(c)", ""): "(?:a|b)?(c)",
    ("a{2}b{2,}c{2,3}d{2,}?", ""): "a{2}b{2,}c{2,3}d{2,}?",
    (r"(a)\1", ""): r"(a)(?(1)\g<1>|)",
    (r"(a)\12", ""): r"(a)(?(1)\g<1>|)2",
    ("a b [ c]\t\\ n", "x"): "ab[\\ c]\\\n",
    ("😀", ""): "😀",
    ("\x00\n", ""): "\\\x00\\\n",
}

ILLEGAL = [
    "(",
    ")",
    "a)",
    "(a",
    "*",
    "a|*",
    "(+)",
    "^a|?",
    "[a",
    "[z-a]",
    "[a-\\d]",
    "[a-[b]c]",
    "a{",
    "a{x}",
    "a{2,1}",
]
ILLEGAL += ["{2}", "\\", "[\\", r"\1", r"(\1)", r"(a)\2", r"[a-z-[x]", "a{,3}"]

# a pattern, and what of it is refused
REFUSED = {
    r"\bfox\b": r"\b",
    r"\Qa\E": r"\Q",
    r"\x41": r"\x",
    r"\u0041": r"\u",
    r"\0": r"\0",
    r"a\/b": r"\/",
    r"\pL": r"\pL",
    r"\p{Greek}": r"\p{Greek}",
    r"\p{IsGreekish}": r"\p{IsGreekish}",
    "(?i)a": "(?i",
    "(?=a)": "(?=",
    "(?<n>a)": "(?<",
    "a++": "++",
    "a*?+": "*?+",
    "a{2}{3}": "{2}{",
    "[]a]": "[]",
    "[^]a]": "[^]",
    "[[:alpha:]]": "[ in a character class",
    "[a&&[b]]": "[ in a character class",
    r"[\w-.]": "a - in the middle of a character class",
    "a]": "]",
    "a}": "}",
    "a{2147483648}": "{2147483648}",
    "(" * 200 + ")" * 200: "(",
    "a{100001}": "{100001}",
    "(?:[ab]{400}|b){400,}": "{400,}",
}

# a pattern that matches "ab", a replacement, and what becomes of "ab"
REPLACEMENTS = {
    ("a", "$0$0"): "aab",
    ("(a)", "$1b"): "abb",
    ("(a)", "$12"): "a2b",
    ("(a)", "$2"): "b",
    ("(a)", "$01"): "ab",
    ("(a)|(b)", "<$2$1>"): "<a><b>",
    ("a", r"\$1\\"): "$1\\b",
    ("a", "3é\n"): "3é\nb",
}


@pytest.mark.parametrize(("pattern", "flags"), TRANSLATED, ids=repr)
def test_translated(pattern: str, flags: str) -> None:
    assert translate_pattern(pattern, flags).text == TRANSLATED[pattern, flags]


@pytest.mark.parametrize("pattern", ILLEGAL)
def test_illegal(pattern: str) -> None:
    with pytest.raises(IllegalPattern):
        translate_pattern(pattern)


@pytest.mark.parametrize("flags", ["k", "I", "i ", "g"])
def test_illegal_flags(flags: str) -> None:
    with pytest.raises(IllegalPattern, match="is not a flag"):
        translate_pattern("a", flags)


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda pattern: pattern[:20])
def test_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        translate_pattern(pattern)
    assert refused.value.fragment == REFUSED[pattern]


@pytest.mark.parametrize(
    "group",
    [
        "a",
        ".",
        "[b-d]",
        "[^1]",
        r"\w",
        r"\D",
        r"\p{L}",
        r"\P{Nd}",
        r"\p{Nl}",
        "[1é]",
        "(?:1|x)",
        "1(k)",
        "[0-Z]",
        "K",
    ],
)
def test_a_back_reference_whose_case_varies_is_refused(group: str) -> None:
    with pytest.raises(UnsupportedQuery, match="flag i"):
        translate_pattern(rf"({group})\1", "i")


@pytest.mark.parametrize(
    "group", ["1", "[0-9]", r"\d+", r"\s", r"\p{P}", r"\p{Zs}", "中|国", "[-+]", ""]
)
def test_a_back_reference_without_case(group: str) -> None:
    """Flag i changes nothing of what such a group captures."""
    assert r"(?(1)\g<1>|)" in translate_pattern(rf"x({group})y\1", "i").text


def replaced(pattern: str, text: str, flags: str = "") -> object:
    translated = translate_pattern(pattern, flags)
    return translated.compiled().sub(translate_replacement(text, translated), "ab")


@pytest.mark.parametrize(("pattern", "text"), REPLACEMENTS, ids=repr)
def test_replacement(pattern: str, text: str) -> None:
    assert replaced(pattern, text) == REPLACEMENTS[pattern, text]


@pytest.mark.parametrize("text", ["$", "a$b", "\\", r"\1", r"\n"])
def test_illegal_replacement(text: str) -> None:
    with pytest.raises(IllegalPattern, match="nor escaped"):
        translate_replacement(text, translate_pattern("a"))


def test_a_quoted_replacement() -> None:
    assert replaced("a", r"$1\n", "q") == r"$1\nb"


# --- what they match --------------------------------------------------------------------------------------------------

MATCHES = [
    # pattern, flags, texts that match, texts that do not
    ("^a$", "", ["a"], ["a\n", "\na", "ba", ""]),
    ("^a$", "m", ["a", "a\n", "b\na\nb", "\na"], ["ba", "a\r"]),
    ("^$", "m", ["", "\n", "a\n\nb"], ["a", "a\n"]),
    ("^", "m", ["", "a\n"], []),
    ("a.b", "", ["a b", "a\tb", "a😀b", "a\u2028b", "a\u0085b"], ["a\nb", "a\rb", "ab"]),
    ("a.b", "s", ["a\nb", "a\rb", "a😀b"], ["ab", "a\r\nb"]),
    ("É", "i", ["é", "É"], ["e"]),
    ("straße", "i", ["STRAẞE", "Straße"], ["STRASSE"]),
    ("σ", "i", ["ς", "Σ"], []),
    ("i", "i", ["I", "ı"], ["İ"]),
    ("[a-z]", "i", ["K", "\u212a", "ſ"], ["é", "1"]),
    ("[^q]", "i", ["x"], ["Q", "q"]),
    ("[A-Z-[IO]]", "i", ["a", "A"], ["i", "I", "o", "O"]),
    (r"\p{Lu}", "i", ["A"], ["a"]),
    (r"^[\i-[:]][\c-[:]]*$", "", ["a-b.c", "_1", "é·"], ["1a", "a:b", "-", ""]),
    (r"^\I\C$", "", ["1 ", "-!"], ["a ", "1a"]),
    (r"^\w$", "", ["a", "é", "1", "😀", "+", "٣"], ["_", "-", " ", "\u00a0"]),
    (r"^\W$", "", ["_", "-", " "], ["a", "😀"]),
    (r"^\d$", "", ["1", "٣"], ["²", "½", "a"]),
    (r"^\s$", "", [" ", "\t", "\n", "\r"], ["\u00a0", "\x0b", "\f", "\u2003"]),
    (r"^\p{IsBasicLatin}+$", "", ["abc~"], ["é", ""]),
    (r"^\p{IsGreek}\P{IsCyrillic}$", "", ["αβ", "Ωx"], ["αж", "xα"]),
    (r"^[^\p{L}-[a]]$", "", ["1", "-"], ["a", "b"]),
    ("a b", "x", ["ab"], ["a b"]),
    ("a[ ]b", "x", ["a b"], ["ab"]),
    (r"hello\ sworld", "x", ["hello world"], ["hellosworld"]),
    ("[.*", "q", ["x[.*y"], ["[xx"]),
    ("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\\10", "", ["abcdefghijj"], ["abcdefghija0"]),
    ("^(a|b)\\1$", "", ["aa", "bb"], ["ab"]),
    (r"^(?:(a)|b)\1$", "", ["aa", "b"], ["a", "ba", "bb"]),
    (r"^(a)?\1*$", "", ["", "a", "aaa"], ["b"]),
    (r"^x(\d+)\1y$", "i", ["x1212y", "X77Y"], ["x12y", "x1221y"]),
    (r"^(a)([0-9])\2$", "i", ["a11", "A22"], ["A12"]),
    ("^(?:ab){2,3}?$", "", ["abab", "ababab"], ["ab", "abababab"]),
    ("^a{3,}$", "", ["aaa", "aaaa"], ["aa"]),
    ("^(|a)$", "", ["", "a"], ["b"]),
    ("^*a$*b", "", ["ab"], ["ac"]),
    (r"^\\\|\.\-\^\?\*\+\{\}\(\)\[\]\$\n\r\t$", "", ["\\|.-^?*+{}()[]$\n\r\t"], []),
    ("^[\\^\\-a-]$", "", ["^", "-", "a"], ["\\"]),
]


def matches(pattern: str, text: str, flags: str = "") -> bool | None:
    """REGEX, by the evaluator."""
    call = Call("REGEX", (Var("text"), Constant(literal(pattern)), Constant(literal(flags))))
    return truths(call, ["text"], [(literal(text),)])[0]


def test_matches() -> None:
    wrong = [
        (pattern, flags, text, expected)
        for pattern, flags, matching, others in MATCHES
        for expected, texts in ((True, matching), (False, others))
        for text in texts
        if matches(pattern, text, flags) is not expected
    ]
    assert wrong == []


# characters of one category in the first version of Unicode that Python knows and in its own: that of `regex` cannot
# differ, but for one letter that Unicode 17 moves
SETTLED = [
    char
    for char in map(chr, (*range(0xD800), *range(0xE000, 0x30000)))
    if unicodedata.category(char) == unicodedata.ucd_3_2_0.category(char) != "Cn"
    and char != "\u0295"
]
CLASSES = {
    r"[^\w]": lambda char: unicodedata.category(char)[0] in "PZC",
    r"\W": lambda char: unicodedata.category(char)[0] in "PZC",
    r"\D": lambda char: unicodedata.category(char) != "Nd",
    r"[^\S]": lambda char: char in " \t\n\r",
    r"[\P{Lu}-[\d]]": lambda char: unicodedata.category(char) not in ("Lu", "Nd"),
    r"[^\P{L}\p{Ll}]": lambda char: (
        unicodedata.category(char)[0] == "L" and unicodedata.category(char) != "Ll"
    ),
    r"[a-z\d-[^\p{Nd}f-z-[g]]]": lambda char: (
        unicodedata.category(char) == "Nd" or char in "fghijklmnopqrstuvwxyz"
    ),
    ".": lambda char: char not in "\n\r",
}


def test_character_classes() -> None:
    """Each class removes from all characters those that it has."""
    text = literal("".join(SETTLED))
    for pattern, holds in CLASSES.items():
        call = Call("REPLACE", (Var("x"), Constant(literal(pattern)), Constant(literal(""))))
        rest = literal("".join(char for char in SETTLED if not holds(char)))
        assert terms(call, ["x"], [(text,)]) == [rest], pattern


# those that XML Schema 1.0 names, and some newer ones
BLOCKS = """
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
    CJKUnifiedIdeographsExtensionB CJKCompatibilityIdeographsSupplement Tags PrivateUse CyrillicSupplement Emoticons
    """.split()  # noqa: SIM905  words read better than a list of strings


def test_blocks_are_known() -> None:
    assert all(matches(rf"^\p{{Is{name}}}?$", "") for name in BLOCKS)


# Patterns of which Python, over these characters, means the same as XPath: pairs of both.
CHARS = "ab1é\n 😀-"
ATOMS = st.sampled_from(
    [(char, re.escape(char)) for char in "ab1é 😀"]
    + [
        (r"\n", "\n"),
        (r"\-", "-"),
        (".", "."),
        (r"\d", "[1]"),
        (r"\s", r"[\n ]"),
        (r"\S", r"[^\n ]"),
    ]
    + [
        (r"\w", "[ab1é😀]"),
        (r"\W", r"[\n -]"),
        (r"\p{L}", "[abé]"),
        ("[a-b]", "[ab]"),
        ("[^a-b]", "[^ab]"),
    ]
    + [("[a-é-[b]]", "[aé]"), ("[^1-[a\\s]]", r"[bé😀-]"), ("[\\D1-]", "[^x]")]
    + [("^", r"\A"), ("$", r"\Z")]
)
QUANTIFIERS = st.sampled_from(
    ["", "", "", "?", "*", "+", "??", "*?", "+?", "{2}", "{1,2}", "{2,}", "{2,}?", "{0,1}?"]
)


def sequence(parts: list[tuple[tuple[str, str], str]]) -> tuple[str, str]:
    xpath = "".join(atom[0] + quantifier for atom, quantifier in parts)
    # Python repeats no anchor
    return xpath, "".join(f"(?:{atom[1]}){quantifier}" for atom, quantifier in parts)


def alternatives(branches: list[tuple[str, str]], opening: str) -> tuple[str, str]:
    return (
        f"{opening}{'|'.join(branch[0] for branch in branches)})",
        f"(?:{'|'.join(branch[1] for branch in branches)})",
    )


SEQUENCES = st.recursive(
    st.lists(st.tuples(ATOMS, QUANTIFIERS), max_size=4).map(sequence),
    lambda inner: st.lists(
        st.tuples(
            ATOMS
            | st.builds(
                alternatives, st.lists(inner, min_size=1, max_size=3), st.sampled_from(["(", "(?:"])
            ),
            QUANTIFIERS,
        ),
        max_size=3,
    ).map(sequence),
    max_leaves=4,
)
TEXTS = st.text(CHARS, max_size=6)
CASES = st.lists(
    st.tuples(SEQUENCES, st.lists(TEXTS, min_size=1, max_size=5)), min_size=100, max_size=200
)


@settings(max_examples=5)
@given(cases=CASES)
def test_matches_as_python(cases: list[tuple[tuple[str, str], list[str]]]) -> None:
    pairs = [(xpath, python, text) for (xpath, python), texts in cases for text in texts]
    assert [
        pair for pair in pairs if matches(pair[0], pair[2]) != bool(re.search(pair[1], pair[2]))
    ] == []


def test_long_texts() -> None:
    patterns = ["^[a😀]*$", "^[^x]{2,}$", "^.+?$", r"^[\s\S]*$", "^(?:.*)(?:.*)$", "^a.*😀$"]
    assert all(matches(pattern, "a😀" * 100_000) for pattern in patterns)


def test_a_long_pattern() -> None:
    assert matches("(.)" * 5000 + r"\5000$", "a" * 5001)
