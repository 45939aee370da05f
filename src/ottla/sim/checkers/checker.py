"""The interface of checkers: the events they get, and `Violation`, which they raise. Checks nothing itself.

A record is *acknowledged* when a producer with acks=1 or acks=all got the answer, and *seen* when a consumer got the record. An
*audit* reads a whole partition, from its log start to its high watermark. `requested_s` and `answered_s` are the virtual times
at which a request was sent and its answer arrived.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.ids import TopicPartition, Uuid


class Violation(AssertionError):
    """An invariant does not hold. The text says which one and where."""


class SeenRecord(NamedTuple):
    """One record as a consumer got it."""

    offset: int
    value: bytes
    key: bytes | None = None


@dataclass(eq=False)
class TopicPlan:
    """A topic that the run has created, with its settings."""

    name: str
    topic_id: Uuid
    partitions: int
    configs: dict[str, str] = field(default_factory=dict)
    is_leaving: bool = False
    """Whether it is being deleted: later writes to it are not checked."""

    @property
    def is_flushed(self) -> bool:
        """Whether every record is flushed before it is acknowledged or seen."""
        return self.configs.get("flush.messages") == "1"

    @property
    def is_compacted(self) -> bool:
        """Whether a record may be removed once there is a later one with its key."""
        return self.configs.get("cleanup.policy") == "compact"

    @property
    def is_retained(self) -> bool:
        """Whether retention may delete records, oldest first."""
        return "retention.bytes" in self.configs


class Place(NamedTuple):
    """One partition of one topic."""

    topic: TopicPlan
    number: int

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.number}"

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic.name, self.number)


@dataclass(eq=False)
class Batch:
    """Records that a producer sends together. `number` counts its batches to one partition."""

    producer: str
    place: Place
    number: int
    values: list[bytes]
    keys: list[bytes | None]
    is_idempotent: bool
    acks: int


class Watermarks(NamedTuple):
    """The offsets of a partition in a Fetch response."""

    log_start_offset: int
    last_stable_offset: int
    high_watermark: int


class Audit(NamedTuple):
    """A whole partition, read after a start of the node or at the end of the run."""

    place: Place
    log_start_offset: int
    high_watermark: int
    records: list[SeenRecord]
    markers: tuple[int, ...] = ()
    """The offsets of the control records among them."""


@dataclass(eq=False)
class Commit:
    """The offsets of one commit request. No group commits an offset twice, so an offset identifies its commit."""

    group: str
    protocol: str
    """"classic", "consumer" (also for classic members of mixed groups), "simple" (without membership), or "transaction" (takes
    effect when its transaction commits)."""
    member: str
    instance: str | None
    epoch: int
    """The generation, or the member's epoch."""
    offsets: dict[Place, int]
    sent_s: float


@dataclass(eq=False)
class Deletion:
    """The deletion of a group's offset for one partition, or (`place` is None) of the whole group."""

    group: str
    place: Place | None
    sent_s: float


class Assigned(NamedTuple):
    """The assignment of a member of a classic group, from its SyncGroup answer."""

    group: str
    generation: int
    member: str
    instance: str | None
    places: list[Place]
    requested_s: float
    answered_s: float


class Beat(NamedTuple):
    """An answered heartbeat of a member of a consumer group. `places` is None if the assignment did not change.

    For classic members of mixed groups also a SyncGroup answer. `is_joined` is set for these, and where the member joined.
    `is_heard` is not set if the node that answered was no longer the group's coordinator, and may not have known it; and if it
    may have been loading the group, since a Heartbeat succeeds then for every member.
    """

    group: str
    member: str
    epoch: int
    places: list[Place] | None
    requested_s: float
    answered_s: float
    is_joined: bool = False
    is_heard: bool = True


@dataclass(eq=False)
class Transaction:
    """A transaction that a producer has begun."""

    name: str
    transactional_id: str


class Handed(NamedTuple):
    """The producer id and epoch of a transactional id that an instance got."""

    transactional_id: str
    producer_id: int
    epoch: int
    requested_s: float
    answered_s: float


class Checker:
    """The base class of all checkers: gets every event and ignores it."""

    def sent(self, batch: Batch) -> None:
        """A batch is about to be sent, for the first time or again."""

    def acknowledged(self, batch: Batch, base_offset: int) -> None:
        """A producer's batch was acknowledged, with its first record at `base_offset`."""

    def out_of_step(self, batch: Batch, code: int) -> None:
        """The sequence of an idempotent producer's oldest unanswered batch was refused."""

    def seen(self, place: Place, records: list[SeenRecord]) -> None:
        """A consumer got these records, in one answer."""

    def passed_over(self, reader: str, place: Place, start: int, end: int, is_committed: bool) -> None:
        """A consumer got the records before `start` and at `end`, and none between. `is_committed`: it is read_committed."""

    def handed_out(self, group: str, place: Place, records: list[SeenRecord]) -> None:
        """A member of a group with automatic commits got these records."""

    def reading_ended(self, group: str, offsets: dict[Place, int]) -> None:
        """The committed offsets of such a group at the end of the run, after all partitions were audited."""

    def watermarks_answered(self, connection: str, place: Place, marks: Watermarks) -> None:
        """A fetch was answered. Answers of one `connection` come in the order in which the node sent them."""

    def deletion_requested(self, place: Place, offset: int) -> None:
        """A client is about to request the deletion of records below `offset`."""

    def clock_set(self, off_s: float, at_s: float) -> None:
        """From now on the node's wall clock differs from the true time by `off_s`."""

    def power_lost(self) -> None:
        """The machine has lost power. No client writes until every partition was audited."""

    def audited(self, audit: Audit) -> None:
        """A whole partition was read."""

    def producer_id_given(self, producer_id: int, epoch: int) -> None:
        """A client without a transactional id got this producer id."""

    def quorum_answered(self, leader_epoch: int, high_watermark: int) -> None:
        """DescribeQuorum was answered. Answers come in the order in which the node sent them."""

    # Groups

    def commit_sent(self, commit: Commit) -> None:
        """A commit request is about to be sent; for a transaction, the request that commits it."""

    def commit_acknowledged(self, commit: Commit, places: list[Place], answered_s: float) -> None:
        """The answer: the offsets of `places` are committed."""

    def commit_refused(self, commit: Commit, places: list[Place]) -> None:
        """The answer: the offsets of `places` are refused, because of the member or its epoch."""

    def deletion_sent(self, deletion: Deletion) -> None:
        """A deletion of offsets or of a group is about to be sent."""

    def deletion_acknowledged(self, deletion: Deletion, answered_s: float) -> None:
        """The answer: they are deleted."""

    def deletion_refused(self, deletion: Deletion) -> None:
        """The answer: the deletion is refused and has no effect."""

    def offsets_answered(
        self, group: str, found: dict[Place, int], requested_s: float, answered_s: float, is_deposed: bool = False
    ) -> None:
        """OffsetFetch with require_stable was answered: the committed offsets of a group; -1 means none.

        `is_deposed`: by a node that was no longer the group's coordinator, and may not have known it.
        """

    def generation_assigned(self, assigned: Assigned) -> None:
        """A member of a classic group got its assignment."""

    def heartbeat_answered(self, beat: Beat) -> None:
        """A member of a consumer group got its epoch and perhaps an assignment."""

    def given_up(self, group: str, member: str, places: list[Place]) -> None:
        """A member of a consumer group is about to report that it has released these, or that it leaves."""

    def member_fenced(self, group: str, member: str) -> None:
        """A member of a consumer group was refused as unknown or fenced."""

    # Transactions

    def transaction_wrote(self, transaction: Transaction, batch: Batch) -> None:
        """A batch of the transaction is about to be sent."""

    def commit_requested(self, transaction: Transaction) -> None:
        """All batches are acknowledged, and EndTxn with commit is about to be sent."""

    def commit_answered(self, transaction: Transaction) -> None:
        """EndTxn was answered: the transaction is committed."""

    def producer_handed(self, handed: Handed) -> None:
        """An instance got the producer of a transactional id, or its next epoch at the end of a transaction."""

    def producer_obeyed(self, transactional_id: str, producer_id: int, epoch: int, sent_s: float) -> None:
        """A request that only the current producer of a transactional id may make succeeded for this producer."""

    def seen_committed(self, place: Place, start: int, end: int, records: list[SeenRecord]) -> None:
        """A read_committed consumer got exactly these records from `start` up to `end`."""

    def stability_answered(self, place: Place, last_stable_offset: int, high_watermark: int, waited_s: float) -> None:
        """The last stable offset of a partition, `waited_s` after all clients stopped writing."""

    def transformed(self, app: str, origin: Place, offset: int, value: bytes) -> None:
        """An app has made `value` from the record at `offset` of its input, and is about to write it."""

    def audited_committed(self, place: Place, records: list[SeenRecord]) -> None:
        """A whole partition as a read_committed consumer gets it, at the end of the run."""

    def app_ended(self, app: str, offsets: dict[Place, int]) -> None:
        """The committed offsets of an app at the end of the run, after all partitions were audited."""

    # Topics

    def topic_made(self, topic: TopicPlan) -> None:
        """A topic was created, and that was acknowledged."""

    def topic_changed(self, topic: TopicPlan) -> None:
        """Partitions or configs of a topic were changed, and that was acknowledged."""

    def topic_deleted(self, topic: TopicPlan) -> None:
        """A topic was deleted, and that was acknowledged."""

    def topics_answered(self, found: dict[str, tuple[Uuid, int]], configs: dict[str, dict[str, str]]) -> None:
        """All topics that the node reports while none is being changed: id and partition count, and configs."""


class Checkers(Checker):
    """Forwards every event to several checkers. The methods are generated from those of `Checker`, below."""

    def __init__(self, checkers: list[Checker]) -> None:
        self.all = checkers


def _forwarding(name: str) -> object:
    def forward(self: Checkers, *what: object) -> None:
        for checker in self.all:
            getattr(checker, name)(*what)

    return forward


for _name in [name for name in vars(Checker) if not name.startswith("_")]:
    setattr(Checkers, _name, _forwarding(_name))
