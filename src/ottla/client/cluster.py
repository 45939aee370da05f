"""`Cluster`: single requests to the right node of a cluster, repeated while that can help. For Admin and the commands.

Producers and consumers run machines (`runtime.py`); what is asked once and awaited needs none. Every call has a deadline,
`default.api.timeout.ms` from its start, and between attempts waits as the retry backoff says. With `bootstrap.controllers` the
nodes are controllers (KIP-919): DescribeCluster takes the place of Metadata.

Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from ottla.client.connections import BOOTSTRAP_ID, ConnectionPool, kafka_error
from ottla.client.link_options import link_options
from ottla.client.world import ClientWorld
from ottla.client_core.coordinators import CoordinatorKind, find_coordinator_request
from ottla.client_core.machine import ANY_NODE, CONTROLLER, Channel
from ottla.client_core.metadata import Metadata, Node, leaderless_text
from ottla.config.client.settings import AdminSettings
from ottla.env.backoff import Backoff
from ottla.errors import BrokerNotAvailableError, KafkaError, UnreachableError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.ids import TopicPartition
from ottla.link import AuthenticationFailed, ConnectFailed, Link, LinkError, NoCommonVersion
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import EncodeError, Message
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic

if TYPE_CHECKING:
    from ottla.client.metrics import ClientMetrics


# `Waits`: which requests of a cluster have no answer yet, since when, and why. For commands that tell a person. Pure.

_LOOKING: Final = frozenset({ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER})
"""Asked between two attempts: their answers do not end a wait."""
_NO_API: Final = -1
_PAUSE_S_MAX: Final = 2.5
"""Attempts that are further apart do not belong together. The backoff between them is at most a second by default."""


class Wait(NamedTuple):
    """A request without an answer, or (`api` is empty) with answers that make it be asked again."""

    node_id: int
    key: int
    since_s: float
    reason: KafkaError | None
    """Why the last attempt failed; None while the first one lasts."""

    @property
    def is_for_controller(self) -> bool:
        """Whether the controller answers it: through the broker that was asked."""
        return self.node_id == CONTROLLER or self.key == ApiKey.DESCRIBE_QUORUM

    @property
    def api(self) -> str:
        return "" if self.key == _NO_API else APIS[self.key].name


class Waits:
    """The requests that are under way, and those that failed and may be asked again."""

    def __init__(self) -> None:
        self._waits: dict[tuple[int, int], Wait] = {}
        self._under_way: dict[tuple[int, int], int] = {}
        self._repeated: Wait | None = None
        self._repeated_s = 0.0

    @contextmanager
    def asking(self, node_id: int, key: int, now_s: float) -> Iterator[None]:
        """A request is under way."""
        place = (node_id, key)
        self._waits.setdefault(place, Wait(node_id, key, now_s, None))
        self._under_way[place] = self._under_way.get(place, 0) + 1
        try:
            yield
        except KafkaError as error:
            self._left(place)
            if error.is_retriable and place in self._waits:
                self._waits[place] = self._waits[place]._replace(reason=error)
            else:
                self._waits.pop(place, None)
            raise
        except BaseException:
            self._left(place)
            self._waits.pop(place, None)
            raise
        self._left(place)
        self._waits.pop(place, None)
        if key not in _LOOKING:  # what failed and is not under way may have been answered by another node
            self._waits = {each: wait for each, wait in self._waits.items() if each in self._under_way}

    def _left(self, place: tuple[int, int]) -> None:
        self._under_way[place] -= 1
        if not self._under_way[place]:
            del self._under_way[place]

    def repeated(self, error: KafkaError, now_s: float) -> None:
        """An attempt is repeated because of an error."""
        is_same = self._repeated is not None and now_s - self._repeated_s < _PAUSE_S_MAX
        since_s = self._repeated.since_s if is_same and self._repeated is not None else now_s
        self._repeated, self._repeated_s = Wait(ANY_NODE, _NO_API, since_s, error), now_s

    def oldest(self, now_s: float) -> Wait | None:
        """The request that has waited longest; of those that began together, one whose node is known."""
        waits = list(self._waits.values())
        if self._repeated is not None and now_s - self._repeated_s < _PAUSE_S_MAX:
            waits.append(self._repeated)
        return min(waits, key=lambda each: each.since_s, default=None)


T = TypeVar("T")
K = TypeVar("K", str, TopicPartition)
Outcome: TypeAlias = T | KafkaError
Adapt = Callable[[int], Message]

CONTROLLER_ENDPOINTS = 2
FINAL_CODES = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.CORRUPT_MESSAGE})
"""Retriable codes that are reported at once: a person who misspelt a topic must not wait a minute to learn it."""
_MANY_KEYS_SINCE_VERSION = 4


class ClusterSettings(Protocol):
    """The settings that single requests depend on."""

    @property
    def default_api_timeout_ms(self) -> int: ...
    @property
    def request_timeout_ms(self) -> int: ...
    @property
    def retry_backoff_ms(self) -> int: ...
    @property
    def retry_backoff_max_ms(self) -> int: ...


class Cluster:
    """The nodes that a client sends single requests to."""

    def __init__(
        self,
        world: ClientWorld,
        settings: ClusterSettings,
        pool: ConnectionPool,
        known: Metadata,
        *,
        controllers: bool = False,
        waits_for_brokers: bool = True,
    ) -> None:
        self.world = world
        self.settings = settings
        self.is_of_controllers = controllers
        """Whether the nodes are controllers."""
        self.known = known
        """What the last Metadata response said of nodes and controller."""
        self.pool = pool
        """The connections to them."""
        self.waits = Waits()
        """Requests that have no answer yet."""
        self._waits_for_brokers = waits_for_brokers
        """False: an `UnreachableError` at once, instead of attempts until the deadline, where a person had better look."""
        self._below = world.randomness.below
        self._loop = asyncio.get_running_loop()
        self._lost: set[int] = set()
        """Nodes (or `CONTROLLER`) that did not answer: before the next attempt, look who and where they are."""
        self._retried: KafkaError | None = None
        """The error that the last attempt of any call was repeated for; None since an attempt succeeded."""

    @property
    def brokers(self) -> Mapping[int, Node]:
        """The nodes of the newest Metadata response."""
        return self.known.nodes

    def close(self) -> None:
        """End all connections."""
        self.pool.close()

    def deadline_s(self) -> float:
        """When a call that begins now must have ended, by the loop's clock."""
        return self._loop.time() + self.settings.default_api_timeout_ms / 1000

    # Attempts

    async def retrying(self, attempt: Callable[[], Awaitable[T]], deadline_s: float | None = None) -> T:
        """What `attempt` returns. A retriable error is followed by another attempt, until the deadline."""
        deadline_s = self.deadline_s() if deadline_s is None else deadline_s
        backoff = self._backoff()
        while True:
            try:
                async with asyncio.timeout_at(deadline_s):
                    found = await attempt()
                self._retried = None
                return found
            except KafkaError as error:  # first: a request that timed out is also a TimeoutError, and is asked again
                if not is_worth_retrying(error):
                    raise
                self._retried = error
                self.waits.repeated(error, self._loop.time())
                if not await self.wait(backoff, deadline_s):
                    raise
            except TimeoutError:
                why = "" if self._retried is None else f": {self._retried}"
                text = f"no answer within {self.settings.default_api_timeout_ms} ms (default.api.timeout.ms){why}"
                raise exception_of(ErrorCode.REQUEST_TIMED_OUT, text) from None

    async def wait(self, backoff: Backoff, deadline_s: float) -> bool:
        """Wait before the next attempt; False if no time is left for one, or if the client was closed."""
        wait_s = backoff.failed() / 1000
        if self.pool.is_closed or self._loop.time() + wait_s > deadline_s:
            return False
        await asyncio.sleep(wait_s)
        return True

    def _backoff(self) -> Backoff:
        return Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms, self._below)

    # Requests

    async def link_to(self, node_id: int, channel: Channel = Channel.DATA) -> Link:
        """The connection to a node, opened if need be. Raises a `KafkaError`."""
        try:
            if node_id in self._lost or (node_id >= 0 and self.pool.node(node_id) is None):
                await self.metadata([])
                self._lost.discard(node_id)
            resolved = self.pool.resolve(node_id)
            if not self._waits_for_brokers and self.pool.open_link(resolved, channel) is None:
                # A few requests do not need a second connection to the node that was connected to as a bootstrap address.
                bootstrap = self.pool.bootstrap_link(resolved, channel)
                if bootstrap is not None:
                    return bootstrap
                if node_id == ANY_NODE or resolved <= BOOTSTRAP_ID:
                    return await self._first_that_answers(channel)
            return await self.pool.link(resolved, channel)
        except LinkError as failure:
            if node_id != ANY_NODE:
                self._lost.add(node_id)
            error = self._error(failure)
            error.is_unsent = True
            raise error from None

    async def _first_that_answers(self, channel: Channel) -> Link:
        """The connection to the first bootstrap address that answers. One attempt each."""
        failures: list[LinkError] = []
        for node_id in self.pool.bootstrap_ids:
            try:
                return await self.pool.link(node_id, channel)
            except LinkError as failure:
                failures.append(failure)
        said = "; ".join(map(str, failures))
        is_absent = all(isinstance(failure, ConnectFailed) for failure in failures)
        is_refused = any(isinstance(failure, AuthenticationFailed) for failure in failures)
        raise UnreachableError(f"no broker can be reached: {said}", is_absent=is_absent, is_refused=is_refused)

    def _error(self, failure: LinkError | EncodeError) -> KafkaError:
        """What the caller sees. To a person, an unknown host or a peer that breaks the protocol is not worth a retry."""
        is_hopeless = isinstance(failure, LinkError) and not failure.is_retriable and not isinstance(failure, NoCommonVersion)
        if is_hopeless and not self._waits_for_brokers:
            return UnreachableError(str(failure))
        return kafka_error(failure)

    async def any_link(self) -> Link:
        """A connection to some node."""
        return await self.retrying(partial(self.link_to, ANY_NODE))

    async def once(self, node_id: int, message: Message, adapt: Adapt | None = None, timeout_ms: int | None = None) -> Any:
        """The answer of a node, in one attempt. Raises a `KafkaError` if none comes; codes inside it are the caller's."""
        with self.waits.asking(node_id, message.KEY, self._loop.time()):
            return await self._once(node_id, message, adapt, timeout_ms)

    async def _once(self, node_id: int, message: Message, adapt: Adapt | None, timeout_ms: int | None) -> Any:
        link = await self.link_to(node_id)
        try:
            return await link.request(
                message if adapt is None else adapt(link.versions.newest(message.KEY)), timeout_ms=timeout_ms
            )
        except (LinkError, EncodeError) as failure:
            if isinstance(failure, LinkError) and node_id != ANY_NODE:
                self._lost.add(node_id)  # it may hang: a second attempt at the same place would wait as long again
            raise self._error(failure) from None

    async def ask_any(self, message: Message, adapt: Adapt | None = None) -> Any:
        """The answer of any node."""
        return await self.retrying(partial(self.once, ANY_NODE, message, adapt))

    async def ask_broker(self, node_id: int, message: Message, adapt: Adapt | None = None) -> Any:
        """The answer of one node."""
        await self.require_node(node_id)
        return await self.retrying(partial(self.once, node_id, message, adapt))

    async def require_node(self, node_id: int) -> None:
        """Tell a person at once that there is no such node. Others wait for it: it may be starting."""
        if self._waits_for_brokers or self.pool.node(node_id) is not None:
            return
        await self.metadata([])
        if self.pool.node(node_id) is None:
            there = ", ".join(map(str, sorted(self.brokers))) or "none"
            raise BrokerNotAvailableError(
                f"broker {node_id} is not in the cluster, or is down: the brokers that are up are {there}"
            )

    async def ask_controller(
        self, message: Message, code_of: Callable[[Any], int] = lambda response: 0, adapt: Adapt | None = None
    ) -> Any:
        """The answer of the controller. `code_of` finds the response's error code: NOT_CONTROLLER leads to another attempt."""

        async def attempt() -> Any:
            if self.known.controller_id not in self.known.nodes:
                await self.metadata([])
            response = await self.once(CONTROLLER, message, adapt)
            if code_of(response) == ErrorCode.NOT_CONTROLLER:
                await self.metadata([])
                raise exception_of(ErrorCode.NOT_CONTROLLER)
            return response

        return await self.retrying(attempt)

    # Metadata

    async def metadata(self, topics: Sequence[str] | None, auto_create: bool = False) -> MetadataResponse:
        """The cluster as a node sees it now, with `topics` (None: all). Errors of single topics are left to the caller."""
        if self.is_of_controllers:
            return await self._recovering(self._describe_controllers)
        request = MetadataRequest(
            topics=None if topics is None else [MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=auto_create,
        )
        return await self._recovering(partial(self._ask_metadata, request))

    async def _recovering(self, attempt: Callable[[], Awaitable[MetadataResponse]]) -> MetadataResponse:
        """Like `retrying`. Starts again from the bootstrap servers when that is due, also while an attempt hangs."""
        recovery = self.known.recovery

        async def watched() -> MetadataResponse:
            recovery.asked(self._now_ms())
            self._rebootstrap()
            due_ms = recovery.due_ms()
            timer = None
            if due_ms is not None:
                timer = self._loop.call_later((due_ms - self._now_ms()) / 1000, self._rebootstrap)
            try:
                response = await attempt()
            finally:
                if timer is not None:
                    timer.cancel()
            recovery.succeeded()
            return response

        try:
            return await self.retrying(watched)
        except BaseException:
            self.known.refresh("a call got no metadata")  # where a machine shares it, the machine must find out the same
            raise

    def _rebootstrap(self) -> None:
        reason = self.known.rebootstrap(self._now_ms())
        if reason is not None:
            self.pool.rebootstrap(reason)

    def _now_ms(self) -> int:
        return int(self.world.clock.monotonic_s() * 1000)

    async def _ask_metadata(self, request: MetadataRequest) -> MetadataResponse:
        response: MetadataResponse = await self.once(ANY_NODE, request)
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            error = self.known.recovery.required()
            self._rebootstrap()
            raise error
        if response.error_code:
            raise exception_of(response.error_code)
        self.known.nodes = {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers}
        self.known.controller_id = response.controller_id
        self.known.cluster_id = response.cluster_id
        return response

    async def _describe_controllers(self) -> MetadataResponse:
        request = DescribeClusterRequest(endpoint_type=CONTROLLER_ENDPOINTS)
        response: DescribeClusterResponse = await self.once(ANY_NODE, request)
        if response.error_code:
            raise exception_of(response.error_code, response.error_message)
        self.known.nodes = {each.broker_id: Node(each.broker_id, each.host, each.port, each.rack) for each in response.brokers}
        self.known.controller_id = response.controller_id
        self.known.cluster_id = response.cluster_id
        return MetadataResponse(cluster_id=response.cluster_id, controller_id=response.controller_id)

    async def topics(self) -> dict[str, MetadataResponseTopic]:
        """Every topic of the cluster that is not being deleted, by name, in order."""
        response = await self.metadata(None)
        found = {topic.name: topic for topic in response.topics if topic.name is not None and not topic.error_code}
        return dict(sorted(found.items()))

    async def topic(self, name: str, auto_create: bool = False) -> MetadataResponseTopic:
        """One topic; a `KafkaError` if it does not exist and, with `auto_create`, was not created either."""

        async def attempt() -> MetadataResponseTopic:
            topic = (await self.metadata([name], auto_create)).topics[0]
            if topic.error_code:
                raise topic_error(topic.error_code, name)
            return topic

        return await self.retrying(attempt)

    async def coordinators(
        self, kind: CoordinatorKind, keys: Sequence[str]
    ) -> tuple[dict[int, list[str]], dict[str, KafkaError]]:
        """The coordinators of `keys`: keys by node id, and errors by key. One attempt for keys that fail."""
        link = await self.any_link()
        if link.versions.newest(ApiKey.FIND_COORDINATOR) >= _MANY_KEYS_SINCE_VERSION:
            response: FindCoordinatorResponse = await self.ask_any(
                FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
            )
            found = [
                (each.key, each.node_id, each.host, each.port, each.error_code, each.error_message)
                for each in response.coordinators
            ]
        else:
            found = []
            for key in keys:
                one = await self.ask_any(FindCoordinatorRequest(), partial(find_coordinator_request, kind, key))
                found.append((key, one.node_id, one.host, one.port, one.error_code, one.error_message))
        places: dict[int, list[str]] = {}
        errors: dict[str, KafkaError] = {}
        for key, node_id, host, port, code, text in found:
            if code:
                about = f"the coordinator of {kind.name.lower()} {key} cannot be found: {text or error_meaning(code)}"
                errors[key] = exception_of(code, about)
            else:
                self.known.learn_node(Node(node_id, host, port))
                places.setdefault(node_id, []).append(key)
        return places, errors

    # Many items, each at its own node

    async def by_leader(
        self,
        partitions: Iterable[TopicPartition],
        ask: Callable[[int, list[TopicPartition]], Awaitable[dict[TopicPartition, Outcome[T]]]],
    ) -> dict[TopicPartition, Outcome[T]]:
        """Ask the leader of each partition. Retriable errors are retried; those in the result are final."""
        return await self.by_place(partitions, self._leaders, ask)

    async def by_coordinator(
        self, kind: CoordinatorKind, keys: Iterable[str], ask: Callable[[int, list[str]], Awaitable[dict[str, Outcome[T]]]]
    ) -> dict[str, Outcome[T]]:
        """Ask the coordinator of each key. Retriable errors are retried; those in the result are final."""
        return await self.by_place(keys, partial(self.coordinators, kind), ask)

    async def by_place(
        self,
        items: Iterable[K],
        locate: Callable[[Sequence[K]], Awaitable[tuple[dict[int, list[K]], dict[K, KafkaError]]]],
        ask: Callable[[int, list[K]], Awaitable[dict[K, Outcome[T]]]],
    ) -> dict[K, Outcome[T]]:
        """Ask the node that `locate` finds for each item, about all of its items at once."""
        deadline_s = self.deadline_s()
        wanted = sorted(set(items))
        done: dict[K, Outcome[T]] = {}
        backoff = self._backoff()
        while wanted:
            places, errors = await locate(wanted)
            done.update(errors)
            for outcome in await asyncio.gather(*(_ask_place(ask, *each) for each in sorted(places.items()))):
                done.update(outcome)
            wanted = [each for each in wanted if isinstance(error := done.get(each), KafkaError) and is_worth_retrying(error)]
            if wanted:
                error = done[wanted[0]]
                assert isinstance(error, KafkaError)
                self.waits.repeated(error, self._loop.time())
                if not await self.wait(backoff, deadline_s):
                    break
        return dict(sorted(done.items()))

    async def each_broker(self, ask: Callable[[int], Awaitable[T]]) -> dict[int, T]:
        """The answers of all brokers, by id. A broker that answers with a retriable error is asked again."""
        await self.metadata([])
        ids = sorted(self.brokers)
        answers = await asyncio.gather(*(self.retrying(partial(ask, node_id)) for node_id in ids))
        return dict(zip(ids, answers, strict=True))

    async def each_broker_or_error(self, ask: Callable[[int], Awaitable[T]]) -> dict[int, T | KafkaError]:
        """Like `each_broker`, with the error of a broker in place of its answer. One that is fenced is not asked again."""

        async def answer(node_id: int) -> T | KafkaError:
            async def attempt() -> T:
                await self.require_node(node_id)
                return await ask(node_id)

            try:
                return await self.retrying(attempt)
            except KafkaError as error:
                return error

        return await self.each_broker(answer)

    async def _leaders(
        self, wanted: Sequence[TopicPartition]
    ) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, KafkaError]]:
        response = await self.metadata(sorted({each.topic for each in wanted}))
        found = {topic.name: topic for topic in response.topics}
        leaders: dict[int, list[TopicPartition]] = {}
        errors: dict[TopicPartition, KafkaError] = {}
        for each in wanted:
            topic = found.get(each.topic)
            if topic is None:
                errors[each] = topic_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, each.topic)
                continue
            partition = next((one for one in topic.partitions if one.partition_index == each.partition), None)
            if topic.error_code:
                errors[each] = topic_error(topic.error_code, each.topic)
            elif partition is None:
                errors[each] = topic_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, each.topic, each.partition)
            elif partition.leader_id < 0:
                errors[each] = topic_error(ErrorCode.LEADER_NOT_AVAILABLE, each.topic, each.partition)
            else:
                leaders.setdefault(partition.leader_id, []).append(each)
        return leaders, errors


def is_worth_retrying(error: KafkaError) -> bool:
    """Whether the same request may succeed in a moment."""
    return error.is_retriable and error.code not in FINAL_CODES


async def _ask_place(
    ask: Callable[[int, list[K]], Awaitable[dict[K, Outcome[T]]]], node_id: int, items: list[K]
) -> dict[K, Outcome[T]]:
    try:
        return await ask(node_id, items)
    except KafkaError as error:
        if not is_worth_retrying(error):
            raise
        return dict.fromkeys(items, error)


def topic_error(code: int, topic: str, partition: int | None = None) -> KafkaError:
    """The error of a topic or partition in a Metadata response."""
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        text = f"topic {topic} does not exist" if partition is None else f"topic {topic} has no partition {partition}"
        return exception_of(code, text)
    if code == ErrorCode.LEADER_NOT_AVAILABLE and partition is not None:
        return exception_of(code, leaderless_text(topic, [partition]))
    return exception_of(
        code, f"{f'topic {topic}' if partition is None else f'partition {topic}-{partition}'}: {error_meaning(code)}"
    )


# `open_cluster`: the cluster of a client's settings, for single requests.


def open_cluster(
    world: ClientWorld,
    settings: AdminSettings,
    client_id: str = "ottla",
    metrics: ClientMetrics | None = None,
    *,
    waits_for_brokers: bool = True,
) -> Cluster:
    """The cluster by its brokers, or by its controllers (KIP-919). Connects with the first request.

    `client_id` is for settings without one. Without `waits_for_brokers`, brokers that cannot be reached are an error at once.
    """
    known = Metadata(settings, world.randomness.below)
    bootstrap = settings.bootstrap_servers or settings.bootstrap_controllers
    pool = ConnectionPool(world, settings, bootstrap, link_options(settings, world, client_id), known, metrics)
    of_controllers = bool(settings.bootstrap_controllers)
    return Cluster(world, settings, pool, known, controllers=of_controllers, waits_for_brokers=waits_for_brokers)
