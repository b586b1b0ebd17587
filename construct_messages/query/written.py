"""`Written`: a query as its author wrote it, for the SELECT that was made of it.

An engine that refuses the SELECT names places in that. Asked about the query as written it names those that the author
sees. Nothing is evaluated here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyoxigraph as ox

from construct_messages.query.full_names import names_in_full

_NO_LINE_BREAK: Final = re.compile(r"[^\r\n]")


@dataclass(frozen=True)
class Written:
    """A CONSTRUCT query to ask an engine about.

    Args:
        text: the query; the inside of its template is blank, because engines know less of templates than this package.
        base: the base IRI that its relative IRIs resolve against.
        prefixes: those that it uses without declaring them, by their names.
    """

    text: str
    base: str | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        text: str,
        template: tuple[int, int] | None,
        base: str | None,
        prefixes: Mapping[str, str],
    ) -> Written:
        """The query with these offsets of the inside of its template; None: in the short form there is none.

        >>> Written.of("CONSTRUCT { ?s ?p ?o }\\nWHERE {}", (11, 21), None, {}).text
        'CONSTRUCT {          }\\nWHERE {}'
        """
        if template is not None:
            start, end = template
            text = text[:start] + _NO_LINE_BREAK.sub(" ", text[start:end]) + text[end:]
        return cls(text, base, prefixes)

    def refusal(self) -> SyntaxError | None:
        """Returns why the embedded engine refuses the query; None: it does not."""
        try:
            ox.Store().query(
                names_in_full(self.text), base_iri=self.base, prefixes=dict(self.prefixes)
            )
        except SyntaxError as error:
            return error
        except (OSError, RuntimeError, ValueError):
            pass  # it is legal, and cannot be planned
        return None
