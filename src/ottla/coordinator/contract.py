"""What a coordinator's state machine and whoever hosts it owe each other.

A shard is the state of one partition of an internal topic: a state machine without a world. The host (`broker/hosts`) hands it
requests, the time, and records to replay; the shard hands back `Effects`. Its rules:

- Whatever must survive is a record. A decision looks at the state and returns records; only `replay` changes what records tell.
  The host replays the records of a decision at once, in order, before anything else is asked of the shard, and so the next
  decision builds on them. Loading replays the same records, and must lead to the same state.
- What need not survive (who waits for an answer, when a session ends) is changed by decisions directly.
- An answer leaves when everything that was written before it is committed. That holds for answers without records too: so
  nobody is ever told of a state that might be lost.
- A refusal is a `KafkaError` that the decision raises. It must not have changed anything by then.
- Records may be too large for the topic. Then nothing has happened, and whoever asked is told; unless the decision could not
  but change what its records tell, and says so (`is_bound`).
- If records cannot be written, the host drops the shard with all it holds, fails those who wait, and loads it again.
- Time is handed in. A shard sets no timer: `next_deadline_ms` says when `expire` wants to be called.
- Nothing iterates over sets where order matters: the same input gives the same output.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.errors import KafkaError
from ottla.wire.base import Message
from ottla.wire.log_records import LogRecord

if TYPE_CHECKING:
    from ottla.records.kernels import Record


class Instant(NamedTuple):
    """Now, by both clocks."""

    wall_ms: int
    """For what is written down."""
    steady_ms: int
    """For timeouts: it never jumps, and means nothing to another process."""


class CoordinatorRecord(NamedTuple):
    """One record of an internal topic; `value` None is a tombstone."""

    key: Message
    value: LogRecord | None
    """The message and the version it is written in."""


def put(key: Message, value: Message, version: int = 0) -> CoordinatorRecord:
    """The record that sets `key` to `value`, written in `version` of its schema."""
    return CoordinatorRecord(key, LogRecord(value, version))


def tombstone(key: Message) -> CoordinatorRecord:
    """The record that takes `key` away."""
    return CoordinatorRecord(key, None)


class Producer(NamedTuple):
    """Who writes records that belong to a transaction."""

    id: int
    epoch: int


class Caller(NamedTuple):
    """Who asks, and in which version of the request."""

    client_id: str
    host: str
    """As it is shown to people: an address behind a slash, as Kafka writes it."""
    version: int


class Reply:
    """Where an answer goes. To a shard it is a token to keep and to hand back; each is answered once."""

    __slots__ = ()


class Answer(NamedTuple):
    """What `reply` is told once everything that was written before is committed."""

    reply: Reply
    response: Any
    """The response; or a `KafkaError`, of which the API's handler makes one."""


class Effects:
    """What a decision wants done: records appended as one batch, then answers given and orders carried out."""

    __slots__ = ("answers", "is_bound", "may_split", "orders", "producer", "records")

    def __init__(
        self,
        records: list[CoordinatorRecord] | None = None,
        answers: list[Answer] | None = None,
        *,
        orders: list[Any] | None = None,
        producer: Producer | None = None,
        may_split: bool = False,
        is_bound: bool = False,
    ) -> None:
        self.records: list[CoordinatorRecord] = [] if records is None else records
        self.answers: list[Answer] = [] if answers is None else answers
        self.orders: list[Any] = [] if orders is None else orders
        """What the host shall do when the records are committed, in words that shard and host agree on."""
        self.producer = producer
        """The records belong to this producer's transaction."""
        self.may_split = may_split
        """Each record stands on its own: where they do not fit into one batch, they may be put into several."""
        self.is_bound = is_bound
        """What the records tell is in the shard already: if they cannot be written, it has to be loaded again."""

    @classmethod
    def answer(cls, reply: Reply, response: Any, records: list[CoordinatorRecord] | None = None) -> Effects:
        """Answer one request, after `records`."""
        return cls(records, [Answer(reply, response)])

    def add(self, other: Effects) -> None:
        """Let `other` follow, in the same batch. Not for records of transactions: they have batches of their own."""
        assert self.producer is other.producer is None, "a transaction's records need a batch of their own"
        self.records += other.records
        self.answers += other.answers
        self.orders += other.orders
        self.may_split = self.may_split and other.may_split
        self.is_bound = self.is_bound or other.is_bound


class FastReplay(Protocol):
    """Replays records from their bytes, for loading: most are of few kinds, and need not be decoded into messages."""

    def replay(self, records: Sequence[Record], at: int, producer: Producer | None) -> int:
        """Replay `records` from index `at` on, up to the first that it declines: its index, or how many there are.

        The state must be as if each had been decoded and given to `Shard.replay`, which is what the caller then does with
        the one that is declined.
        """
        ...


class NoFastReplay:
    """Declines every record, for shards that have no fast replay."""

    __slots__ = ()

    def replay(self, records: Sequence[Record], at: int, producer: Producer | None) -> int:
        return at


class Shard(Protocol):
    """The state of one partition of an internal topic."""

    @property
    def next_deadline_ms(self) -> int | None:
        """When (steady) `expire` wants to be called; None if nothing runs out."""
        ...

    def replay(self, record: CoordinatorRecord, offset: int, producer: Producer | None) -> None:
        """Take over a record that is in the log at `offset`, or will be; of `producer`'s transaction, if it belongs to one."""
        ...

    def replay_end(self, producer: Producer, is_commit: bool) -> None:
        """The transaction of `producer` has ended in this partition."""
        ...

    def fast_replay(self) -> FastReplay:
        """What replays records of this shard from their bytes, for as long as it is loaded."""
        ...

    def refuse_waiting(self, failure: KafkaError) -> Iterable[Answer]:
        """To whoever is kept waiting for something to happen: the shard is given up, and `failure` says why."""
        ...

    def loaded(self, now: Instant) -> Effects:
        """Every record there is has been replayed: begin to serve."""
        ...

    def expire(self, now: Instant) -> Effects:
        """Do what is due by now. Called again at once while something more is."""
        ...
