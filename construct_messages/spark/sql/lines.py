r"""Lines of N-Triples and N-Quads in SQL: from a line to its terms in canonical form, with no Python worker.

For sessions that have not got the functions of the jar (`jar.statement`), which read the same. A line in canonical form
is recognised by one regular expression and cut (`canonical`, `terms`); any other is read token by token: RDF 1.2
N-Triples and N-Quads, section 7, and canonical N-Triples as `terms.py` has it. What is legal is what pyoxigraph
accepts: IRIs of RFC 3987, language tags of RFC 5646. Regular expressions are Java's, and possessive where a stack could
overflow; sets of single characters are quicker there than ranges. Nothing here reads a file, and no pyspark.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Final

from construct_messages.spark.sql.values import any_of, case, escape, let, literal
from construct_messages.terms.grammar import (
    BLANK_LABEL,
    CANONICAL_ECHAR,
    HEX,
    NOT_A_DATATYPE,
    NOT_IN_IRIREF,
    SUB_DELIMS,
    UCSCHAR,
    UNRESERVED,
)

# --- IRIs -----------------------------------------------------------------------------------------------------------


def _set(chars: str) -> str:
    """A set of single characters of ASCII, which Java looks up in one table."""
    return "[" + "".join(char if char.isalnum() else f"\\x{ord(char):02x}" for char in chars) + "]"


_ALPHANUMERIC: Final = string.ascii_letters + string.digits
_UNRESERVED: Final = _ALPHANUMERIC + UNRESERVED
_UCSCHAR: Final = UCSCHAR + "".join(
    f"\\x{{{plane:x}{'1000' if plane == 14 else '0000'}}}-\\x{{{plane:x}fffd}}"
    for plane in range(1, 15)
)
_PRIVATE: Final = "\\ue000-\\uf8ff\\x{f0000}-\\x{ffffd}\\x{100000}-\\x{10fffd}"


def _chars(more: str, others: str = _UCSCHAR) -> str:
    ascii = _set(_UNRESERVED + SUB_DELIMS + more)
    return f"{ascii}*(?:(?:%{HEX}{{2}}|[{others}]+){ascii}*)*+"


_SCHEME: Final = f"{_set(string.ascii_letters)}{_set(_ALPHANUMERIC + '+.-')}*:"
_PORT: Final = f"(?::{_set(string.digits)}*)?+"
_FRAGMENT: Final = f"(?:#{_chars(':@/?')})?+"
_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_LAST: Final = f"(?:{HEX}{{1,4}}:{HEX}{{1,4}}|{_OCTET}(?:\\.{_OCTET}){{3}})"
_IP_V6: Final = "|".join(
    [f"(?:{HEX}{{1,4}}:){{6}}{_LAST}", f"::(?:{HEX}{{1,4}}:){{5}}{_LAST}"]
    + [
        f"(?:(?:{HEX}{{1,4}}:){{0,{before}}}{HEX}{{1,4}})?::(?:{HEX}{{1,4}}:){{{4 - before}}}{_LAST}"
        for before in range(5)
    ]
    + [
        f"(?:(?:{HEX}{{1,4}}:){{0,5}}{HEX}{{1,4}})?::{HEX}{{1,4}}",
        f"(?:(?:{HEX}{{1,4}}:){{0,6}}{HEX}{{1,4}})?::",
    ]
)
_IP: Final = f"\\[(?:{_IP_V6}|[vV]{HEX}+\\.{_set(_UNRESERVED + SUB_DELIMS + ':')}+)\\]"
IRI: Final = (
    f"{_SCHEME}(?://(?:{_chars(':')}@)?(?:{_IP}|{_chars('')}){_PORT}(?=[/?#>]|\\z)|(?!//))"
    f"{_chars(':@/')}(?:\\?{_chars(':@/?', _UCSCHAR + _PRIVATE)})?+{_FRAGMENT}"
)
"""A pattern of absolute IRIs, as pyoxigraph knows them."""
# what a lenient reader passes; see `Lenience`
_LENIENT_IRI: Final = f"{_SCHEME}[^{NOT_IN_IRIREF}]*+"
# with hosts and characters that are usual; what it does not know is read by the other
_USUAL: Final = _set(_UNRESERVED + SUB_DELIMS + ":@/?")
_USUAL_CHARS: Final = f"{_USUAL}*(?:(?:%{HEX}{{2}}|[\\u00a0-\\ud7ff]+){_USUAL}*)*+"
_USUAL_IRI: Final = (
    f"(?:https?://{_set(_UNRESERVED)}*{_PORT}/|{_SCHEME}(?!//)){_USUAL_CHARS}(?:#{_USUAL_CHARS})?+"
)
# the form of most IRIs of a dump, recognised in three quarters of the time
_COMMON_IRI: Final = f"https?://{_set(_UNRESERVED)}*/(?>{_USUAL}*#?{_USUAL}*)"

# --- language tags --------------------------------------------------------------------------------------------------

_GRANDFATHERED: Final = (
    "en-gb-oed|i-ami|i-bnn|i-default|i-enochian|i-hak|i-klingon|i-lux|i-mingo|i-navajo|i-pwn|i-tao|i-tay|i-tsu|"
    "sgn-be-fr|sgn-be-nl|sgn-ch-de|art-lojban|cel-gaulish|no-bok|no-nyn|zh-guoyu|zh-hakka|zh-min|zh-min-nan|zh-xiang"
)
# RFC 5646, section 2.1
_LANGUAGE: Final = (
    "(?i:(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
    "(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*(?:-[a-wy-z0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?"
    f"|x(?:-[a-z0-9]{{1,8}})+|{_GRANDFATHERED})"
)
_LENIENT_LANGUAGE: Final = "[A-Za-z]++(?:-[A-Za-z0-9]++)*+"

# --- lines in canonical form ----------------------------------------------------------------------------------------

_PLAIN_TEXT: Final = _set(
    "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in '"\\')
)
# U+FFFD is what bytes that are no UTF-8 become: lines that hold it are looked at again
_TEXT: Final = (
    f'"{_PLAIN_TEXT}*'
    f'(?:(?:\\\\[{CANONICAL_ECHAR}]|[\\u0080-\\ufffc\\x{{10000}}-\\x{{10ffff}}]+){_PLAIN_TEXT}*)*+"'
)
_LOWER: Final = _set(string.ascii_lowercase)


def _canonical(graphs: bool, iri: str = _USUAL_IRI) -> str:
    node = f"(?:<{iri}>|_:{_set(_ALPHANUMERIC + '_')}{_set(_ALPHANUMERIC + '_-')}*)"
    datatype = f"\\^\\^(?!{'|'.join(NOT_A_DATATYPE)})<{iri}>"
    text = f"{_TEXT}(?:@{_LOWER}{{2,3}}(?:-{_LOWER}{{2}})?|{datatype})?"
    return f"^{node} <{iri}> (?:{node}|{text}){f'(?: {node})?' if graphs else ''} \\.\\z"


# --- tokens ---------------------------------------------------------------------------------------------------------

_SPACE: Final = "[ \\t]*+"
_COMMENT: Final = "(?:#.*+)?+"
_UCHAR: Final = f"\\\\u(?![Dd][89A-Fa-f]){HEX}{{4}}|\\\\U00(?:0(?!0[Dd][89A-Fa-f]){HEX}|10){HEX}{{4}}"  # no surrogates
_IRIREF: Final = f"<(?:[^{NOT_IN_IRIREF}]|{_UCHAR})*+>"
_STRING: Final = f'"[^"\\\\\\n\\r]*+(?:(?:\\\\[tbnrf"\\x27\\\\]|{_UCHAR})[^"\\\\\\n\\r]*+)*+"'
_TAG: Final = "@[A-Za-z]++(?:-[A-Za-z0-9]++)*+(?:--[A-Za-z]++)?+"
_BLANK: Final = f"_:{BLANK_LABEL}"
_TOKEN: Final = (
    f"<<\\(|\\)>>|\\.|{_IRIREF}|{_BLANK}|{_STRING}(?:{_SPACE}(?:{_TAG}|\\^\\^{_SPACE}{_IRIREF}))?+"
)
_TOKENS: Final = f"(?s)^(?:{_SPACE}(?:{_TOKEN}))*+{_SPACE}"
_NOTHING: Final = f'(?s)^{_SPACE}(?:VERSION{_SPACE}(?:"[^"\\\\]*+"|\\x27[^\\x27\\\\]*+\\x27){_SPACE})?+{_COMMENT}\\z'
_PIECE: Final = f"(?s){_UCHAR}|\\\\.|[^\\\\]++"


def canonical(
    line: str,
    scope: str,
    malformed: Callable[[str], str],
    *,
    graphs: bool = True,
    lenient: bool = False,
) -> str:
    """SQL: the statement of a line in canonical form; NULL where the line is blank, a comment or a version.

    Labels of blank nodes in triple terms are scoped already, all others by `terms`.

    Args:
        line: a column of strings: text without its line break.
        scope: SQL of what labels of blank nodes get in front; computed only where there are any.
        malformed: returns SQL of the result for a malformed line, for SQL of that line.
        graphs: whether a statement may name a graph (N-Quads).
        lenient: whether IRIs and language tags that are malformed are passed.
    """
    # not as code of Spark's, which would be so large that Java never compiles the method that recognises most lines
    other = let(
        line, lambda text: _other(text, scope, malformed, graphs, lenient), interpreted=True
    )
    return case(
        (
            f"{line} RLIKE {literal(_canonical(graphs, _COMMON_IRI))} OR {line} RLIKE {literal(_canonical(graphs))}",
            line,
        ),
        (f"{line} RLIKE {literal(_NOTHING)}", "NULL"),
        otherwise=other,
    )


def terms(line: str, scope: str, *, graphs: bool = True) -> tuple[tuple[str, ...], ...]:
    """SQL of projections, one over the other: the columns of the last are `subject`, `predicate`, `object`, `graph`
    (NULL: none).

    Args:
        line: a column of results of `canonical`, not NULL.
        scope, graphs: as for `canonical`.
    """
    object, graph = _object_and_graph("rest", graphs)
    return (
        (f"split({line}, ' ', 3) AS parts",),
        (
            "parts[0] AS first",
            "parts[1] AS predicate",
            _rest("parts[2]") + " AS rest",
        ),
        (
            f"{_scoped('first', scope)} AS subject",
            "predicate",
            f"{_scoped(object, scope)} AS object",
            f"{_scoped(graph, scope)} AS graph",
        ),
    )


def _rest(text: str) -> str:
    """What begins with the object, without the end of the statement."""
    return _bytes(text, 1, f"octet_length({text}) - 2")


def _object_and_graph(rest: str, graphs: bool) -> tuple[str, str]:
    if not graphs:
        return rest, "CAST(NULL AS STRING)"
    # a graph has no quote and no `)>>`, and the space before it is the last one of all
    tail = f"""substring_index({rest}, if(startswith({rest}, '<<('), ')>>', '"'), -1)"""
    graph = case((f"contains({tail}, ' ')", f"substring_index({rest}, ' ', -1)"))
    return (
        f"coalesce({_bytes(rest, 1, f'octet_length({rest}) - octet_length({graph}) - 1')}, {rest})",
        graph,
    )


def _bytes(text: str, start: int, length: str) -> str:
    """Some bytes of a text: counting characters would cost as much as matching them."""
    return f"CAST(substring(CAST({text} AS BINARY), {start}, {length}) AS STRING)"


def _scoped(term: str, scope: str) -> str:
    label = _bytes(term, 3, f"octet_length({term})")
    return case((f"startswith({term}, '_:')", f"concat('_:', {scope}, {label})"), otherwise=term)


# --- what was passed although it is malformed -------------------------------------------------------------------------


def malformed(term: str) -> str:
    """SQL: how many malformed IRIs and language tags are in a term that was read leniently.

    Args:
        term: a column of terms in canonical form, or NULL.
    """
    iri, suffix = f"<(?:{IRI})>", f"@{_LANGUAGE}(?:--(?:ltr|rtl))?"
    sound = literal(
        f'(?s)^(?:<<\\(|\\)>>|_:.*+|{iri}|"(?:[^"\\\\]|\\\\.)*+"(?:{suffix}|\\^\\^{iri})?)\\z'
    )
    tokens = f"regexp_extract_all({term}, {literal(_TOKEN)}, 0)"
    usual = literal(f"^(?:<{_USUAL_IRI}>|_:.*+|{_TEXT}(?:@{_LOWER}{{2,3}})?)\\z")
    found = f"size(filter({tokens}, t -> NOT t RLIKE {sound}))"
    return case((f"{term} IS NULL OR {term} RLIKE {usual}", "0"), otherwise=found)


# --- other lines ----------------------------------------------------------------------------------------------------


def _is_sound(line: str) -> str:
    """Whether a line is UTF-8, and all of it tokens."""
    return f"(is_valid_utf8({line}) AND {line} RLIKE {literal(_TOKENS + _COMMENT + chr(92) + 'z')})"


def _other(
    line: str, scope: str, malformed: Callable[[str], str], graphs: bool, lenient: bool
) -> str:
    def joined(tokens: str) -> str:
        # where there are more than those of a plain statement, those from the third on are of a triple term
        inner = f"size({tokens}) > 5 AND i > 1 AND i < size({tokens}) - 2"
        scoped = case(
            (f"{inner} AND startswith(t, '_:')", f"concat('_:', {scope}, substring(t, 3))"),
            otherwise="t",
        )
        whole = f"NOT exists({tokens}, t -> t IS NULL) AND {_is_statement(tokens, graphs)}"
        return case((whole, f"array_join(transform({tokens}, (t, i) -> {scoped}), ' ')"))

    statement = f"regexp_extract({line}, {literal(_TOKENS)}, 0)"  # a comment may hold tokens, too
    tokens = f"transform(regexp_extract_all({statement}, {literal(_TOKEN)}, 0), t -> {_term('t', lenient)})"
    return f"coalesce({case((_is_sound(line), let(tokens, joined)))}, {malformed(line)})"


def _is_statement(tokens: str, graphs: bool) -> str:
    """Whether tokens are a statement, by their first characters; triple terms are taken in from within."""
    first = case(("t = '<<('", "'('"), otherwise="left(t, 1)")
    kinds = f"array_join(transform({tokens}, t -> {first}), '')"
    inner = literal(r'\([<_]<[<_"t]\)')
    kinds = f"aggregate(filter({tokens}, t -> t = '<<('), {kinds}, (k, t) -> regexp_replace(k, {inner}, 't'))"
    statement = r'^[<_]<[<_"t][<_]?[.]\z' if graphs else r'^[<_]<[<_"t][.]\z'
    return f"{kinds} RLIKE {literal(statement)}"


def _term(token: str, lenient: bool) -> str:
    """A token in canonical form; NULL if it is illegal."""
    return case(
        (f"left({token}, 1) IN ('_', '.', ')') OR {token} = '<<('", token),
        (f"startswith({token}, '<')", _iri(f"substring({token}, 2, length({token}) - 2)", lenient)),
        otherwise=let(
            f"substring_index({token}, '\"', -1)", lambda suffix: _literal(token, suffix, lenient)
        ),
    )


def _iri(text: str, lenient: bool) -> str:
    whole = literal(f"^(?:{_LENIENT_IRI if lenient else IRI})\\z")
    return let(
        _decoded(text), lambda iri: case((f"{iri} RLIKE {whole}", f"concat('<', {iri}, '>')"))
    )


def _literal(token: str, suffix: str, lenient: bool) -> str:
    text = f"substring({token}, 2, length({token}) - length({suffix}) - 2)"
    bare = f"translate({suffix}, {literal(' ' + chr(9))}, '')"
    tag = literal(f"^@{_LENIENT_LANGUAGE if lenient else _LANGUAGE}(?:--(?:ltr|rtl))?\\z")
    datatype = let(
        _iri(f"substring({bare}, 4, length({bare}) - 4)", lenient),
        lambda iri: case(
            (f"{iri} = '{NOT_A_DATATYPE[0]}'", "''"),
            (any_of(iri, NOT_A_DATATYPE[1:]), "NULL"),
            otherwise=f"concat('^^', {iri})",
        ),
    )
    end = case(
        (f"{bare} = ''", "''"),
        (f"startswith({bare}, '@')", case((f"{bare} RLIKE {tag}", f"lower({bare})"))),
        otherwise=datatype,
    )
    return f"""concat('"', {escape(_decoded(text))}, '"', {end})"""


def _decoded(text: str) -> str:
    """Text without escapes. Piece by piece, because the result of one escape may look like the beginning of another."""
    backslash = literal("\\")
    raw = literal("\t\b\n\r\f")
    piece = case(
        (f"startswith(p, {literal(chr(92) + 'u')})", "decode(unhex(substring(p, 3)), 'UTF-16BE')"),
        # UTF-32 would take U+FEFF for a byte order mark
        (
            f"startswith(p, {literal(chr(92) + 'U0000')})",
            "decode(unhex(substring(p, 7)), 'UTF-16BE')",
        ),
        (f"startswith(p, {literal(chr(92) + 'U')})", "decode(unhex(substring(p, 3)), 'UTF-32')"),
        (f"startswith(p, {backslash})", f"translate(substring(p, 2), 'tbnrf', {raw})"),
        otherwise="p",
    )

    def pieces(t: str) -> str:
        return f"array_join(transform(regexp_extract_all({t}, {literal(_PIECE)}, 0), p -> {piece}), '')"

    return let(text, lambda t: case((f"contains({t}, {backslash})", pieces(t)), otherwise=t))
