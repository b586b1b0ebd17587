"""Resolution of relative IRIs, which is pyoxigraph's: RFC 3986, section 5.2."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from construct_messages.rdf.terms import grammar
from construct_messages.rdf.terms.canonical import Term, iri
from construct_messages.rdf.terms.wellformed import resolved

_SCHEME: Final = re.compile(grammar.SCHEME)


@lru_cache(maxsize=1024)
def resolve(reference: str, base: str | None, *, lenient: bool = False) -> Term:
    """Resolves a reference to an IRI. `reference`: an absolute or relative IRI without brackets, escapes decoded.
    `lenient`: whether to resolve a relative reference even if it, or its base, is malformed.

    >>> resolve("#me", "http://example.org/card")
    '<http://example.org/card#me>'
    """
    if base is None or _SCHEME.match(reference):
        return iri(reference)
    return Term(f"<{resolved(reference, base, lenient=lenient)}>")
