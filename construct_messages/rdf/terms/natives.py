"""Converts lexical forms of literals to values of Python, and back. `values.py` does the same for terms.

XML Schema 1.1 Part 2, section 3 (datatypes); RDF 1.2 Concepts, section 5 (which of them RDF has).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from construct_messages.rdf.terms.grammar import XSD

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date, datetime, time, timedelta
    from decimal import Decimal

# datetime and decimal are imported where they are used: a query over a small file does not need them

_ZONE: Final = r"(?:Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]+)?"
FORMS: Final = {
    "integer": r"[+-]?[0-9]+",
    "decimal": r"[+-]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)",
    "double": r"[+-]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN",
    "dateTime": f"{_DATE}T{_CLOCK}{_ZONE}",
    "date": _DATE,
    "time": f"{_CLOCK}{_ZONE}",
    "duration": r"(-?)P(?:([0-9]+)D)?(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:[.]([0-9]+))?S)?)?",
}
INTEGERS: Final = {  # the least and the greatest of each type; None: no limit
    "integer": (None, None),
    "long": (-(1 << 63), (1 << 63) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "byte": (-128, 127),
    "unsignedLong": (0, (1 << 64) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedByte": (0, 255),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
}
BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


def native(lexical: str, datatype: str | None) -> Any:
    """Returns the value of a lexical form. `datatype`: its IRI, without brackets; None: a string. Returns a bool, int,
    Decimal, float, datetime, date, time, timedelta or bytes; a `str` for strings, and for datatypes without a type of
    Python, such as `xsd:gYear`, dates with a time zone, and all datatypes outside of XML Schema.

    >>> native("1.50", f"{XSD}decimal"), native("3", f"{XSD}byte"), native("P1DT1H", f"{XSD}dayTimeDuration")
    (Decimal('1.50'), 3, datetime.timedelta(days=1, seconds=3600))
    """
    if datatype is None or not datatype.startswith(XSD):
        return lexical
    kind = datatype[len(XSD) :]
    if kind in INTEGERS:
        return _integer(lexical.strip(_SPACE), *INTEGERS[kind])
    read = _READERS.get(kind)
    return lexical if read is None else read(lexical.strip(_SPACE))


def integer_bounds(datatype: str | None) -> tuple[int | None, int | None]:
    """Returns the least and the greatest integer of a datatype; None: no limit, or not a datatype of integers.

    >>> integer_bounds(f"{XSD}byte"), integer_bounds(f"{XSD}decimal")
    ((-128, 127), (None, None))
    """
    return INTEGERS.get((datatype or "").removeprefix(XSD), (None, None))


def form_of(value: object) -> tuple[str, str] | None:
    """Returns the lexical form of a value of Python and the IRI of its datatype; None if it has none.

    >>> form_of(True), form_of(float("-inf"))[0]
    (('true', 'http://www.w3.org/2001/XMLSchema#boolean'), '-INF')
    """
    form = _form_of(value)
    return None if form is None else (form[0], XSD + form[1])


def _form_of(value: object) -> tuple[str, str] | None:
    if isinstance(value, bool):  # which is an int
        return str(value).lower(), "boolean"
    if isinstance(value, int):
        return str(value), "integer"
    if isinstance(value, float):
        form = repr(float(value))
        return {"nan": "NaN", "inf": "INF", "-inf": "-INF"}.get(form, form), "double"
    if isinstance(value, bytes):
        from base64 import b64encode

        return b64encode(value).decode(), "base64Binary"
    from datetime import date, datetime, time, timedelta
    from decimal import Decimal

    if isinstance(value, Decimal):
        return (format(value, "f"), "decimal") if value.is_finite() else None
    if isinstance(value, timedelta):
        return _duration_form(value), "dayTimeDuration"
    for kind, name in ((datetime, "dateTime"), (date, "date"), (time, "time")):
        if isinstance(value, kind):  # a datetime is a date
            return value.isoformat(), name
    return None


def _duration_form(value: timedelta) -> str:
    """The canonical form (XML Schema, appendix E.2, dayTimeDurationCanonicalMap)."""
    size = abs(value)
    minutes, seconds = divmod(size.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    exact = f"{seconds}.{size.microseconds:06}".rstrip("0").rstrip(".")
    clock = f"{hours}H" * bool(hours) + f"{minutes}M" * bool(minutes) + f"{exact}S" * (exact != "0")
    days = f"{size.days}D" * bool(size.days)
    if not days and not clock:
        return "PT0S"
    return f"{'-' * (size != value)}P{days}{'T' * bool(clock)}{clock}"


_SPACE: Final = " \t\n\r"  # whitespace collapses (XML Schema, section 4.3.6)


def _matched(kind: str, text: str) -> str:
    if re.fullmatch(FORMS[kind], text) is None:
        raise ValueError(f"no xsd:{kind}")
    return text


def _integer(text: str, least: int | None, most: int | None) -> int:
    value = int(_matched("integer", text))
    if (least is not None and value < least) or (most is not None and value > most):
        raise ValueError(f"not between {least} and {most}")
    return value


def _boolean(text: str) -> bool:
    try:
        return BOOLEANS[text]
    except KeyError:
        raise ValueError("no xsd:boolean") from None


def _decimal(text: str) -> Decimal:
    from decimal import Decimal

    return Decimal(_matched("decimal", text))


def _double(text: str) -> float:
    return float(_matched("double", text))


def _datetime(text: str) -> datetime:
    from datetime import datetime, timedelta

    _matched("dateTime", text)
    if text[11:].startswith("24:00:00"):  # the first instant of the next day
        return datetime.fromisoformat(f"{text[:11]}00{text[13:]}") + timedelta(days=1)
    return datetime.fromisoformat(text)


def _date(text: str) -> date | str:
    from datetime import date

    if re.fullmatch(_DATE + _ZONE, text) and len(text) > 10:
        date.fromisoformat(text[:10])
        return text  # which no date of Python is
    return date.fromisoformat(_matched("date", text))


def _time(text: str) -> time:
    from datetime import time

    _matched("time", text)
    return time.fromisoformat(f"00{text[2:]}" if text.startswith("24:00:00") else text)


def _duration(text: str) -> timedelta:
    from datetime import timedelta

    match = re.fullmatch(FORMS["duration"], text)
    if match is None or text.endswith(("P", "T")):
        raise ValueError("no xsd:dayTimeDuration")
    sign, days, hours, minutes, seconds, fraction = match.groups()
    value = timedelta(
        days=int(days or 0),
        hours=int(hours or 0),
        minutes=int(minutes or 0),
        seconds=int(seconds or 0),
        microseconds=int((fraction or "")[:6].ljust(6, "0")),
    )
    return -value if sign else value


def _base64(text: str) -> bytes:
    from base64 import b64decode

    return b64decode("".join(text.split(" ")), validate=True)


def _hex(text: str) -> bytes:
    if re.search(r"\s", text):
        raise ValueError("no xsd:hexBinary")
    return bytes.fromhex(text)


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "boolean": _boolean,
    "decimal": _decimal,
    "double": _double,
    "float": _double,
    "dateTime": _datetime,
    "dateTimeStamp": _datetime,
    "date": _date,
    "time": _time,
    "dayTimeDuration": _duration,
    "base64Binary": _base64,
    "hexBinary": _hex,
}
