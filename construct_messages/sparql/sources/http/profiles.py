"""Profiles: the properties of SPARQL engines, as data. Other code depends on a profile, never on an engine's name.

A profile defines how to query an engine (SPARQL 1.1 Protocol, section 2.1) and the guarantees of its answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from construct_messages.errors import UsageError
from construct_messages.query.select import BY_TEXT, BY_TEXT_ONLY


@dataclass(frozen=True, slots=True)
class Profile:
    """The properties of an engine."""

    # the results formats to request, best first: of `json`, `xml`, `tsv`. TSV only for engines that write it as the
    # recommendation requires
    results: tuple[str, ...] = ("json", "xml")
    # whether its TSV shows of each value whether it is a text or a number, and keeps the form of numbers
    tsv_is_exact: bool = True
    # prefixes that queries may use without declaring them
    prefixes: Mapping[str, str] = field(default_factory=dict)
    stable_blank_nodes: bool = False  # a blank node label means the same node in every response
    # pages have their order in a sub-select, and LIMIT and OFFSET around it: the engine refuses ORDER BY with a large
    # OFFSET, or orders by it differently
    orders_in_sub_select: bool = False
    # the sort keys of a variable in pages; see `query/select.py`
    page_keys: tuple[str, ...] = BY_TEXT_ONLY
    # IRIs have one order as texts, in which FILTER and ORDER BY agree: pages may follow each other by a key
    orders_iris: bool = False
    # the number of solutions that a page may have at most; None: there is no known limit
    page_cap: int | None = None
    # the number of solutions that the engine returns at most without announcing it; None: there is none, or it is a
    # setting of the installation
    row_cap: int | None = None
    timeouts: tuple[str, ...] = ()  # texts in the engine's errors for queries that took too long
    # beginnings of function IRIs by which a query makes the engine fetch from the web, read files or run code; see
    # `check_functions`
    unsafe_functions: tuple[str, ...] = ()
    # functions with such IRIs that are harmless, in lower case
    safe_functions: frozenset[str] = frozenset()

    @classmethod
    def named(cls, name: str) -> Profile:
        """Returns the profile with this name.

        >>> Profile.named("oxigraph").results
        ('tsv', 'json')
        """
        try:
            return PROFILES[name]
        except KeyError:
            raise UsageError(
                f"there is no endpoint profile {name!r}",
                hint=f"choose one of {', '.join(PROFILES)}",
            ) from None


_COMMON: Final = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
}

# https://dbpedia.org/sparql?help=nsdecl
_DBPEDIA: Final = _COMMON | {
    "dbo": "http://dbpedia.org/ontology/",
    "dbp": "http://dbpedia.org/property/",
    "dbr": "http://dbpedia.org/resource/",
    "dbc": "http://dbpedia.org/resource/Category:",
    "dbpedia": "http://dbpedia.org/resource/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dct": "http://purl.org/dc/terms/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "georss": "http://www.georss.org/georss/",
    "prov": "http://www.w3.org/ns/prov#",
    "schema": "http://schema.org/",
    "void": "http://rdfs.org/ns/void#",
    "yago": "http://dbpedia.org/class/yago/",
}

# https://www.mediawiki.org/wiki/Wikibase/Indexing/RDF_Dump_Format#Full_list_of_prefixes
_WIKIDATA: Final = _COMMON | {
    "bd": "http://www.bigdata.com/rdf#",
    "hint": "http://www.bigdata.com/queryHints#",
    "p": "http://www.wikidata.org/prop/",
    "pq": "http://www.wikidata.org/prop/qualifier/",
    "pqv": "http://www.wikidata.org/prop/qualifier/value/",
    "pr": "http://www.wikidata.org/prop/reference/",
    "prov": "http://www.w3.org/ns/prov#",
    "ps": "http://www.wikidata.org/prop/statement/",
    "psv": "http://www.wikidata.org/prop/statement/value/",
    "schema": "http://schema.org/",
    "wd": "http://www.wikidata.org/entity/",
    "wdt": "http://www.wikidata.org/prop/direct/",
    "wikibase": "http://wikiba.se/ontology#",
}

# Virtuoso calls its built-in functions by bif:, stored procedures by sql: (Virtuoso documentation, section "Calling SQL
# from SPARQL"). Of some hundreds, these are commonly used in queries and read only their arguments.
_VIRTUOSO: Final = ("bif:", "sql:")
_READ_ONLY: Final = """
contains search_excerpt lower upper lcase ucase initcap length left right substring subseq
strstr strcasestr strcontains strchr strrchr locate replace regexp_match regexp_like
regexp_substr regexp_replace concat concatenate trim ltrim rtrim repeat space sprintf
sprintf_inverse split_and_decode abs sign ceiling floor round mod power exp log log10 sqrt pi
sin cos tan asin acos atan atan2 degrees radians rnd atoi atof dateadd datediff datestring
stringdate stringtime now curdate curtime curdatetime year quarter month week dayofyear
dayofmonth dayofweek dayname monthname hour minute second timezone dt_set_tz st_intersects
st_within st_contains st_may_intersect st_point st_distance st_x st_y st_z st_srid st_astext
st_geomfromtext st_get_bounding_box haversine_deg_km isnull isnotnull coalesce either equ neq
iszero md5 uuid
"""
_VIRTUOSO_SAFE: Final = frozenset(f"bif:{name}" for name in _READ_ONLY.split())

PROFILES: Final[Mapping[str, Profile]] = {
    # for any engine: Virtuoso, or Jena, whose java: loads classes by name
    "generic": Profile(unsafe_functions=(*_VIRTUOSO, "java:"), safe_functions=_VIRTUOSO_SAFE),
    # its labels are those of the store, assigned when the nodes were loaded; its order by value is inconsistent for
    # terms of several types, for which it may abort
    "oxigraph": Profile(
        results=("tsv", "json"), stable_blank_nodes=True, page_keys=BY_TEXT, orders_iris=True
    ),
    # its XML can hold characters that XML does not allow, its TSV is CSV with tabs; nodeID:// labels are the store's
    # own
    "virtuoso": Profile(
        results=("json",),
        tsv_is_exact=False,
        prefixes=_DBPEDIA,
        stable_blank_nodes=True,
        # it refuses ORDER BY with OFFSET and LIMIT of more than 10,000, but not in a sub-select, where it orders
        # unbound values first instead of last; the order of IRIs, literals and blank nodes by value depends on its plan
        orders_in_sub_select=True,
        page_keys=BY_TEXT,
        orders_iris=True,
        page_cap=10_000,
        timeouts=("S1T00",),
        unsafe_functions=_VIRTUOSO,
        safe_functions=_VIRTUOSO_SAFE,
    ),
    # it compares decimals with NaN by raising an error
    "rdflib": Profile(orders_iris=True),
    # its order by value is none for terms of several types: it answers with status 200 and nothing; its TSV has texts
    # without quotation marks, and 1.5 for 1.50
    "rdf4j": Profile(
        tsv_is_exact=False, orders_iris=True, timeouts=("Query evaluation took too long",)
    ),
    "graphdb": Profile(tsv_is_exact=False, timeouts=("Query evaluation took too long",)),
    # its order by value is none for terms of several types, and it may repeat solutions; its TSV has texts without
    # quotation marks, also those that look like numbers
    "blazegraph": Profile(
        tsv_is_exact=False,
        prefixes=_WIKIDATA,
        orders_iris=True,
        timeouts=("TimeoutException", "QueryTimeout"),
    ),
    "fuseki": Profile(orders_iris=True, timeouts=("Query timed out",), unsafe_functions=("java:",)),
    "stardog": Profile(timeouts=("exceeded query timeout",)),
    # it cannot sort terms of several types by value; it writes strings into TSV without quotation marks
    "ontop": Profile(results=("json",), tsv_is_exact=False),
    # its status 429 means that a query took too long, not that there were too many; old versions end JSON after a
    # million solutions (MAX_NOF_ROWS_IN_RESULT)
    "qlever": Profile(
        results=("json",), row_cap=1_000_000, page_cap=1_000_000, timeouts=("timed out", "timeout")
    ),
}
"""The profiles by name; `generic` assumes nothing beyond the recommendations."""

_ENGINES: Final[Mapping[str, str]] = {
    "decimal.InvalidOperation": "rdflib",
    "com.bigdata.": "blazegraph",
    "SPARQL-QUERY: queryStr=": "blazegraph",
    "it.unibz.inf.ontop.": "ontop",
    "com.complexible.stardog.": "stardog",
    "An error has occurred while exporting the query": "qlever",
    "GraphDB": "graphdb",
    "com.ontotext.": "graphdb",
    "org.eclipse.rdf4j.": "rdf4j",
    "Query evaluation took too long": "rdf4j",
    "Apache Jena Fuseki": "fuseki",
    "Virtuoso": "virtuoso",
}

_SORT_FAILURES: Final = (
    "decimal.InvalidOperation",  # rdflib
    "Comparison method violates its general contract",  # Java, such as Blazegraph
    "Was expecting a unique and known DB term type",  # Ontop
)


def fitting_profile(text: str) -> str | None:
    """Returns the name of the profile of the engine that an error or the header `Server` shows, or None.

    >>> fitting_profile("com.bigdata.bop.engine.QueryTimeoutException: Query deadline is expired.")
    'blazegraph'
    """
    return next((name for trace, name in _ENGINES.items() if trace in text), None)


def cannot_sort(text: str) -> bool:
    """Returns whether an engine's error means that it cannot compare the values of ORDER BY."""
    return any(failure in text for failure in _SORT_FAILURES)
