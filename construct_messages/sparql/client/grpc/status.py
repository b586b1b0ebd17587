"""Statuses of gRPC, and the equivalent statuses of HTTP: errors have the same status in each protocol.

https://grpc.github.io/grpc/core/md_doc_statuscodes.html
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class GrpcStatus(IntEnum):
    """The status of a call."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


_OF_HTTP: Final[Mapping[int, GrpcStatus]] = {
    401: GrpcStatus.UNAUTHENTICATED,
    403: GrpcStatus.PERMISSION_DENIED,
    404: GrpcStatus.NOT_FOUND,
    408: GrpcStatus.DEADLINE_EXCEEDED,
    409: GrpcStatus.ALREADY_EXISTS,
    410: GrpcStatus.OUT_OF_RANGE,
    413: GrpcStatus.RESOURCE_EXHAUSTED,
    429: GrpcStatus.RESOURCE_EXHAUSTED,
    501: GrpcStatus.UNIMPLEMENTED,
    502: GrpcStatus.UNAVAILABLE,
    503: GrpcStatus.UNAVAILABLE,
    504: GrpcStatus.DEADLINE_EXCEEDED,
    507: GrpcStatus.RESOURCE_EXHAUSTED,
}
_TO_HTTP: Final[Mapping[GrpcStatus, int]] = {
    GrpcStatus.CANCELLED: 503,
    GrpcStatus.INVALID_ARGUMENT: 400,
    GrpcStatus.DEADLINE_EXCEEDED: 504,
    GrpcStatus.NOT_FOUND: 404,
    GrpcStatus.ALREADY_EXISTS: 409,
    GrpcStatus.PERMISSION_DENIED: 403,
    GrpcStatus.RESOURCE_EXHAUSTED: 413,
    GrpcStatus.FAILED_PRECONDITION: 400,
    GrpcStatus.ABORTED: 503,
    GrpcStatus.OUT_OF_RANGE: 410,
    GrpcStatus.UNIMPLEMENTED: 501,
    GrpcStatus.UNAVAILABLE: 503,
    GrpcStatus.UNAUTHENTICATED: 401,
}


def status_of(http_status: int) -> GrpcStatus:
    """Returns the status of a call for an error with this status of HTTP.

    >>> status_of(404).name, status_of(422).name, status_of(500).name
    ('NOT_FOUND', 'INVALID_ARGUMENT', 'INTERNAL')
    """
    known = _OF_HTTP.get(http_status)
    if known is not None:
        return known
    return GrpcStatus.INVALID_ARGUMENT if 400 <= http_status < 500 else GrpcStatus.INTERNAL


def http_status_of(status: GrpcStatus) -> int:
    """Returns the status of HTTP for the status of a failed call.

    >>> http_status_of(GrpcStatus.OUT_OF_RANGE), http_status_of(GrpcStatus.DATA_LOSS)
    (410, 500)
    """
    return _TO_HTTP.get(status, 500)


PASSING: Final = frozenset(
    (
        GrpcStatus.CANCELLED,
        GrpcStatus.DEADLINE_EXCEEDED,
        GrpcStatus.ABORTED,
        GrpcStatus.INTERNAL,
        GrpcStatus.UNAVAILABLE,
    )
)
"""Statuses of temporary failures. CANCELLED is one, because this package does not cancel the calls that it retries."""
