"""A small request helper over `link/`: finds brokers, routes requests, tries again what can be tried again.

One `Cluster` serves one command. It keeps one link to each broker, opened when first needed. What may succeed later is
repeated with growing waits until the deadline (`default.api.timeout.ms`); what remains is raised as an error that people can
read. Runs on the event loop of the command.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from ottla.cli.common.settings import ClientSettings
from ottla.env.net import Network
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode, error_meaning, error_name, error_of
from ottla.ids import TopicPartition
from ottla.link import ConnectFailed, Link, LinkError, backoff_ms
from ottla.wire.base import Message
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic

T = TypeVar("T")
K = TypeVar("K", str, TopicPartition)

_FINAL_FOR_PEOPLE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.CORRUPT_MESSAGE})
"""Codes that clients repeat in the hope of newer metadata, but that a command had better report."""

SEE_CHANGES_MS = 5_000


class NoBroker(OttlaError):
    """None of the bootstrap servers can be talked to."""


class Broker(NamedTuple):
    """Where a broker is."""

    id: int
    host: str
    port: int
    rack: str | None


def refusal(code: int, about: str, text: str | None = None) -> KafkaError:
    """An error code in a response as an error to raise: with the broker's own text where it gave one."""
    return KafkaError(code, f"{about}: {text or error_meaning(code)} ({error_name(code)})")


def topic_refusal(code: int, topic: str, partition: int | None = None) -> KafkaError:
    """The same for a topic or partition in a Metadata response."""
    if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return refusal(code, f"topic {topic}" if partition is None else f"partition {topic}-{partition}")
    what = f"topic {topic} does not exist" if partition is None else f"topic {topic} has no partition {partition}"
    return KafkaError(code, f"{what} ({error_name(code)}): `ottla topics list` shows the topics there are")


def is_retriable(error: Exception) -> bool:
    """Whether the same request may succeed in a moment."""
    if isinstance(error, LinkError):
        return error.is_retriable
    if isinstance(error, KafkaError) and error.code not in _FINAL_FOR_PEOPLE:
        known = error_of(error.code)
        return known is not None and known.retriable
    return False


class Cluster:
    """The brokers that a command talks to."""

    def __init__(self, settings: ClientSettings, network: Network) -> None:
        self.settings = settings
        self._network = network
        self._links: dict[int, Link] = {}
        self._first_link: Link | None = None
        self._opening: dict[int, asyncio.Lock] = {}
        self._loop = asyncio.get_running_loop()
        self.brokers: dict[int, Broker] = {}

    def close(self) -> None:
        """End all connections."""
        for link in (self._first_link, *self._links.values()):
            if link is not None:
                link.close()

    def deadline_s(self) -> float:
        """When something begun now must be done, by the loop's clock."""
        return self._loop.time() + self.settings.api_timeout_ms / 1000

    # Trying again

    async def retrying(self, attempt: Callable[[], Awaitable[T]], deadline_s: float | None = None) -> T:
        """What `attempt` returns, however often it has to be tried; the last error when the time is up."""
        deadline_s = self.deadline_s() if deadline_s is None else deadline_s
        failures = 0
        while True:
            try:
                return await attempt()
            except (LinkError, KafkaError) as error:
                failures += 1
                if not is_retriable(error) or not await self.wait(failures, deadline_s):
                    raise

    async def wait(self, failures: int, deadline_s: float) -> bool:
        """Wait before the next attempt; False if there is no time left for one."""
        wait_s = (
            backoff_ms(failures, self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms, random.random()) / 1000
        )
        if self._loop.time() + wait_s > deadline_s:
            return False
        await asyncio.sleep(wait_s)
        return True

    # Whom to ask

    async def any_link(self) -> Link:
        """A link to some broker: one that is open, or the first bootstrap server that answers."""
        for link in (self._first_link, *self._links.values()):
            if link is not None and not link.is_over:
                return link
        failures: list[LinkError] = []
        for host, port in self.settings.bootstrap:
            try:
                self._first_link = await Link.connect(self._network, host, port, self.settings.link_options())
            except LinkError as error:
                failures.append(error)
            else:
                return self._first_link
        said = "; ".join(str(failure) for failure in failures)
        hint = ""
        if all(isinstance(failure, ConnectFailed) for failure in failures):
            hint = ". Start a node with `ottla up`, or name another with --bootstrap-server"
        raise NoBroker(f"no broker can be talked to: {said}{hint}")

    async def link_to(self, broker_id: int) -> Link:
        """The link to one broker, opened if need be."""
        async with self._opening.setdefault(broker_id, asyncio.Lock()):
            link = self._links.get(broker_id)
            if link is None or link.is_over:
                if broker_id not in self.brokers:
                    await self.metadata([])
                broker = self.brokers.get(broker_id)
                if broker is None:
                    raise refusal(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not in the cluster")
                link = self._links[broker_id] = await self._connect(broker)
            return link

    async def _connect(self, broker: Broker) -> Link:
        try:
            return await Link.connect(self._network, broker.host, broker.port, self.settings.link_options())
        except ConnectFailed as error:
            # The address came from the cluster, not from the user: who reads this needs to know where it is set.
            text = f"broker {broker.id} tells its clients to connect to {error.address} (its advertised.listeners), but {error}"
            raise ConnectFailed(error.address, text, error.is_retriable) from None

    async def ask_any(self, message: Message) -> Any:
        """One broker's answer, whichever broker it is."""

        async def attempt() -> Any:
            return await (await self.any_link()).request(message)

        return await self.retrying(attempt)

    async def ask_controller(self, message: Message) -> Any:
        """The answer to a change of metadata. Brokers of Kafka 4 hand it on; of older ones only the one they name takes it."""
        controller_id = (await self.metadata([])).controller_id
        link = await (self.link_to(controller_id) if controller_id in self.brokers else self.any_link())
        return await link.request(message)

    async def ask_broker(self, broker_id: int, message: Message) -> Any:
        """The answer of one broker."""

        async def attempt() -> Any:
            return await (await self.link_to(broker_id)).request(message)

        return await self.retrying(attempt)

    # What is where

    async def metadata(self, topics: Sequence[str] | None, auto_create: bool = False) -> MetadataResponse:
        """The cluster as a broker sees it now, with `topics` (None: all). Errors of single topics are left to the caller."""
        request = MetadataRequest(
            topics=None if topics is None else [MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=auto_create,
        )
        response: MetadataResponse = await self.ask_any(request)
        self.brokers = {
            broker.node_id: Broker(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers
        }
        return response

    async def topics(self) -> dict[str, MetadataResponseTopic]:
        """Every topic of the cluster that is not being deleted, by name, in order."""
        response = await self.metadata(None)
        found = {topic.name: topic for topic in response.topics if topic.name is not None and not topic.error_code}
        return dict(sorted(found.items()))

    async def topic(self, name: str) -> MetadataResponseTopic:
        """One topic; `KafkaError` if it does not exist."""

        async def attempt() -> MetadataResponseTopic:
            response = await self.metadata([name])
            topic = response.topics[0]
            if topic.error_code:
                raise topic_refusal(topic.error_code, name)
            return topic

        return await self.retrying(attempt)

    async def see(self, name: str, is_seen: Callable[[MetadataResponseTopic], bool]) -> None:
        """Wait, but not for long, until a broker shows a change that the controller has made.

        Brokers hear of changes a moment after they have been acknowledged. A script's next command had better find them.
        """
        deadline_s = self._loop.time() + SEE_CHANGES_MS / 1000
        failures = 0
        while not is_seen((await self.metadata([name])).topics[0]):
            failures += 1
            if not await self.wait(failures, deadline_s):
                return

    async def by_leader(
        self,
        partitions: Iterable[TopicPartition],
        ask: Callable[[int, list[TopicPartition]], Awaitable[dict[TopicPartition, T | KafkaError]]],
    ) -> dict[TopicPartition, T | KafkaError]:
        """Ask the leader of each of `partitions`; what can be retried is, so that the errors left are final."""
        return await self.by_place(partitions, self._leaders, ask)

    async def by_place(
        self,
        things: Iterable[K],
        locate: Callable[[Sequence[K]], Awaitable[tuple[dict[int, list[K]], dict[K, KafkaError]]]],
        ask: Callable[[int, list[K]], Awaitable[dict[K, T | KafkaError]]],
    ) -> dict[K, T | KafkaError]:
        """Ask the broker that is responsible for each of `things`, as `locate` tells, about all of its own at once."""
        deadline_s = self.deadline_s()
        wanted = sorted(set(things))
        done: dict[K, T | KafkaError] = {}
        failures = 0
        while wanted:
            places, errors = await locate(wanted)
            done.update(errors)
            for outcome in await asyncio.gather(*(self._ask_place(ask, *each) for each in sorted(places.items()))):
                done.update(outcome)
            wanted = [each for each in wanted if isinstance(error := done[each], KafkaError) and is_retriable(error)]
            failures += 1
            if wanted and not await self.wait(failures, deadline_s):
                break
        return dict(sorted(done.items()))

    async def _leaders(
        self, wanted: Sequence[TopicPartition]
    ) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, KafkaError]]:
        response = await self.metadata(sorted({each.topic for each in wanted}))
        found = {topic.name: topic for topic in response.topics}
        leaders: dict[int, list[TopicPartition]] = {}
        errors: dict[TopicPartition, KafkaError] = {}
        for each in wanted:
            topic = found[each.topic]
            partition = next((one for one in topic.partitions if one.partition_index == each.partition), None)
            code = topic.error_code or (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition is None else 0)
            if partition is not None and partition.leader_id < 0:
                code = ErrorCode.LEADER_NOT_AVAILABLE
            if topic.error_code:
                errors[each] = topic_refusal(code, each.topic)
            elif code or partition is None:
                errors[each] = topic_refusal(code, each.topic, each.partition)
            else:
                leaders.setdefault(partition.leader_id, []).append(each)
        return leaders, errors

    async def _ask_place(
        self, ask: Callable[[int, list[K]], Awaitable[dict[K, T | KafkaError]]], broker_id: int, things: list[K]
    ) -> dict[K, T | KafkaError]:
        try:
            return await ask(broker_id, things)
        except LinkError as error:
            if not error.is_retriable:
                raise
            code = ErrorCode.NETWORK_EXCEPTION
            return {each: KafkaError(code, f"{each}: {error}") for each in things}
