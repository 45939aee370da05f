"""The contract between a coordinator's state machine (the shard) and its runtime.

A shard is the state of one partition of an internal topic. It does no IO. The runtime (`broker/runtime`) passes it requests,
the time and records to replay; the shard returns `Effects`. The rules:

- Durable state is in records. A decision reads the state and returns records; only `replay` changes the durable state. The
  runtime replays the records of a decision at once, in order, before the next call to the shard, so the next decision builds
  on them. Loading replays the same records, and must give the same state.
- Decisions change state that need not survive (parked replies, session deadlines) directly.
- The runtime sends an answer when everything written before it is committed, also an answer without records. So no client sees
  a state that could be lost.
- A decision refuses a request by raising `KafkaError`. It must not have changed anything by then.
- Records may be too large for the topic. Then nothing has changed, and the caller gets an error. A decision that had to change
  state before its records were replayed sets `is_bound`; then the shard is loaded again.
- If records cannot be written, the runtime drops the shard, fails all parked requests, and loads the shard again.
- If records are written but not committed in time, the runtime fails the answers that wait for them. The shard is not told: its
  state is that of its log. A client may send its request again, so the repeat of an answered request must be decided right.
- Time is an argument. A shard sets no timer: `next_deadline_ms` says when the runtime must call `expire`.
- Nothing iterates over sets where order matters: the same input gives the same output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.errors import KafkaError
from ottla.wire.base import Message
from ottla.wire.log_records import LogRecord

if TYPE_CHECKING:
    from ottla.records.kernels import Record


class Instant(NamedTuple):
    """The current time, by both clocks."""

    wall_ms: int
    """For times in records."""
    steady_ms: int
    """For timeouts: monotonic, and meaningless to another process."""


class CoordinatorRecord(NamedTuple):
    """One record of an internal topic; `value` None is a tombstone."""

    key: Message
    value: LogRecord | None
    """The message and the version it is written in."""


def put(key: Message, value: Message, version: int = 0) -> CoordinatorRecord:
    """The record that sets `key` to `value`, written in `version` of its schema."""
    return CoordinatorRecord(key, LogRecord(value, version))


def tombstone(key: Message) -> CoordinatorRecord:
    """The record that removes `key`."""
    return CoordinatorRecord(key, None)


class Producer(NamedTuple):
    """A producer of transactional records: its id and epoch."""

    id: int
    epoch: int


class Caller(NamedTuple):
    """The client that sent a request, and the request's version."""

    client_id: str
    host: str
    """The address behind a slash, as Kafka shows it."""
    version: int
    may_describe: Callable[[str], bool] | None = None
    """Whether it may describe a topic, asked within a decision; None: any topic."""
    rules_version: int = 0
    """Changes when the answers of `may_describe` may have changed."""


class Reply:
    """The destination of an answer. A shard keeps it as an opaque token and returns it; each is answered once."""

    __slots__ = ()


class Answer(NamedTuple):
    """A response to send to `reply` once everything written before it is committed."""

    reply: Reply
    response: Any
    """The response; or a `KafkaError`, which the API's handler turns into one."""


class Effects:
    """The result of a decision: records to append as one batch, then answers to send and orders to carry out."""

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
        """Work for the runtime once the records are committed; shard and runtime agree on the types."""
        self.producer = producer
        """The records belong to this producer's transaction."""
        self.may_split = may_split
        """The records are independent: if they do not fit into one batch, the runtime may use several."""
        self.is_bound = is_bound
        """The shard already has the state of the records: if they cannot be written, it must be loaded again."""

    @classmethod
    def answer(cls, reply: Reply, response: Any, records: list[CoordinatorRecord] | None = None) -> Effects:
        """Answer one request, after `records`."""
        return cls(records, [Answer(reply, response)])

    def add(self, other: Effects) -> None:
        """Append `other`, in the same batch. Not for records of a transaction, which need a batch of their own."""
        assert self.producer is other.producer is None, "a transaction's records need a batch of their own"
        self.records += other.records
        self.answers += other.answers
        self.orders += other.orders
        self.may_split = self.may_split and other.may_split
        self.is_bound = self.is_bound or other.is_bound


class FastReplay(Protocol):
    """The fast path of loading: replays records of frequent kinds from their bytes, without decoding messages."""

    def replay(self, records: Sequence[Record], at: int, producer: Producer | None) -> int:
        """Replay `records` from index `at` on. Returns the index of the first that needs the general path, or their number.

        The state must be the same as after `Shard.replay` of each decoded record. The caller passes the record at the
        returned index to `Shard.replay`.
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
        """The steady time at which the runtime must call `expire`; None if there is no deadline."""
        ...

    def replay(self, record: CoordinatorRecord, offset: int, producer: Producer | None) -> None:
        """Apply a record that is, or will be, in the log at `offset`. `producer` is given if it belongs to a transaction."""
        ...

    def replay_end(self, producer: Producer, is_commit: bool) -> None:
        """The transaction of `producer` has ended in this partition."""
        ...

    def fast_replay(self) -> FastReplay:
        """The fast path of loading for this shard; used for one load."""
        ...

    def refuse_waiting(self, failure: KafkaError) -> Iterable[Answer]:
        """Answers with `failure` for all parked requests: the runtime drops the shard."""
        ...

    def loaded(self, now: Instant) -> Effects:
        """All records have been replayed: begin to serve."""
        ...

    def expire(self, now: Instant) -> Effects:
        """Do what is due. The runtime calls it again at once while more is due."""
        ...
