"""SELECT and ASK queries as a `Select` that a source can evaluate; an ASK has one solution or none.

SPARQL 1.2 Query, section 19.8, [9] SelectClause, [12] AskQuery. The text is spliced, as in `rewrite.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from construct_messages.query.prologue import check_base, check_prefixes, insert
from construct_messages.query.select import Select
from construct_messages.query.syntax.nodes import AliasNode, AskForm, SelectForm, Unknown
from construct_messages.query.syntax.parser import Query, parse
from construct_messages.query.tokens import QueryText, decoded


def read_results(
    query: str, *, base: str | None = None, prefixes: Mapping[str, str] | None = None
) -> Select:
    """Returns a SELECT or ASK query as the `Select` to evaluate.

    >>> str(read_results("SELECT (MAX(?t) AS ?latest) { ?s <urn:modified> ?t }"))
    'SELECT (MAX(?t) AS ?latest) { ?s <urn:modified> ?t }'
    >>> read_results("SELECT (MAX(?t) AS ?latest) { ?s <urn:modified> ?t }").variables
    ('latest',)
    >>> str(read_results("ASK { ?s ?p 1 }"))
    'SELECT (1 AS ?answer) { ?s ?p 1 }\\nLIMIT 1'
    """
    source = QueryText.of(query)
    text, tokens = source.text, source.tokens
    tree = parse(source)
    form = tree.form
    if not isinstance(form, SelectForm | AskForm):
        message = "expected a SELECT or ASK query"
        raise tree.error(form, message, "its result is compared")
    own = check_prefixes(prefixes)
    used = {decoded(text, token).partition(":")[0] for token in tokens if token.kind == "pname"}
    undeclared = {prefix: own[prefix] for prefix in own if prefix in used - tree.prologue.declared}
    head = [token for token in tokens if token.start < form.start]
    place, inserted = insert(head, check_base(base), undeclared)
    prologue = text[:place] + inserted + text[place : form.start]
    if isinstance(form, AskForm):
        rest = text[form.start + len("ASK") :].lstrip()
        return Select(
            prologue, "SELECT (1 AS ?answer) ", ("answer",), "", rest, slice="\nLIMIT 1", limit=1
        )
    variables = _projected(tree, form)
    behind = form.projection[-1].end if form.projection else form.start
    return Select(prologue, text[form.start : behind], variables, "", text[behind:])


def _projected(tree: Query, form: SelectForm) -> tuple[str, ...]:
    """The variables of a projection."""
    if form.projection is None:
        raise tree.error(form, "the variables are not named", "name them instead of *")
    names = []
    for item in form.projection:
        if isinstance(item, Unknown):
            raise tree.refusal(item)
        names.append(item.variable.name if isinstance(item, AliasNode) else item.name)
    return tuple(names)
