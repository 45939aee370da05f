"""`Metadata`: what a client knows of the cluster (nodes, topics, leaders), and when it asks again.

A machine (`machine.py`). It asks when a topic is wanted that it does not know, when `refresh` was called, and when what it
knows is `metadata.max.age.ms` old. It has one request in flight at most, and waits between requests as the retry backoff says.
When no metadata can be had for too long, or the cluster asks for it, it forgets all nodes and starts again (`recovery.py`).

A topic that is wanted for the first time does not wait: it is asked for at once, alone, unless the last request failed. A topic
that the cluster refuses is asked for again after the backoff, also if it is given up and wanted again meanwhile.

Leaders carry epochs, and an older epoch never replaces a newer one of the same topic id: a broker that lags behind must not
send the client back to a deposed leader. A topic that was deleted and created again has another id, and its epochs start over.
Its former ids are ignored, and the topic is asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.client_core.machine import ANY_NODE, Rebootstrap, Request
from ottla.env.backoff import Backoff
from ottla.errors import KafkaError, NetworkError, RebootstrapRequiredError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.errors.texts import listed
from ottla.ids import ZERO_UUID, Uuid, uuid_text
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    pass


# `Recovery`: when a client gives up the brokers that it knows and starts again from its bootstrap servers (KIP-1102).
#
# Time counts from the first request for metadata after the last success. When it exceeds
# `metadata.recovery.rebootstrap.trigger.ms`, a rebootstrap is due; the time then starts over. A cluster can also ask for one,
# by REBOOTSTRAP_REQUIRED in a Metadata response. With `metadata.recovery.strategy=none` neither happens.
#
# Part of a machine, not one itself: the owner counts `due_ms` among its deadlines.

_REQUIRED = "the cluster told this client to start again from its bootstrap servers (REBOOTSTRAP_REQUIRED)"


class RecoverySettings(Protocol):
    """The settings that recovery depends on; every client has them."""

    @property
    def metadata_recovery_strategy(self) -> str: ...
    @property
    def metadata_recovery_rebootstrap_trigger_ms(self) -> int: ...


class Recovery:
    """Counts the time without metadata."""

    def __init__(self, settings: RecoverySettings) -> None:
        self._is_on = settings.metadata_recovery_strategy == "rebootstrap"
        self._trigger_ms = settings.metadata_recovery_rebootstrap_trigger_ms
        self._since_ms: int | None = None
        self._is_required = False

    def asked(self, now_ms: int) -> None:
        """Metadata is asked for."""
        if self._since_ms is None:
            self._since_ms = now_ms

    def succeeded(self) -> None:
        """Metadata has come."""
        self._since_ms = None

    def required(self) -> KafkaError:
        """The cluster asked for a rebootstrap: the error of the request that it refused."""
        if not self._is_on:
            text = f"{_REQUIRED}, which metadata.recovery.strategy=none forbids: set it to rebootstrap, or make a new client"
            return RebootstrapRequiredError(text)
        self._is_required = True
        return NetworkError(_REQUIRED)

    def due_ms(self) -> int | None:
        """When a rebootstrap is due; None: not as things are."""
        if self._is_required:
            return 0
        if self._since_ms is None or not self._is_on:
            return None
        return self._since_ms + self._trigger_ms + 1

    def begin(self, now_ms: int) -> str | None:
        """The reason for a rebootstrap that begins now; None if none is due."""
        due_ms = self.due_ms()
        if due_ms is None or now_ms < due_ms:
            return None
        reason = _REQUIRED
        if not self._is_required:
            reason = f"no metadata came for {self._trigger_ms} ms (metadata.recovery.rebootstrap.trigger.ms)"
        self._is_required = False
        self._since_ms = now_ms
        return reason


# `FormerIds`: the ids that topics had before they were deleted and created again.
#
# A broker that lags behind still answers with a topic's former id. Topic ids are never used twice, so an id that another one
# has replaced is old news: a consumer that took it would reset its positions, and again at the next answer of a current
# broker.
#
# A client can also meet the ids in the wrong order: the current one first, then the former one from a broker that lags, which
# looks like a topic that was created again. So a replaced id is ignored only for `IGNORED_MS_MAX`, counted from its first
# answer in a row. An answer with the id that is known ends the row.
#
# Memory is bounded: `IDS_MAX` ids of a topic, and those of the `TOPICS_MAX` topics that were forgotten last.

IDS_MAX = 3
TOPICS_MAX = 1_000
IGNORED_MS_MAX = 5_000


class _Former:
    """The former ids of one topic."""

    __slots__ = ("ids", "ignored_since_ms")

    def __init__(self) -> None:
        self.ids: list[Uuid] = []
        """Oldest first. While the topic is not known, the last one is the id that it had until then."""
        self.ignored_since_ms: int | None = None


class FormerIds:
    """The former ids of all topics, by name."""

    def __init__(self) -> None:
        self._topics: dict[str, _Former] = {}

    def forgotten(self, name: str, topic_id: Uuid) -> None:
        """The topic with this id is gone, or another id replaces it."""
        if topic_id == ZERO_UUID:
            return
        former = self._topics.pop(name, None) or _Former()
        former.ids = [*former.ids, topic_id][-IDS_MAX:]
        self._topics[name] = former
        if len(self._topics) > TOPICS_MAX:
            del self._topics[next(iter(self._topics))]

    def takes(self, name: str, topic_id: Uuid, known: Uuid | None, now_ms: int) -> bool:
        """Whether an answer with this id counts. `known`: the topic's id until now; None if the topic is not known."""
        former = self._topics.get(name)
        if former is None:
            return True
        # Brokers without topic ids send zeros: they say nothing about the id.
        current = former.ids[-1] if known is None or known == ZERO_UUID else known
        if topic_id != current and topic_id in former.ids:
            if former.ignored_since_ms is None:
                former.ignored_since_ms = now_ms
            if now_ms - former.ignored_since_ms < IGNORED_MS_MAX:
                return False
        former.ignored_since_ms = None
        former.ids = [each for each in former.ids if each != topic_id]
        if not former.ids:
            del self._topics[name]
        return True

    def __len__(self) -> int:
        return len(self._topics)


NO_LEADER = -1
_STRICT_AUTO_CREATE_SINCE_VERSION = 4
_NULL_MEANS_ALL_SINCE_VERSION = 1


class Node(NamedTuple):
    """Where a broker is."""

    id: int
    host: str
    port: int
    rack: str | None = None


class PartitionInfo(NamedTuple):
    """One partition, as the newest metadata has it."""

    partition: int
    leader: int
    """Its leader's node id; `NO_LEADER` if it has none now."""
    leader_epoch: int
    """-1 from brokers that do not send it."""
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


class TopicInfo(NamedTuple):
    """One topic, with its partitions by number."""

    name: str
    id: Uuid
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]


class _Asked(NamedTuple):
    """What a request asked about."""

    names: list[str] | None
    """None: all topics of the cluster."""
    is_full: bool
    """False: only about topics that were new."""


class MetadataSettings(RecoverySettings, Protocol):
    """The settings that metadata depends on; every client has them."""

    @property
    def metadata_max_age_ms(self) -> int: ...
    @property
    def retry_backoff_ms(self) -> int: ...
    @property
    def retry_backoff_max_ms(self) -> int: ...


class Metadata:
    """The cluster as the client knows it."""

    def __init__(
        self,
        settings: MetadataSettings,
        random_below: Callable[[int], int],
        *,
        auto_create: bool = False,
        idle_max_ms: int | None = None,
    ) -> None:
        self.nodes: dict[int, Node] = {}
        self.cluster_id: str | None = None
        self.controller_id = NO_LEADER
        self.version = 0
        """Grows with every change, so that others can tell whether they have seen it."""
        self.responses = 0
        """How many responses came."""
        self.full_responses = 0
        """How many of them were about every wanted topic: a caller that waits for a refresh compares it."""
        self.features: Mapping[str, int] = {}
        """The finalized features of the cluster, such as transaction.version, by their levels."""
        self.failure: KafkaError | None = None
        """Why the last request failed; None after a success."""
        self.recovery = Recovery(settings)
        """When to start again from the bootstrap servers."""
        self._features_epoch = -1
        self._settings = settings
        self._auto_create = auto_create
        self._idle_max_ms = idle_max_ms
        self._topics: dict[str, TopicInfo] = {}
        self._names: dict[Uuid, str] = {}
        self._former_ids: FormerIds | None = None
        """Made when the first topic is forgotten: most clients never need it."""
        self._errors: dict[str, KafkaError] = {}
        self._wanted: dict[str, int] = {}  # name → when it was used last; counts only with `idle_max_ms`
        self._borrowed: set[str] = set()
        """Wanted topics that only `borrow` has asked for."""
        self._is_all_wanted = False
        self._new: set[str] = set()
        """Wanted topics that were not asked for yet and do not wait for the backoff."""
        self._is_all_new = False
        """Whether the same holds for the list of all topics."""
        self._refused: set[str] = set()
        """Topics whose last answer was an error: wanting them again does not make them new."""
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_below)
        self._is_in_flight = False
        self._is_refresh_due = True
        self._not_before_ms = 0
        self._updated_ms: int | None = None
        self.reason = "the client starts"
        """Why the next update is due, for the log."""

    # What is known

    def topic(self, name: str) -> TopicInfo | None:
        """The topic, if the metadata has it."""
        return self._topics.get(name)

    def topic_of_id(self, topic_id: Uuid) -> TopicInfo | None:
        """The topic with this id, if the metadata has it."""
        name = self._names.get(topic_id)
        return None if name is None else self._topics.get(name)

    def topic_names(self) -> Collection[str]:
        """The names of all topics that the metadata has."""
        return self._topics.keys()

    def topic_error(self, name: str) -> KafkaError | None:
        """Why the last response did not hold a wanted topic; None if it did, or if it was not asked for yet."""
        return self._errors.get(name)

    def leader(self, topic: str, partition: int) -> tuple[int, int] | None:
        """Node id and epoch of a partition's leader; None if it is not known, or if there is none now."""
        info = self._topics.get(topic)
        if info is None or not 0 <= partition < len(info.partitions):
            return None
        found = info.partitions[partition]
        return None if found.leader == NO_LEADER or found.leader not in self.nodes else (found.leader, found.leader_epoch)

    def is_led_by(self, node_id: int, topic: str, partition: int) -> bool:
        """Whether this node leads the partition, as far as is known."""
        leader = self.leader(topic, partition)
        return leader is not None and leader[0] == node_id

    def is_known(self, names: Iterable[str]) -> bool:
        """Whether the metadata has all of these topics."""
        return all(name in self._topics for name in names)

    # What is wanted

    def want(self, names: Iterable[str], now_ms: int = 0) -> None:
        """Keep the metadata of these topics up to date. Topics that are not known yet are asked for at once."""
        for name in names:
            if name not in self._wanted and name not in self._topics:
                if self.failure is None and name not in self._refused:
                    self._new.add(name)
                else:
                    self.refresh(f"topic {name} is wanted")
            self._wanted[name] = now_ms
            self._borrowed.discard(name)

    def borrow(self, names: Iterable[str]) -> None:
        """Want these topics until `give_back`, if nobody else wants them."""
        new = [name for name in names if name not in self._wanted]
        self.want(new)
        self._borrowed.update(new)

    def give_back(self, names: Iterable[str]) -> None:
        """No longer ask for those of these topics that were borrowed, and that nobody has wanted since."""
        self.unwant([name for name in names if name in self._borrowed])

    def unwant(self, names: Iterable[str]) -> None:
        """No longer ask for these topics."""
        for name in names:
            self._wanted.pop(name, None)
            self._borrowed.discard(name)
            self._new.discard(name)
            self._errors.pop(name, None)
            if not self._is_all_wanted:
                self._forget(name)

    def want_all(self, is_wanted: bool) -> None:
        """Ask for every topic of the cluster, for a subscription by pattern."""
        if is_wanted and not self._is_all_wanted:
            self.refresh("all topics are wanted")
            self._is_all_new = self.failure is None
        self._is_all_wanted = is_wanted

    def refresh(self, reason: str) -> None:
        """Ask as soon as the backoff allows."""
        if not self._is_refresh_due:
            self.reason = reason
        self._is_refresh_due = True

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        reason = self.rebootstrap(now_ms)
        requests: list[Request] = [] if reason is None else [Rebootstrap(reason)]
        if self._is_in_flight or now_ms < self._due_ms():
            return requests
        self._is_in_flight = True
        self.recovery.asked(now_ms)
        if self._is_all_new or now_ms >= self._full_due_ms():
            return [*requests, self._full_request(now_ms)]
        new, self._new = sorted(self._new), set()
        return [*requests, self._request(new, is_full=False)]

    def _full_request(self, now_ms: int) -> Request:
        """Ask about everything that is wanted."""
        self._drop_idle(now_ms)
        self._new.clear()
        self._is_all_new = self._is_refresh_due = False
        self._not_before_ms = now_ms + self._settings.retry_backoff_ms
        return self._request(None if self._is_all_wanted else sorted(self._wanted), is_full=True)

    def _request(self, names: list[str] | None, *, is_full: bool) -> Request:
        auto_create = self._auto_create

        def adapt(version: int) -> MetadataRequest:
            """No topics: version 0 wrote an empty list for all of them. Before version 4, brokers always create topics."""
            topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
            if topics is None and version < _NULL_MEANS_ALL_SINCE_VERSION:
                topics = []
            create = auto_create or version < _STRICT_AUTO_CREATE_SINCE_VERSION
            return MetadataRequest(topics=topics, allow_auto_topic_creation=create)

        return Request(MetadataRequest(), ANY_NODE, adapt=adapt, context=_Asked(names, is_full))

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if isinstance(request, Rebootstrap):
            return
        self._is_in_flight = False
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._retry(self.recovery.required(), now_ms)
            return
        if response.error_code:
            self._retry(exception_of(response.error_code), now_ms)
            return
        if not response.brokers:
            # As in Kafka's clients: what was known stays, because without it no broker could be asked.
            self._retry(NetworkError("a broker named no brokers, not even itself: it may not have started yet"), now_ms)
            return
        asked: _Asked = request.context
        self._update(response, asked.names, now_ms)
        self.failure = None
        self.recovery.succeeded()
        if asked.is_full:
            self.full_responses += 1
            self._updated_ms = now_ms
            self._refused.intersection_update(self._wanted)
        elif self._is_refresh_due:
            return  # the next request is about these topics as well: they must not put it off
        subjects = self._errors if asked.is_full else self._errors.keys() & set(asked.names or ())
        if any(self._errors[name].is_retriable for name in subjects):
            self._is_refresh_due = True  # a topic that is being created, or has no leader yet
            self._not_before_ms = now_ms + self._backoff.failed()
        elif asked.is_full:
            self._backoff.succeeded()

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        self._is_in_flight = False
        self._retry(error, now_ms)

    def next_deadline_ms(self) -> int | None:
        due_ms = self.recovery.due_ms()
        if self._is_in_flight:
            return due_ms
        return self._due_ms() if due_ms is None else min(due_ms, self._due_ms())

    # Updates

    def rebootstrap(self, now_ms: int) -> str | None:
        """If it is time to: forget all nodes. Returns the reason; the caller closes the connections to them.

        The topics stay. Their partitions have no leader that is known until the next response, and keep their leader epochs.
        """
        reason = self.recovery.begin(now_ms)
        if reason is not None:
            self.nodes = {}
            self.controller_id = NO_LEADER
            self.version += 1
            self.refresh("the client starts again from its bootstrap servers")
        return reason

    def learn_leader(self, topic: str, partition: int, node_id: int, epoch: int, nodes: Iterable[Node] = ()) -> bool:
        """Take over a leader that a Produce or Fetch response named (KIP-951). False if it is no news."""
        info = self._topics.get(topic)
        if info is None or not 0 <= partition < len(info.partitions) or epoch <= info.partitions[partition].leader_epoch:
            return False
        for node in nodes:
            self.nodes[node.id] = node
        if node_id not in self.nodes:
            return False
        old = info.partitions[partition]
        new = old._replace(leader=node_id, leader_epoch=epoch)
        self._topics[topic] = info._replace(partitions=(*info.partitions[:partition], new, *info.partitions[partition + 1 :]))
        self.version += 1
        return True

    def learn_node(self, node: Node) -> None:
        """Take over where a node is, such as a coordinator that FindCoordinator named."""
        if self.nodes.get(node.id, node)._replace(rack=None) != node._replace(rack=None) or node.id not in self.nodes:
            self.nodes[node.id] = node

    def learn_features(self, epoch: int, features: Mapping[str, int]) -> None:
        """Take over the finalized features that a node sent with its versions, unless newer ones are known."""
        if epoch >= self._features_epoch:
            self._features_epoch = epoch
            self.features = features

    def _due_ms(self) -> int:
        return 0 if self._new or self._is_all_new else self._full_due_ms()

    def _full_due_ms(self) -> int:
        if self._is_refresh_due or self._updated_ms is None:
            return self._not_before_ms
        return max(self._not_before_ms, self._updated_ms + self._settings.metadata_max_age_ms)

    def _retry(self, error: KafkaError, now_ms: int) -> None:
        self.failure = error
        self._new.clear()  # the next request is about everything, and no topic hurries it on
        self._is_all_new = False
        self._is_refresh_due = True
        self._not_before_ms = now_ms + self._backoff.failed()

    def _drop_idle(self, now_ms: int) -> None:
        if self._idle_max_ms is not None:
            limit_ms = now_ms - self._idle_max_ms
            self.unwant([name for name, used_ms in self._wanted.items() if used_ms < limit_ms])

    def _update(self, response: MetadataResponse, asked: list[str] | None, now_ms: int) -> None:
        self.nodes = {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers}
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        self._errors = {name: error for name, error in self._errors.items() if asked is not None and name not in asked}
        if asked is None:
            for name in set(self._topics) - {topic.name for topic in response.topics}:
                self._forget(name)
        for topic in response.topics:
            self._update_topic(topic, now_ms)
        for name in asked or ():
            if name not in self._topics and name not in self._errors:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                self._errors[name] = exception_of(code, f"topic {name}: the broker's answer about it cannot be used")
                self._refused.add(name)
        self.version += 1
        self.responses += 1

    def _update_topic(self, topic: MetadataResponseTopic, now_ms: int) -> None:
        name = topic.name
        if name is None:
            return
        if topic.error_code:
            self._errors[name] = exception_of(topic.error_code, _refusal(name, topic.error_code))
            self._refused.add(name)
            if topic.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
                self._forget(name)
            return
        old = self._topics.get(name)
        known = None if old is None else old.id
        if self._former_ids is not None and not self._former_ids.takes(name, topic.topic_id, known, now_ms):
            text = f"topic {name}: a broker that lags behind answered with the topic's former id {uuid_text(topic.topic_id)}"
            self._errors[name] = exception_of(ErrorCode.UNKNOWN_TOPIC_ID, text)
            self._refused.add(name)
            return
        if old is not None and old.id != topic.topic_id:
            self._forget(name)
            old = None
        partitions = sorted(topic.partitions, key=_index)
        if [each.partition_index for each in partitions] != list(range(len(partitions))):
            return  # a gap: the broker's answer cannot be used; the next one may be
        merged = tuple(_newer(old, each) for each in partitions)
        self._topics[name] = TopicInfo(name, topic.topic_id, topic.is_internal, merged)
        self._refused.discard(name)
        if topic.topic_id != ZERO_UUID:
            self._names[topic.topic_id] = name
        headless = [each.partition_index for each in partitions if each.error_code == ErrorCode.LEADER_NOT_AVAILABLE]
        if headless:
            self._errors.setdefault(name, exception_of(ErrorCode.LEADER_NOT_AVAILABLE, leaderless_text(name, headless)))

    def _forget(self, name: str) -> None:
        info = self._topics.pop(name, None)
        if info is not None:
            self._names.pop(info.id, None)
            if self._former_ids is None:
                self._former_ids = FormerIds()
            self._former_ids.forgotten(name, info.id)


def _index(partition: MetadataResponsePartition) -> int:
    return partition.partition_index


def _newer(old: TopicInfo | None, new: MetadataResponsePartition) -> PartitionInfo:
    """The partition as the response has it, unless what is known has a newer leader epoch."""
    if old is not None and new.partition_index < len(old.partitions) and new.leader_epoch >= 0:
        known = old.partitions[new.partition_index]
        if known.leader_epoch > new.leader_epoch:
            return known
    return PartitionInfo(
        new.partition_index,
        new.leader_id,
        new.leader_epoch,
        tuple(new.replica_nodes),
        tuple(new.isr_nodes),
        tuple(new.offline_replicas),
    )


def _refusal(topic: str, code: int) -> str:
    """Why a broker gives no metadata of a topic. Ends without a period: texts go on after it."""
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return f"topic {topic} does not exist: create it, or check its name"
    return f"topic {topic}: {error_meaning(code).rstrip('.')}"


def leaderless_text(topic: str, partitions: Sequence[int]) -> str:
    """`orders-1 and orders-2 have no leader now`."""
    return f"{listed([f'{topic}-{each}' for each in partitions])} {'has' if len(partitions) == 1 else 'have'} no leader now"
