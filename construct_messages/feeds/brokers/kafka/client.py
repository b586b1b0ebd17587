"""A topic of Kafka: its URL, the settings of the library, requests for metadata, and the offsets of groups.

This module does not read or write records. docs/decisions/086-kafka-client.md
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Container, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar
from urllib.parse import unquote, urlsplit

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from construct_messages.errors import SourceError, SourceTimeout, UsageError, shown
from construct_messages.feeds.connections import check_port
from construct_messages.feeds.table import address_of
from construct_messages.feeds.transport import Settings, option_values

# --- failures -------------------------------------------------------------------------------------
# Failures of Kafka's library: distinguishes temporary ones, and converts them to errors of this package. No I/O.

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


def failure_of(error: KafkaError, url: str, cause: KafkaError | None) -> SourceError:
    """Returns a failure of the library as an error of this package; `cause` says why no broker could be reached, if
    that is known.
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


# --- client ---------------------------------------------------------------------------------------

P = ParamSpec("P")
T = TypeVar("T")

_LOGGER: Final = logging.getLogger(__name__)
_LOGGER.addHandler(logging.NullHandler())

PARTITION: Final = "partition"
"""An option of this package: the number of the partition to write to, or `key`."""

GROUP: Final = "group.id"
TRANSACTION: Final = "transactional.id"

_OWN: Final = (PARTITION, GROUP, TRANSACTION)
_FIXED: Final = frozenset(
    (
        "acks",
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "metadata.broker.list",
        "request.required.acks",
    )
)
"""Properties of the library on which the guarantees depend."""

_PORT: Final = 9092
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_ATTEMPT_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.2

_NO_CONFIG: Final[Mapping[str, object]] = MappingProxyType({})


class TopicUrl(NamedTuple):
    """The URL of a topic."""

    brokers: str  # hosts and ports with commas between them
    topic: str

    @classmethod
    def parse(cls, url: str) -> TopicUrl:
        """Reads a URL; raises `UsageError` if it is not that of a topic.

        >>> TopicUrl.parse("kafka://a.example.org,b.example.org:9094/rooms")
        TopicUrl(brokers='a.example.org:9092,b.example.org:9094', topic='rooms')
        """
        parts = urlsplit(url)
        topic = unquote(parts.path.removeprefix("/"))
        try:
            address_of(url)
            is_address = bool(parts.netloc)
        except ValueError:  # of a port
            is_address = False
        if not is_address or not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            raise UsageError(
                f"{shown(url)} is no URL of a topic", hint="write kafka://HOST:PORT/TOPIC"
            )
        if parts.query or parts.fragment:
            raise UsageError(
                f"{shown(url)} has more than hosts and a topic",
                hint="pass options of the library as options: --set NAME=VALUE",
            )
        hosts = (host if _has_port(host) else f"{host}:{_PORT}" for host in parts.netloc.split(","))
        return cls(",".join(hosts), topic)


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdigit() and not host.endswith("]")


class Topic(NamedTuple):
    """The description of a topic by the cluster."""

    identity: str  # its unique id; a topic that is created with its name later has another one
    partitions: tuple[int, ...]


class OffsetBounds(NamedTuple):
    """The offsets of a partition."""

    oldest: int
    end: int  # the offset after the highest one


class TopicClient:
    """Requests data about a topic from a cluster, and runs blocking calls in one thread.

    `patience`: the seconds without a reachable broker after which it is an error. `own`: the options of this package,
    by name.
    """

    def __init__(self, url: str, settings: Settings) -> None:
        brokers, self.topic = TopicUrl.parse(url)
        self.url, self._settings = url, settings
        given = option_values(settings)
        if fixed := sorted(_FIXED & given.keys()):
            raise UsageError(
                f"the option {fixed[0]} cannot be set", hint="what is promised depends on its value"
            )
        self.own = {name: given.pop(name) for name in _OWN if name in given}
        self._config: dict[str, Any] = {
            # fatal errors of the library's client are raised by calls anyway, and are not for standard error
            "logger": _LOGGER,
            "log_level": 0,
            "socket.timeout.ms": int(settings.idle_seconds * 1000),
            "client.id": "construct-messages",
            "reconnect.backoff.ms": 20,  # half of it passes before each new connection
            **given,
            "bootstrap.servers": brokers,
            "error_cb": self._note,
        }
        # as long as other transports retry a request
        self.patience = 1.0 + sum(min(8.0, 0.5 * 2**attempt) for attempt in range(settings.retries))
        self._cause: KafkaError | None = None
        self._checked = False
        self._threads = ThreadPoolExecutor(1, "kafka")
        self._admin = self.created(AdminClient)
        self._consumers: dict[bool, Consumer] = {}

    def created(
        self, kind: Callable[[dict[str, Any]], T], config: Mapping[str, object] = _NO_CONFIG
    ) -> T:
        """Returns a client of the library; `config` overrides the user's properties. Raises `UsageError` for an invalid
        one.
        """
        try:
            return kind({**self._config, **config})
        except KafkaException as error:
            raise UsageError(
                f"Kafka's library refuses the options: {shown(error.args[0].str())}",
                hint="see CONFIGURATION.md of librdkafka",
            ) from error

    def consumer(self, config: Mapping[str, object] = _NO_CONFIG) -> Consumer:
        """Returns a consumer that reports the ends of partitions, and raises errors for missing offsets."""
        reading = {
            GROUP: "construct-messages",  # the library needs one; it is not used
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
        return self.created(Consumer, {**reading, **config})

    def _note(self, error: KafkaError) -> None:
        """Records temporary failures; called by the library."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self._cause is None:
            self._cause = error

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls a blocking function in the thread of this topic."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(*args, **kwargs))

    async def _answers(
        self, ask: Callable[[float], Iterable[Future[Any]]], accepted: Container[int] = ()
    ) -> list[Any]:
        """Repeats a request until the cluster answers, or no broker was reachable for too long.

        `ask` returns futures of the library, for the seconds of one attempt. A failure with an accepted code returns
        nothing.
        """
        deadline = time.monotonic() + self.patience
        self._cause = None
        while True:
            try:
                return [await self._answer(each, deadline) for each in ask(_ATTEMPT_SECONDS)]
            except KafkaException as error:
                if error.args[0].code() in accepted:
                    return []
                await self.survive(error.args[0], deadline)

    async def _answer(self, future: Future[Any], deadline: float) -> Any:
        """Waits for a future of the library, until a failure that the library itself would retry."""
        answer = asyncio.wrap_future(future)
        while not (await asyncio.wait([answer], timeout=_PAUSE_SECONDS))[0]:
            self._admin.poll(0)  # calls `_note`
            await self._check_port()
            if self.refused or (self._cause and time.monotonic() > deadline):
                answer.cancel()
                raise self.failure(self._cause or KafkaError(KafkaError._TIMED_OUT))
        return answer.result()

    async def _check_port(self) -> None:
        """Checks once that the first broker has TLS where it is requested, and only there, if it cannot be reached."""
        if self._cause is None or self._checked:
            return
        self._checked = True
        protocol = str(self._config.get("security.protocol", "")).lower()
        await check_port(self.url, is_secure="ssl" in protocol)

    async def survive(self, error: KafkaError, deadline: float) -> None:
        """Waits for a moment if a failure may pass, and the deadline has not; otherwise raises it."""
        error = self.refused or error
        if not passes(error) or time.monotonic() > deadline:
            raise self.failure(error)
        await asyncio.sleep(_PAUSE_SECONDS)

    @property
    def refused(self) -> KafkaError | None:
        """A rejection of credentials or of the certificate, after which the library continues to retry."""
        cause = self._cause
        return cause if cause is not None and cause.code() in _REFUSED else None

    def failure(self, error: KafkaError) -> SourceError:
        """Returns a failure of the library as an error of this package."""
        return failure_of(error, self.url, self._cause)

    async def describe(self) -> Topic:
        """Returns the description of the topic by the cluster. Raises `SourceError` if it does not exist, or is hidden
        from the user.
        """
        (found,) = await self._described()
        numbers = (partition.id for partition in found.partitions)
        return Topic(str(found.topic_id), tuple(sorted(numbers)))

    async def _described(self, accepted: Container[int] = ()) -> list[Any]:
        return await self._answers(
            lambda seconds: self._admin.describe_topics(
                TopicCollection([self.topic]), request_timeout=seconds
            ).values(),
            accepted,
        )

    async def create(self) -> None:
        """Creates the topic with one partition, if it does not exist, and waits until brokers know it."""
        topic = NewTopic(self.topic, num_partitions=1)
        await self._answers(
            lambda seconds: self._admin.create_topics([topic], request_timeout=seconds).values(),
            accepted=(KafkaError.TOPIC_ALREADY_EXISTS,),
        )
        deadline = time.monotonic() + self.patience
        while not await self._described(accepted=(KafkaError.UNKNOWN_TOPIC_OR_PART,)):
            if time.monotonic() > deadline:
                raise SourceTimeout(f"{self.url} was created, but no broker knows it")
            await asyncio.sleep(_PAUSE_SECONDS)

    async def bounds(
        self, partitions: Iterable[int], *, committed: bool = True
    ) -> Mapping[int, OffsetBounds]:
        """Returns the offsets that partitions have; with `committed`, up to the first record of an open transaction."""
        consumer = await self._asking(committed=committed)
        return {
            number: await self._repeated(
                lambda number=number: _bounds(consumer, Partition(self.topic, number))  # type: ignore[misc] # its default
            )
            for number in partitions
        }

    async def offsets_at(self, partitions: Iterable[int], milliseconds: int) -> Mapping[int, int]:
        """Returns the offset of the first record since a time, in milliseconds since 1970 in UTC; less than 0: there is
        none.
        """
        consumer = await self._asking(committed=True)
        asked = [Partition(self.topic, number, milliseconds) for number in partitions]
        found = await self._repeated(lambda: consumer.offsets_for_times(asked, _ATTEMPT_SECONDS))
        return {each.partition: each.offset for each in found}

    async def _asking(self, *, committed: bool) -> Consumer:
        """Returns a consumer that only requests offsets."""
        if (consumer := self._consumers.get(committed)) is None:
            level = f"read_{'' if committed else 'un'}committed"
            config = {GROUP: "construct-messages", "isolation.level": level}
            consumer = self._consumers[committed] = await self.run(self.created, Consumer, config)
        return consumer

    async def _repeated(self, ask: Callable[[], T]) -> T:
        """Repeats a briefly blocking call until it succeeds, or no broker was reachable for too long."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                return await self.run(ask)
            except KafkaException as error:
                await self.survive(error.args[0], deadline)

    async def message_bytes(self) -> int | None:
        """Returns the maximal size of a batch of records in the topic; None: the user may not see it."""
        resource = ConfigResource(ResourceType.TOPIC, self.topic)
        found = await self._answers(
            lambda seconds: self._admin.describe_configs(
                [resource], request_timeout=seconds
            ).values(),
            accepted=(KafkaError.TOPIC_AUTHORIZATION_FAILED,),
        )
        return int(found[0]["max.message.bytes"].value) if found else None

    async def aclose(self) -> None:
        """Closes the connections, and ends the thread after its current call."""
        for consumer in self._consumers.values():
            await self.run(consumer.close)
        self._threads.shutdown(wait=False)


def _bounds(consumer: Consumer, partition: Partition) -> OffsetBounds:
    found = consumer.get_watermark_offsets(partition, _ATTEMPT_SECONDS)
    if found is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    if min(found) < 0:  # a leader that has just started does not have it yet
        raise KafkaException(KafkaError(KafkaError.OFFSET_NOT_AVAILABLE))
    return OffsetBounds(*found)


# --- groups ---------------------------------------------------------------------------------------
# The offsets that a group committed, without being a member of it.
#
# Uses a consumer instead of the library's administration client, which ends the process when a broker is restarted.

_SHORTEST_SECONDS: Final = 0.001
_LONGER: Final = 1.2  # each wait for an answer than the one before
_STEP_SECONDS: Final = 0.2
_GROUP_SECONDS: Final = 1.0


class ConsumerGroup:
    """The offsets of the group of this name; see above."""

    def __init__(self, client: TopicClient, name: str) -> None:
        self._client, self._name = client, name
        self._consumer: Consumer | None = None
        self._answers: list[KafkaError | None] = []

    async def committed(self, partitions: Iterable[int]) -> list[Partition]:
        """Returns the committed offsets of the group; missing ones are less than 0."""
        consumer = await self._opened()
        asked = [Partition(self._client.topic, number) for number in partitions]
        deadline = time.monotonic() + self._client.patience
        while True:
            try:
                found = await self._client.run(consumer.committed, asked, _GROUP_SECONDS)
            except KafkaException as error:
                failed: KafkaError = error.args[0]
            else:
                errors = [each.error for each in found if each.error is not None]
                if not errors:
                    return list(found)
                failed = errors[0]
            await self._client.survive(await self._refusal() or failed, deadline)

    async def commit(self, offsets: Mapping[int, int], metadata: str = "") -> None:
        """Commits the next offset of each partition, with the same metadata."""
        consumer = await self._opened()
        given = [
            Partition(self._client.topic, number, offset, metadata)
            for number, offset in offsets.items()
        ]
        deadline = time.monotonic() + self._client.patience
        while True:
            self._answers.clear()
            consumer.commit(offsets=given, asynchronous=True)
            seconds = _SHORTEST_SECONDS
            while not self._answers:
                # not in the thread, where a poll that calls `_note` continues to wait
                await asyncio.sleep(seconds)
                seconds = min(_LONGER * seconds, _STEP_SECONDS)
                refusal = await self._refusal()
                if refusal is not None or time.monotonic() > deadline:
                    raise self._client.failure(refusal or KafkaError(KafkaError._TIMED_OUT))
            if (failed := self._answers[0]) is None:
                return
            await self._client.survive(failed, deadline)

    def _note(self, error: KafkaError | None, partitions: list[Partition]) -> None:
        """Records the result of a commit; called by the library."""
        errors = [error, *(each.error for each in partitions)]
        self._answers.append(next((each for each in errors if each is not None), None))

    async def _refusal(self) -> KafkaError | None:
        """Lets the library call `_note`, and returns a failure that does not end a call."""
        message = (await self._opened()).poll(0)  # which does not block
        error = None if message is None else message.error()
        return None if error is None or passes(error) else error

    async def _opened(self) -> Consumer:
        if self._consumer is None:
            config = {GROUP: self._name, "enable.auto.commit": False, "on_commit": self._note}
            self._consumer = await self._client.run(self._client.created, Consumer, config)
        return self._consumer

    async def aclose(self) -> None:
        if self._consumer is not None:
            await self._client.run(self._consumer.close)
            self._consumer = None
