"""What a step of the replica asks its host to do. The host carries effects out in the order of the list.

`Persist` comes first in its step: nothing that another replica can see leaves before the election is durable. `Truncate` and
`StoreSnapshot` are awaited before the next effect and before the next event. `Sync` is started and not awaited: its end is the
event `Replica.synced`, and a follower fetches again only then. So a Fetch acknowledges durable records only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.raft.election import ElectionState
from ottla.raft.snapshots import SnapshotId
from ottla.records.control import ControlRecord
from ottla.wire.base import Message


class Destination(NamedTuple):
    """A node to send to. Bootstrap servers have ids below -1: their real ids are not known."""

    id: int
    host: str
    port: int


class Persist(NamedTuple):
    """Write the election to quorum-state and sync it, before any other effect."""

    election: ElectionState


class AppendControls(NamedTuple):
    """The leader appends control records of its epoch, as one batch at the log end."""

    controls: tuple[ControlRecord, ...]
    epoch: int


class AppendFetched(NamedTuple):
    """Append batches that were fetched from the leader of `epoch`, up to the first that is damaged or of a later epoch."""

    data: Any
    epoch: int


class Truncate(NamedTuple):
    """Remove the records from `offset` on."""

    offset: int


class Sync(NamedTuple):
    """Make the log durable; `Replica.synced` follows."""


class Send(NamedTuple):
    """Send a request. `Replica.received` or `Replica.failed` follows, once."""

    destination: Destination
    message: Message
    correlation: int


class Answer(NamedTuple):
    """Answer a request that came in with `token`."""

    token: object
    message: Message


class AnswerWithRecords(NamedTuple):
    """Answer a Fetch with the records from `offset` to the log end, at most `max_bytes` of them beyond the first batch."""

    token: object
    message: Message
    offset: int
    max_bytes: int


class AnswerWithSnapshot(NamedTuple):
    """Answer a FetchSnapshot with a piece of a snapshot."""

    token: object
    message: Message
    snapshot_id: SnapshotId
    position: int
    max_bytes: int


class StoreSnapshot(NamedTuple):
    """Append a fetched piece at `position`. The last piece completes the snapshot, and the log starts at it from then on."""

    snapshot_id: SnapshotId
    position: int
    data: Any
    is_last: bool


class Committed(NamedTuple):
    """All records below `offset` are committed."""

    offset: int


class LeaderChanged(NamedTuple):
    """The leader, or its epoch, is another one. `leader_id` is -1 while it is unknown."""

    leader_id: int
    epoch: int


class Disbelieved(NamedTuple):
    """A request was refused that no honest node sends: the operator should hear of it."""

    problem: str


Effect = (
    Persist
    | AppendControls
    | AppendFetched
    | Truncate
    | Sync
    | Send
    | Answer
    | AnswerWithRecords
    | AnswerWithSnapshot
    | StoreSnapshot
    | Committed
    | LeaderChanged
    | Disbelieved
)
