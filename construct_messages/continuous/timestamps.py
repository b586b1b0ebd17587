"""C-SPARQL's function `timestamp(?s, ?p, ?o)`: the last time of a triple, in milliseconds since 1970 in UTC.

It is found in the messages of the windows, by their context triples; if no message contains the triple, it has no
value. C-SPARQL has no other functions of its own.
"""

from __future__ import annotations

from typing import Final

import pyoxigraph as ox

from construct_messages.query.continuous.values import TIMESTAMP
from construct_messages.rdf.terms import XSD, OxTerm
from construct_messages.rdf.terms.date_times import microseconds_of_date_time
from construct_messages.streams.element import GENERATED_AT

FUNCTION: Final = ox.NamedNode(TIMESTAMP)

_GENERATED_AT: Final = ox.NamedNode(GENERATED_AT)
_LONG: Final = ox.NamedNode(f"{XSD}long")


def timestamp(store: ox.Store, *triple: OxTerm) -> ox.Literal | None:
    """Returns the time of the last message that contains a triple.

    Args:
        store: the dataset of a firing.
        triple: its subject, predicate and object.

    >>> store = ox.Store()
    >>> document = '''<urn:s/1> { <urn:a> <urn:p> 1 . <urn:s/1> <http://www.w3.org/ns/prov#generatedAtTime>
    ...     "1970-01-01T00:00:02Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> }'''
    >>> store.load(document, format=ox.RdfFormat.TRIG)
    >>> timestamp(store, ox.NamedNode("urn:a"), ox.NamedNode("urn:p"), ox.Literal(1)).value
    '2000'
    """
    if len(triple) != 3:
        return None
    subject, predicate, object = triple
    if isinstance(subject, ox.Literal) or not isinstance(predicate, ox.NamedNode):
        return None
    times = [
        microseconds_of_date_time(context.object.value)
        for quad in store.quads_for_pattern(subject, predicate, object, None)
        if isinstance(message := quad.graph_name, ox.NamedNode)
        for context in store.quads_for_pattern(message, _GENERATED_AT, None, message)
        if isinstance(context.object, ox.Literal)
    ]
    last = max((time for time in times if time is not None), default=None)
    return None if last is None else ox.Literal(str(last // 1000), datatype=_LONG)
