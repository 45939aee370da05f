"""What a checker is told, and what it raises. Owns no invariant of its own.

Words: a record is *acknowledged* when a producer was told so with acks=1 or acks=all; it is *seen* when a consumer got it. An
*audit* is a reading of a whole partition, from its log start to its high watermark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.ids import Uuid


class Violation(AssertionError):
    """An invariant does not hold. The text says which, and of what."""


class SeenRecord(NamedTuple):
    """One record as a consumer got it."""

    offset: int
    value: bytes
    producer_id: int
    sequence: int
    key: bytes | None = None


@dataclass(eq=False)
class TopicPlan:
    """A topic that the run has made, and how it was set up."""

    name: str
    topic_id: Uuid
    partitions: int
    configs: dict[str, str] = field(default_factory=dict)
    is_leaving: bool = False
    """Whether it is being deleted: what is written to it now is nobody's concern."""

    @property
    def is_flushed(self) -> bool:
        """Whether every record of it is flushed before it is acknowledged or seen."""
        return self.configs.get("flush.messages") == "1"

    @property
    def is_compacted(self) -> bool:
        """Whether a record may go once there is a later one with its key."""
        return self.configs.get("cleanup.policy") == "compact"

    @property
    def is_retained(self) -> bool:
        """Whether records may go by themselves, oldest first."""
        return "retention.bytes" in self.configs


class Place(NamedTuple):
    """One partition of one topic."""

    topic: TopicPlan
    number: int

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.number}"


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
    """What a fetch answer tells of a partition."""

    log_start_offset: int
    last_stable_offset: int
    high_watermark: int


class Audit(NamedTuple):
    """A whole partition, read after the node has started."""

    place: Place
    log_start_offset: int
    high_watermark: int
    records: list[SeenRecord]
    markers: tuple[int, ...] = ()
    """The offsets of the control records among them."""


@dataclass(eq=False)
class Commit:
    """Offsets that somebody commits in one request. Groups never commit an offset twice, so that each tells its commit."""

    group: str
    protocol: str
    """"classic", "consumer" (also of classic members in mixed groups), "simple" (of no member), or "transaction" (counts when
    its transaction does)."""
    member: str
    instance: str | None
    epoch: int
    """The generation, or the member's epoch."""
    offsets: dict[Place, int]
    sent_s: float


@dataclass(eq=False)
class Deletion:
    """What a group has committed for one partition is deleted; or all of it, with the group."""

    group: str
    place: Place | None
    sent_s: float


class Assigned(NamedTuple):
    """What a member of a classic group was told by SyncGroup."""

    group: str
    generation: int
    member: str
    instance: str | None
    places: list[Place]
    requested_s: float
    answered_s: float


class Beat(NamedTuple):
    """An answered heartbeat of a member of a consumer group, and what it said; no `places` means what was said before.

    Of classic members in mixed groups: also what SyncGroup said, and then they have joined anew.
    """

    group: str
    member: str
    epoch: int
    places: list[Place] | None
    requested_s: float
    answered_s: float
    is_joined: bool = False


@dataclass(eq=False)
class Transaction:
    """A transaction that some producer has begun."""

    name: str
    transactional_id: str


class Handed(NamedTuple):
    """A transactional id's producer id and epoch, as an instance was told."""

    transactional_id: str
    producer_id: int
    epoch: int
    requested_s: float
    answered_s: float


class Checker:
    """Base of all checkers: hears everything, minds nothing."""

    def sent(self, batch: Batch) -> None:
        """A batch is about to be sent, for the first time or again."""

    def acknowledged(self, batch: Batch, base_offset: int) -> None:
        """A producer was told that its batch is written, the first record at `base_offset`."""

    def out_of_step(self, batch: Batch, code: int) -> None:
        """An idempotent producer was told that the sequence of its oldest unanswered batch is wrong."""

    def seen(self, place: Place, records: list[SeenRecord]) -> None:
        """A consumer got these records, in one answer."""

    def watermarks_answered(self, connection: str, place: Place, marks: Watermarks) -> None:
        """A fetch was answered. Answers of one `connection` come in the order in which the node gave them."""

    def deletion_requested(self, place: Place, offset: int) -> None:
        """A client is about to ask that records below `offset` be deleted."""

    def clock_set(self, off_s: float, at_s: float) -> None:
        """The node's wall clock is so far off the true time from now on."""

    def power_lost(self) -> None:
        """The machine has lost its power. Nobody writes until all has been audited."""

    def audited(self, audit: Audit) -> None:
        """A partition was read whole."""

    def producer_id_given(self, producer_id: int, epoch: int) -> None:
        """A client asked for a producer id and got this one."""

    def quorum_answered(self, leader_epoch: int, high_watermark: int) -> None:
        """The state of the metadata log, as told to one client; each is told in order."""

    # Groups

    def commit_sent(self, commit: Commit) -> None:
        """Offsets are about to be committed. In a transaction: its commit is about to be asked for."""

    def commit_acknowledged(self, commit: Commit, places: list[Place], answered_s: float) -> None:
        """The answer: these offsets are committed."""

    def commit_refused(self, commit: Commit, places: list[Place]) -> None:
        """The answer: these are not, for what the member or its epoch is."""

    def deletion_sent(self, deletion: Deletion) -> None:
        """Offsets, or a group, are about to be deleted."""

    def deletion_acknowledged(self, deletion: Deletion, answered_s: float) -> None:
        """The answer: they are."""

    def deletion_refused(self, deletion: Deletion) -> None:
        """The answer: they are not, and will not be."""

    def offsets_answered(self, group: str, found: dict[Place, int], requested_s: float, answered_s: float) -> None:
        """The committed offsets of a group, none of them about to change within a transaction; -1 where there is none."""

    def generation_assigned(self, assigned: Assigned) -> None:
        """A member of a classic group was told its part."""

    def heartbeat_answered(self, beat: Beat) -> None:
        """A member of a consumer group was told its epoch and, maybe, its part."""

    def given_up(self, group: str, member: str, places: list[Place]) -> None:
        """A member of a consumer group is about to say that it does not hold these any more, or that it goes."""

    def member_fenced(self, group: str, member: str) -> None:
        """A member of a consumer group was told that it is none."""

    # Transactions

    def transaction_wrote(self, transaction: Transaction, batch: Batch) -> None:
        """A batch of it is about to be sent."""

    def commit_requested(self, transaction: Transaction) -> None:
        """All of it is acknowledged, and its commit is about to be asked for."""

    def commit_answered(self, transaction: Transaction) -> None:
        """It is committed, its producer was told."""

    def producer_handed(self, handed: Handed) -> None:
        """An instance was given a transactional id, or its next epoch at the end of a transaction."""

    def producer_obeyed(self, transactional_id: str, producer_id: int, epoch: int, sent_s: float) -> None:
        """Something that only the present producer of a transactional id may do was done for this one."""

    def seen_committed(self, place: Place, start: int, end: int, records: list[SeenRecord]) -> None:
        """These, and no others, are what a reader of committed records got from `start` up to `end`."""

    def stability_answered(self, place: Place, last_stable_offset: int, high_watermark: int, waited_s: float) -> None:
        """So far a partition is stable, so long after the node's last start, while nobody writes."""

    def transformed(self, app: str, origin: Place, offset: int, value: bytes) -> None:
        """An app makes `value` of the record at `offset` of its input, and is about to write it."""

    def audited_committed(self, place: Place, records: list[SeenRecord]) -> None:
        """A whole partition as a reader of committed records gets it, in the end."""

    def app_ended(self, app: str, offsets: dict[Place, int]) -> None:
        """How far an app has come by what it committed, in the end, after all was audited."""

    # Topics

    def topic_made(self, topic: TopicPlan) -> None:
        """A topic was made, and acknowledged."""

    def topic_changed(self, topic: TopicPlan) -> None:
        """Partitions or configs of a topic were changed, and acknowledged."""

    def topic_deleted(self, topic: TopicPlan) -> None:
        """A topic was deleted, and acknowledged."""

    def topics_answered(self, found: dict[str, tuple[Uuid, int]], configs: dict[str, dict[str, str]]) -> None:
        """All topics as the node tells them while no change is under way: id and partition count, and what is configured."""


class Checkers(Checker):
    """Tells each of several. Written out by means of the base: whatever it can be told, all of them are."""

    def __init__(self, checkers: list[Checker]) -> None:
        self.all = checkers


def _forwarding(name: str) -> object:
    def tell(self: Checkers, *what: object) -> None:
        for checker in self.all:
            getattr(checker, name)(*what)

    return tell


for _name in [name for name in vars(Checker) if not name.startswith("_")]:
    setattr(Checkers, _name, _forwarding(_name))
