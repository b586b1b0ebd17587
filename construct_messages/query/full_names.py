"""Prefixed names with several full stops as IRIs, for pyoxigraph 0.5, which refuses `ex:a.b.c` after `ex:a.b`.

SPARQL 1.2 Query, section 19.8, [PN_LOCAL]. The rest of the text is unchanged, so that the columns of other lines stay
the same.
"""

from __future__ import annotations

from typing import Final

from construct_messages.errors import QueryError
from construct_messages.query.prologue import Prologue
from construct_messages.query.tokens import tokenize
from construct_messages.regex import regex

_SUSPECT: Final = regex(r":(?:[\w%\-]|\\.)*\.(?:[\w%\-.]|\\.)*\.[\w%\-\\]")


def names_in_full(text: str) -> str:
    """Returns the query with such names written as IRIs.

    >>> names_in_full("PREFIX ex: <urn:> ASK { ?s ex:a.b ex:a.b.c . }")
    'PREFIX ex: <urn:> ASK { ?s ex:a.b <urn:a.b.c> . }'
    """
    if not _SUSPECT.search(text):
        return text
    tokens = tokenize(text)
    first_group = next(
        (index for index, token in enumerate(tokens) if token.is_mark("{")), len(tokens)
    )
    prologue = Prologue.read(text, tokens[:first_group], base=None, prefixes={})
    pieces, done = [], 0
    for token in tokens:
        if token.kind == "pname" and token.text.partition(":")[2].count(".") > 1:
            try:
                name = prologue.iri(text, token.text, token.start)
            except QueryError:
                continue  # the engine reports the error
            pieces += [text[done : token.start], name]
            done = token.end
    return "".join((*pieces, text[done:]))
