"""Failures of Kafka's library: distinguishes temporary ones, and converts them to errors of this package. No I/O."""

from __future__ import annotations

import re
from typing import Final

from confluent_kafka import KafkaError

from construct_messages.rdf.errors import SourceError, SourceTimeout, shown

_STATE: Final = re.compile(
    r" \(after \d+ms in state \w+(, \d+ identical error\(s\) suppressed)?\)|/bootstrap"
)
_REFUSED: Final = {
    KafkaError._AUTHENTICATION: "check sasl.mechanism, sasl.username and sasl.password",
    KafkaError.SASL_AUTHENTICATION_FAILED: "check sasl.mechanism, sasl.username and sasl.password",
    KafkaError._SSL: "name the certificate of the cluster's authority: ssl.ca.location=FILE",
}
"""Permanent failures, although the library continues to retry, with their hints."""

_HINTS: Final = {
    **_REFUSED,
    KafkaError.UNKNOWN_TOPIC_OR_PART: "create the topic, for example by publish --create",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "allow the user to Read or Write the topic, and to Describe it",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "allow the user to Read the group, or leave out group.id",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "allow the user to Write the transactional id and to Read the "
    "group of its name, or publish without a state and a key",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "allow the user to do so in the cluster",
    KafkaError._FENCED: "another publisher with the same key, state or transactional.id took over; run one at a time",
    KafkaError.UNKNOWN_MEMBER_ID: "others share the group; name another group.id",
}
_UNREACHABLE: Final = (
    "check that a broker runs there, and that security.protocol is that of its port"
)
_UNREACHABLE_CODES: Final = frozenset(
    (
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
    )
)
_PASSING: Final = frozenset(
    (
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    )
)
"""Errors of a broker that starts or changes; the library does not mark all of them as `retriable`."""

_FINAL: Final = _REFUSED.keys() | {
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError._FATAL,
    KafkaError._FENCED,
    KafkaError._INVALID_ARG,
    KafkaError._LOG_TRUNCATION,
    KafkaError._NOT_IMPLEMENTED,
    KafkaError._PURGE_INFLIGHT,
    KafkaError._PURGE_QUEUE,
    KafkaError._STATE,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNSUPPORTED_FEATURE,
}
"""Permanent failures of the library itself. All others can be caused by an unreachable broker."""

_TIMES: Final = frozenset((KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE))


def passes(error: KafkaError) -> bool:
    """Returns whether a failure may be temporary.

    >>> passes(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)), passes(KafkaError(KafkaError._SSL))
    (True, False)
    """
    code = error.code()
    if code < 0:  # of the library itself
        return code not in _FINAL
    return error.retriable() or error.txn_requires_abort() or code in _PASSING


def is_refusal(error: KafkaError) -> bool:
    """Returns whether it is a failure of credentials or of the certificate, after which the library continues to retry.

    >>> is_refusal(KafkaError(KafkaError._AUTHENTICATION))
    True
    """
    return error.code() in _REFUSED


def failure_of(error: KafkaError, url: str, cause: KafkaError | None) -> SourceError:
    """Returns a failure of the library as an error of this package.

    Args:
        error: the failure.
        url: the URL of the topic.
        cause: the last reason of the library why no broker could be reached; None: unknown.
    """
    code = error.code()
    if code in _UNREACHABLE_CODES:
        kind = SourceTimeout if code in _TIMES else SourceError
        return kind(
            f"{url} cannot be reached: {_message(cause if cause is not None else error)}",
            hint=_UNREACHABLE,
            transient=True,
        )
    return SourceError(
        f"{url}: {_message(error)} ({error.name()})",
        hint=_HINTS.get(code),
        transient=error.retriable(),
    )


def _message(error: KafkaError) -> str:
    """Returns the text of a failure, without the times and states of connections."""
    return shown(_STATE.sub("", error.str()).removeprefix("Broker: "))
