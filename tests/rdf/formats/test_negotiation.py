"""What a client gets: a table of headers and parameters, and what holds for every header."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import NotAcceptable, UsageError
from construct_messages.rdf.formats import FORMATS, LOGS, VARIANTS, Format, LogType, content_type
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.negotiation import OFFERED, Plain, negotiate, prefer
from tests.support.growth import bounded_cpu

NQ, NT = "application/n-quads; ", "application/n-triples; "
TRIG, TTL = "application/trig; ", "text/turtle; "
JELLY, NDJSON = "application/x-jelly-rdf", "application/x-ld+ndjson"
XML, YAML = "application/rdfm+xml", "application/rdfm+yaml"
RDFM = "version=1.2; messages=rdfm"

# the header, and what is chosen: the media type of a log; or `(accept,)`, the header that goes on; or None for 406
ACCEPTS: dict[str | None, str | tuple[str | None] | None] = {
    # plain ones go on as they came
    None: (None,),
    "": ("",),
    "*/*": ("*/*",),
    "application/*": ("application/*",),
    "text/turtle": ("text/turtle",),
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": (
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    ),
    "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2": (
        "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
    ),
    "application/trig; version=1.2": ("application/trig; version=1.2",),
    "application/trig; version=1.1, text/turtle; version=1.2-basic": (
        "application/trig; version=1.1, text/turtle; version=1.2-basic",
    ),
    "text/turtle;q=0": ("text/turtle;q=0",),
    "application/sparql-results+json": ("application/sparql-results+json",),
    ",, ,": (",, ,",),
    # the old syntax and the new one
    "application/trig; messages=rdfm": TRIG + RDFM,
    "application/trig;messages=rdfm;version=1.2": TRIG + RDFM,
    "application/n-triples;version=1.2-messages": NT + "version=1.2-messages",
    "text/turtle; version=1.2-basic-messages": TTL + "version=1.2-basic-messages",
    "application/n-quads; version=1.1-messages": NQ + "version=1.1-messages",
    "application/trig; messages=rdfm; version=1.2-messages": TRIG + "version=1.2-messages",
    "application/trig; version=1.1-messages; messages=foo": TRIG + "version=1.1-messages",
    # any case, quotes, charset
    "Application/TriG; Messages=RDFM": TRIG + RDFM,
    'text/turtle; version="1.2-Messages"': TTL + "version=1.2-messages",
    r'text/turtle; version="1.2\-messages"': TTL + "version=1.2-messages",
    'text/turtle; charset="UTF-8"; messages=rdfm': TTL + RDFM,
    "\ttext/turtle ;\tmessages=rdfm ; ; ": TTL + RDFM,
    "text/turtle; q=0.5; messages=rdfm": TTL + RDFM,
    # a version restricts what rdfm may hold
    "application/trig; version=1.1; messages=rdfm": TRIG + "version=1.1; messages=rdfm",
    "application/trig; messages=rdfm; version=1.2-basic": TRIG + "version=1.2-basic; messages=rdfm",
    # wildcards
    "*/*;messages=rdfm": NQ + RDFM,
    "application/*; version=1.2-messages": NQ + "version=1.2-messages",
    "text/*; messages=rdfm": TTL + RDFM,
    "text/*;messages=rdfm, application/trig;messages=rdfm": TRIG + RDFM,
    "*/*;messages=rdfm, text/turtle;messages=rdfm;q=0.9": NQ + RDFM,
    "image/*;messages=rdfm": None,
    "application/json;messages=rdfm": None,
    # weights
    "application/trig;messages=rdfm, text/turtle;messages=rdfm": TRIG + RDFM,
    "application/trig;messages=rdfm;q=0.8, text/turtle;messages=rdfm;q=0.9": TTL + RDFM,
    "application/trig;messages=rdfm;q=0.500, text/turtle;messages=rdfm;q=0.501": TTL + RDFM,
    "application/trig;messages=rdfm;q=0.9, text/turtle;version=1.2-messages": TTL
    + "version=1.2-messages",
    "application/trig;messages=rdfm;q=0": None,
    "application/trig;messages=rdfm;q=0.000, text/turtle;messages=rdfm;q=0.001": TTL + RDFM,
    # against plain ones
    "application/trig;messages=rdfm, */*": TRIG + RDFM,
    "*/*, application/trig;messages=rdfm;q=1.000": TRIG + RDFM,
    "text/turtle, application/trig;messages=rdfm;q=0.9": ("text/turtle",),
    "application/trig;messages=rdfm;q=0.9 , text/turtle ,  */*;q=0.1": (
        "text/turtle ,  */*;q=0.1",
    ),
    "text/html, application/trig;messages=rdfm;q=0.9, */*;q=0.1": ("text/html, */*;q=0.1",),
    "text/turtle;q=0.8, application/trig;messages=rdfm;q=0.9": TRIG + RDFM,
    'text/turtle;x=",", application/trig;messages=rdfm;q=0.9': ('text/turtle;x=","',),
    # exclusions by the most specific range
    "*/*;messages=rdfm, application/n-quads;messages=rdfm;q=0": TRIG + RDFM,
    "*/*;messages=rdfm, application/*;messages=rdfm;q=0": TTL + RDFM,
    "*/*;messages=rdfm, application/n-quads;q=0": TRIG + RDFM,
    "application/n-quads;messages=rdfm, application/n-quads;q=0": NQ + RDFM,
    "*/*;q=0, text/turtle;messages=rdfm": TTL + RDFM,
    "*/*;messages=rdfm;q=0, text/turtle;messages=rdfm": TTL + RDFM,
    "application/trig;messages=rdfm;version=1.1, application/trig;messages=rdfm;q=0": (
        TRIG + "version=1.1; messages=rdfm"
    ),
    "application/trig;messages=rdfm, application/trig;messages=rdfm;version=1.2;q=0": None,
    "application/*;messages=rdfm, application/n-quads;version=1.2;q=0": TRIG + RDFM,
    "application/*;messages=rdfm, application/n-quads;version=1.1;q=0": NQ + RDFM,
    # unknown labels, and parameters that no log has, match nothing
    "application/trig; version=9-messages": None,
    "application/trig; messages=foo": None,
    "application/trig; messages=1.2-messages": None,
    "application/trig; messages=rdfm; version=9": None,
    "application/trig; messages=rdfm; version=9-messages": None,
    "application/trig; messages=rdfm; level=1": None,
    "application/trig; messages=rdfm; charset=latin1": None,
    "application/trig; messages=foo, text/turtle; messages=rdfm": TTL + RDFM,
    "application/trig; messages=foo, text/turtle;q=0.1": ("text/turtle;q=0.1",),
    "application/trig; messages=foo, text/turtle;q=0": None,
    # types that only logs have
    XML: XML,
    YAML: YAML,
    "application/rdfm+xml;q=0.9, text/turtle;q=0.9": XML,
    "application/rdfm+xml;q=0.8, text/turtle;q=0.9": ("text/turtle;q=0.9",),
    "application/rdfm+xml;version=1.1": XML,
    "application/rdfm+yaml; version=1.2-messages": YAML,
    "application/rdfm+xml, application/trig;messages=rdfm": XML,
    "application/rdfm+xml;q=0.5, application/trig;messages=rdfm": TRIG + RDFM,
    "application/rdfm+xml;q=0": None,
    "application/rdfm+xml;q=0, */*": ("*/*",),
    "application/rdfm+json": None,
    "application/rdfm+json, text/turtle;q=0.1": ("text/turtle;q=0.1",),
    # types that logs share with plain RDF, where they are all there is to answer with
    JELLY: JELLY,
    NDJSON: NDJSON,
    "application/x-ndjson": NDJSON,
    "Application/X-Jelly-RDF; charset=utf-8": JELLY,
    f"{JELLY}, text/turtle;q=0.9": JELLY,
    f"{JELLY}, */*;q=0.1": JELLY,
    f"text/turtle;q=0.4, {NDJSON};q=0.5": NDJSON,
    f"{JELLY}, {NDJSON}": JELLY,
    f"{NDJSON};q=0.8, {JELLY};q=0.7": NDJSON,
    # and where they are not: what a client of plain RDF sends goes on as it came
    f"{JELLY}, text/turtle": (f"{JELLY}, text/turtle",),
    f"{JELLY}, */*": (f"{JELLY}, */*",),
    f"{JELLY};q=0.8, text/turtle;q=0.9": (f"{JELLY};q=0.8, text/turtle;q=0.9",),
    "application/x-binary-rdf, text/x-nquads;q=0.9, application/n-quads;q=0.9, application/ld+json, application/trig, "
    f"application/x-trig, application/x-trigstar, application/x-ld+ndjson, {JELLY};q=0.8": (
        "application/x-binary-rdf, text/x-nquads;q=0.9, application/n-quads;q=0.9, application/ld+json, "
        f"application/trig, application/x-trig, application/x-trigstar, application/x-ld+ndjson, {JELLY};q=0.8",
    ),
    f"{JELLY};q=0": (f"{JELLY};q=0",),
    f"{JELLY};x=1": (f"{JELLY};x=1",),
    f"{JELLY};version=1.1": (
        f"{JELLY};version=1.1",
    ),  # no log in it keeps to that, and it asks for none
    # who takes no messages, or not these, means plain RDF
    f"{JELLY}, {JELLY};messages=rdfm;q=0": (JELLY,),
    f"{JELLY}, */*;messages=rdfm;q=0": (JELLY,),
    f"{NDJSON};messages=rdfm;q=0, application/x-ndjson": ("application/x-ndjson",),
    f"{JELLY}, text/*;messages=rdfm;q=0": JELLY,
    f"{JELLY}, */*;version=1.1-messages;q=0": JELLY,
    f"{JELLY}, {JELLY};messages=foo;q=0": JELLY,
    # beside ranges that ask
    f"{JELLY}, application/trig;messages=rdfm": JELLY,
    f"{JELLY};q=0.9, application/trig;messages=rdfm": TRIG + RDFM,
    f"{JELLY}, text/turtle, application/trig;messages=rdfm": TRIG + RDFM,
    f"{JELLY}, text/turtle, application/trig;messages=rdfm;q=0.9": (f"{JELLY}, text/turtle",),
    f"{JELLY};q=0.5, text/turtle;q=0.5, application/trig;messages=foo": (
        f"{JELLY};q=0.5, text/turtle;q=0.5",
    ),
    # with parameters they ask as the others do
    f"{JELLY};messages=rdfm": JELLY,
    f"{JELLY};version=1.2-messages, text/turtle": JELLY,
    f"{JELLY};messages=rdfm;q=0.9, text/turtle": ("text/turtle",),
    f"{NDJSON};version=1.2-basic-messages": NDJSON,
    f"{JELLY};version=1.1-messages": None,
    f"{JELLY};version=1.2-basic-messages, text/turtle;q=0.1": ("text/turtle;q=0.1",),
    f"{JELLY};messages=rdfm;version=1.1": None,
    f"{JELLY};messages=foo": None,
    f"{JELLY};messages=rdfm, {JELLY};version=1.2-messages;q=0": JELLY,
    f"{JELLY};messages=rdfm, {JELLY};messages=rdfm;version=1.2;q=0": None,
    f"*/*;messages=rdfm, {JELLY};q=0.5": NQ + RDFM,
    "*/*;messages=rdfm, application/n-quads;q=0, application/trig;q=0, application/n-triples;q=0, text/*;q=0": NDJSON,
    "application/*;version=1.1-messages, application/n-quads;q=0, application/trig;q=0, application/n-triples;q=0, "
    f"{NDJSON};q=0, {YAML};q=0": XML,
    # malformed ranges count for nothing, and go on
    "rubbish, application/trig; messages=rdfm": TRIG + RDFM,
    "text/turtle;q=2, application/trig; messages=rdfm;q=0.1": TRIG + RDFM,
    "text/turtle;q=0.1234, application/trig; messages=rdfm;q=0.1": TRIG + RDFM,
    "*/trig, */*a, te*/*, application/trig; messages=rdfm;q=0.1": TRIG + RDFM,
    "*;q=.2, application/trig; messages=rdfm;q=0.1, text/turtle;q=0.2": (
        "*;q=.2, text/turtle;q=0.2",
    ),
    "application/trig; messages = rdfm": ("application/trig; messages = rdfm",),
    "application/trig; messages=rdfm; messages=rdfm": (
        "application/trig; messages=rdfm; messages=rdfm",
    ),
    "application/trig; messages=rdfm; q=1; q=0": ("application/trig; messages=rdfm; q=1; q=0",),
    "application/trig; messages=rdfm; q=high": ("application/trig; messages=rdfm; q=high",),
    'application/trig; messages="rdfm': ('application/trig; messages="rdfm',),
    "application/trig messages=rdfm": ("application/trig messages=rdfm",),
    'application/trig; x=", text/turtle; messages=rdfm': (
        'application/trig; x=", text/turtle; messages=rdfm',
    ),
}


def chosen(accept: str | None, **given: str | bool) -> str | tuple[str | None]:
    choice = negotiate(accept, **given)  # type: ignore[arg-type]
    return content_type(*choice) if isinstance(choice, LogType) else (choice.accept,)


@pytest.mark.parametrize("accept", ACCEPTS, ids=str)
def test_accept(accept: str | None) -> None:
    expected = ACCEPTS[accept]
    if expected is not None:
        assert chosen(accept) == expected
        return
    with pytest.raises(NotAcceptable) as refused:
        negotiate(accept)
    assert refused.value.status == 406
    assert refused.value.offered == OFFERED
    hint = refused.value.hint or ""
    assert all(hint.count(format.media_type) == 1 for format in FORMATS)
    assert all(
        parameter in hint
        for parameter in ("messages=rdfm", "version=1.2-messages", "version=1.1-messages")
    )


def test_offered() -> None:
    assert sorted(OFFERED) == sorted(content_type(*log) for log in LOGS)
    for offered in OFFERED:
        assert chosen(offered) == offered
        assert content_type(*find_format(offered)) == offered  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, (None,)),
        ("text/turtle", ("text/turtle",)),
        (
            "application/trig;messages=rdfm, application/sparql-results+json;q=0.1",
            ("application/sparql-results+json;q=0.1",),
        ),
        ("application/trig;messages=rdfm, */*;q=0.1", ("*/*;q=0.1",)),
        ("application/trig;messages=rdfm", None),
        ("*/*;messages=rdfm", None),
        ("application/trig;messages=rdfm, */*;q=0", None),
        (XML, None),
        (
            f"{XML}, application/sparql-results+json;q=0.1",
            ("application/sparql-results+json;q=0.1",),
        ),
        # shared with plain RDF, or with results of other queries
        (JELLY, (JELLY,)),
        (f"{JELLY}, text/turtle;q=0.1", (f"{JELLY}, text/turtle;q=0.1",)),
        ("application/x-ndjson", ("application/x-ndjson",)),
        (f"{JELLY};messages=rdfm", None),
    ],
    ids=str,
)
def test_no_construct(accept: str | None, expected: tuple[str | None] | None) -> None:
    if expected is not None:
        assert chosen(accept, construct=False) == expected
        return
    with pytest.raises(NotAcceptable, match="only CONSTRUCT queries return messages") as refused:
        negotiate(accept, construct=False)
    assert refused.value.offered == ()


def test_no_construct_by_url() -> None:
    with pytest.raises(NotAcceptable, match="only CONSTRUCT"):
        negotiate("*/*", messages="rdfm", construct=False)
    with pytest.raises(NotAcceptable, match="only CONSTRUCT"):
        negotiate("*/*", format=XML, construct=False)
    for format in ("json", "jelly", JELLY):
        assert chosen("*/*", format=format, construct=False) == ("*/*",)


@pytest.mark.parametrize(
    ("format", "messages", "accept", "expected"),
    [
        (None, "rdfm", None, NQ + RDFM),
        (None, "1.2-Messages", "*/*", NQ + "version=1.2-messages"),
        ("ttl", "rdfm", "text/html", TTL + RDFM),
        ("TriG", "1.1-messages", None, TRIG + "version=1.1-messages"),
        ("application/n-triples", "rdfm", None, NT + RDFM),
        ("n-triples", "rdfm", "application/trig;messages=rdfm", NT + RDFM),
        ("application/trig;version=1.1", "rdfm", None, TRIG + "version=1.1; messages=rdfm"),
        ("trig; version=1.1-messages", "rdfm", None, TRIG + "version=1.1-messages"),
        ("application/trig; messages=rdfm", None, None, TRIG + RDFM),
        (
            "application/trig; version=1.2-messages",
            None,
            "text/html",
            TRIG + "version=1.2-messages",
        ),
        (None, "rdfm", "text/turtle", TTL + RDFM),
        (None, "rdfm", "text/turtle;q=0.4, application/trig;q=0.5, text/html", TRIG + RDFM),
        (None, "rdfm", "application/trig;q=0, */*", NQ + RDFM),
        (None, "1.2-messages", "text/turtle;messages=rdfm", TTL + "version=1.2-messages"),
        ("", "", "text/html", ("text/html",)),
        ("json", None, None, (None,)),
        ("application/ld json", None, "text/html", ("text/html",)),
        ("nt", None, "text/html", ("text/html",)),
        ("text/turtle; version=1.2", None, None, (None,)),
        # formats that delimit by themselves: a media type counts as in a header of its own, a name may be plain
        (JELLY, None, "text/turtle", JELLY),
        ("application/x-ndjson", None, None, NDJSON),
        (f"{JELLY}; version=1.2-messages", None, None, JELLY),
        (XML, None, None, XML),
        ("jelly", None, "text/turtle", ("text/turtle",)),
        ("xml", None, "text/turtle", ("text/turtle",)),
        ("jelly", "rdfm", "text/turtle", JELLY),
        ("xml", "1.1-messages", None, XML),
        (JELLY, "1.2-messages", None, JELLY),
        (None, "rdfm", JELLY, JELLY),
        (None, "1.2-messages", f"{NDJSON}, text/turtle;q=0.9", NDJSON),
        (None, "1.1-messages", f"{JELLY}, text/turtle;q=0.9", TTL + "version=1.1-messages"),
        ("jelly", None, "*/*;messages=rdfm", JELLY),
        ("nt", None, f"{XML};version=1.1", NT + "version=1.1; messages=rdfm"),
        ("nt", None, JELLY, (JELLY,)),
        ("json", None, JELLY, (JELLY,)),
        # a format by name of a log that the header asks for
        ("nt", None, "*/*;messages=rdfm", NT + RDFM),
        ("nt", None, "text/html, */*;messages=rdfm;q=0.5", ("text/html",)),
        # another one is the source's, as if there were no header
        ("json", None, "*/*;messages=rdfm", (None,)),
        ("json", None, "*/*;messages=rdfm, text/html;q=0.1", ("text/html;q=0.1",)),
    ],
    ids=str,
)
def test_parameters(
    format: str | None, messages: str | None, accept: str | None, expected: object
) -> None:
    assert chosen(accept, format=format, messages=messages) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("format", "messages", "hint"),
    [
        (None, "foo", "rdfm, 1.2-messages, 1.2-basic-messages, 1.1-messages"),
        (None, "1.2", "1.2-messages"),
        ("json", "rdfm", "text/turtle"),
        ("application/json; messages=rdfm", None, "text/turtle"),
        ("application/trig; messages=foo", None, "version=1.2-messages"),
        ("application/trig; version=9-messages", "rdfm", "version=1.2-messages"),
        ("application/trig; version=9", "rdfm", "1.2-basic"),
        ("jelly", "1.1-messages", "leave the version out"),
        (f"{JELLY}; version=1.2-basic-messages", None, "leave the version out"),
        (f"{XML}; level=1", None, "messages=rdfm"),
    ],
    ids=str,
)
def test_unknown_parameters(format: str | None, messages: str | None, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        negotiate(None, format=format, messages=messages)
    assert refused.value.status == 400
    assert hint in (refused.value.hint or "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        *'",;/=* aq',
        "a/b,",
        "a/b;",
        "*/*;messages=rdfm,",
        ";q=1",
        '"\\',
        '"",',
        "text/turtle;q=0,",
        "a/b;messages=a",
        "application/x-jelly-rdf,",
        "*/*;messages=rdfm;q=0,",
        ", ",
    ],
    ids=repr,
)
def test_linear_time(part: str) -> None:
    header = part * ((1 << 16) // len(part))
    with bounded_cpu():
        for accept in (
            header,
            f"application/trig;messages=rdfm,{header}",
            f"application/trig;messages={header}",
        ):
            with suppress(NotAcceptable):
                negotiate(accept)
            with suppress(NotAcceptable):
                prefer(accept, ["text/turtle", "application/trig"])


# --- what holds for every header ---

TYPES = st.sampled_from(
    [
        *("*/*", "application/*", "text/*", "text/html", "image/*"),
        *(media_type for format in FORMATS for media_type in format.media_types),
    ]
)
PARAMETERS = st.sampled_from(
    [
        *(
            "",
            ";messages=rdfm",
            ";version=1.2-messages",
            ";version=1.1-messages",
            ';messages="rdfm";version=1.1',
        ),
        *(
            ";version=1.2",
            ";messages=foo",
            ";version=9-messages",
            ";charset=utf-8;messages=rdfm",
            ";x=1",
            "; ; ",
        ),
    ]
)
WEIGHTS = st.sampled_from(
    ["", ";q=0", ";q=1", ";q=0.5", ";q=0.25", ";q=1.000", ";Q=0.002", ";q=0.000"]
)
RANGES = st.builds("{}{}{}".format, TYPES, PARAMETERS, WEIGHTS)
HEADERS = st.lists(RANGES, max_size=5).map(", ".join)
RUBBISH = st.text(alphabet='text/urlq=*01."\\;, -\x00é') | st.text()


def outcome(accept: str | None) -> LogType | Plain | None:
    try:
        return negotiate(accept)
    except NotAcceptable:
        return None


@given(HEADERS | RUBBISH | st.lists(RANGES | RUBBISH).map(",".join), st.booleans())
def test_any_header(accept: str, construct: bool) -> None:
    try:
        choice = negotiate(accept, construct=construct)
    except NotAcceptable:
        return
    if isinstance(choice, Plain):
        # a piece of what came, in which nothing asks for messages any more
        assert negotiate(choice.accept, construct=False) == choice
        parts = [part.strip() for part in (choice.accept or "").split(",")]
        assert all(part in accept for part in parts)
    else:
        assert construct
        assert content_type(*choice) in OFFERED


@given(st.text(), st.text(), HEADERS)
def test_any_parameters(format: str, messages: str, accept: str) -> None:
    with suppress(NotAcceptable, UsageError):
        negotiate(accept, format=format, messages=messages)


@given(HEADERS)
def test_what_weighs_nothing_is_not_chosen(accept: str) -> None:
    choice = outcome(accept)
    if isinstance(choice, LogType):
        refused = ", ".join(
            f"{choice.format.media_type};messages={syntax.label};version={syntax.version};q=0"
            for syntax in (VARIANTS if choice.format.own else [choice.syntax])
        )
        without = outcome(f"{refused}, {accept}")
        assert without != choice


@given(HEADERS)
def test_a_last_resort_changes_no_choice_of_messages(accept: str) -> None:
    choice = outcome(accept)
    if isinstance(choice, LogType):
        assert outcome(f"{accept}, */*;q=0.001") == choice
        assert outcome(f"text/html;q=0.001,{accept}") == choice


@given(
    st.sampled_from(FORMATS),
    st.sampled_from([";messages=rdfm", ";version=1.2-messages", ";version=1.1;messages=rdfm"]),
    st.lists(
        st.builds(
            "{}{}{}".format, TYPES, PARAMETERS, st.sampled_from([";q=0", ";q=0.25", ";q=0.999"])
        ),
        max_size=5,
    ),
)
def test_the_log_that_weighs_most_is_chosen(
    format: Format, parameters: str, others: list[str]
) -> None:
    wanted = f"{format.media_type}{parameters}"
    asked = find_format(f"ttl{parameters}")[1]
    assert asked is not None
    if format.can(asked):
        assert outcome(", ".join([wanted, *others])) == LogType(format, format.syntax(asked))
    else:
        assert outcome(wanted) is None


@given(HEADERS)
def test_white_space_and_case_say_nothing(accept: str) -> None:
    choice, other = (
        outcome(accept),
        outcome(accept.upper().replace(";", " ;\t").replace(",", " ,  ")),
    )
    if isinstance(choice, Plain):
        assert isinstance(other, Plain)
    else:
        assert other == choice
