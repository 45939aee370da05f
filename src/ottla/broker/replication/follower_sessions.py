"""A follower's fetch session: which of its partitions the next response has to look at.

A follower fetches thousands of partitions in one session, and most of them have no news. A partition in which there is nothing
to say *rests*: the follower is at the log's end and in sync, and has been sent the high watermark and the log start offset.
Requests and retries look only at the others, so a fetch costs what has changed, not what is followed.

Every fetch still refreshes the time at which the replica was last caught up, in every partition: where it rests, that time is
the session's own (`fetched_s`). Whatever changes a partition ends its rest first: an append, a new high watermark or log start
offset, another ISR, leader or epoch, and a request that names it (`FetchedPartition.look`). A change that nobody has noted is
found by `recheck`, which the search for lagging replicas calls.

One event loop, plain calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ottla.broker.fetch_sessions import FetchedPartition
    from ottla.broker.purgatory.delayed_fetch import DelayedFetch


class FollowerWatch(Protocol):
    """A follower's fetch session with a partition, or its parked fetch without a session."""

    def look(self) -> DelayedFetch | None:
        """The partition has changed, and must be looked at with the next try. Returns the parked fetch, if there is one."""
        ...

    def recheck(self) -> None:
        """The partition may have changed unnoticed."""
        ...

    def leave_to(self, replica_id: int) -> None:
        """A newer session of that replica watches the partition."""
        ...


class FollowerSession:
    """The session of one follower, as far as its partitions' replicas are concerned."""

    __slots__ = ("broker_epoch", "dirty", "fetched_s", "parked", "replica_id")

    def __init__(self, replica_id: int, broker_epoch: int, now_s: float) -> None:
        self.replica_id = replica_id
        self.broker_epoch = broker_epoch
        """The broker epoch of the last request."""
        self.dirty: dict[FetchedPartition, None] = {}
        """The partitions to look at, longest waiting first."""
        self.fetched_s = now_s
        """When the last request came."""
        self.parked: DelayedFetch | None = None
        """The request that waits for news."""

    def look_at(self, wanted: FetchedPartition) -> None:
        """Look at a partition of the session with the next try."""
        if wanted not in self.dirty:
            self.dirty[wanted] = None
            remote, wanted.resting = wanted.resting, None
            if remote is not None:
                remote.stop_resting()

    def rest(self) -> None:
        """Look no more at the partitions in which there is nothing left to say."""
        for wanted in [each for each in self.dirty if self.is_settled(each)]:
            del self.dirty[wanted]
            partition = wanted.partition
            assert partition is not None
            assert partition.in_sync is not None
            wanted.resting = partition.in_sync.remote[self.replica_id]
            wanted.resting.rest_in(self)

    def is_settled(self, wanted: FetchedPartition) -> bool:
        """Whether another fetch from the same place would change nothing but the time of the last fetch."""
        partition = wanted.partition
        if partition is None or not partition.is_leading or wanted.leader_epoch != partition.leader_epoch:
            return False
        log, in_sync = partition.log, partition.in_sync
        return (
            in_sync is not None
            and wanted.fetch_offset == log.log_end_offset
            and wanted.sent_high_watermark == log.high_watermark
            and wanted.sent_log_start == log.log_start_offset
            and (wanted.last_fetched_epoch < 0 or wanted.agreed_epoch == partition.leader_epoch)
            and self.replica_id in partition.isr  # else each of its fetches may let it in
            and in_sync.ends.get(self.replica_id) == wanted.fetch_offset
            and in_sync.remote[self.replica_id].broker_epoch == self.broker_epoch
        )

    def recheck(self, wanted: FetchedPartition) -> None:
        """Look at a partition again if it has changed unnoticed."""
        if wanted not in self.dirty and not self.is_settled(wanted):
            self.look_at(wanted)

    # Partitions of the session

    def watch(self, wanted: FetchedPartition) -> None:
        """Have the partition end its rest when it changes. An older session of the same replica does not see it any more."""
        partition = wanted.partition
        if partition is None:
            return
        for other in list(partition.follower_watches):
            if other is not wanted:
                other.leave_to(self.replica_id)
        partition.follower_watches[wanted] = None

    def unwatch(self, wanted: FetchedPartition) -> None:
        """The partition is not looked up yet, has another object now, or is not in the session any more."""
        self.look_at(wanted)
        if wanted.partition is not None:
            wanted.partition.follower_watches.pop(wanted, None)

    def drop(self, wanted: FetchedPartition) -> None:
        """The partition is in the session no more."""
        self.unwatch(wanted)
        del self.dirty[wanted]
