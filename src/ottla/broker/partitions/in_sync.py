"""The replicas of a partition as its leader sees them: how far each is, and who is in sync. Pure.

`InSyncReplicas` holds the ISR of the metadata, the one change to it that the controller was asked for and has not answered, and
what followers' fetches have shown. It decides for which replicas the high watermark waits and which change of the ISR is due.

    maximal ISR    the ISR of the metadata, and replicas of a pending change. The controller may already have added those: it
                   could elect them. A replica that a pending change removes stays in it until the change is committed.
    caught up      had all records of the leader within the last replica.lag.time.max.ms (lag).

The high watermark waits for the maximal ISR and for replicas that are caught up and could join it: under steady load a replica
would otherwise never get to a high watermark that runs ahead of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ottla.broker.replication.follower_sessions import FollowerSession

NO_BROKER_EPOCH: Final = -1
_NEVER: Final = float("-inf")

IsEligible = Callable[[int, int], bool]
"""Whether the replica with this id, which fetched with this broker epoch, may be in the ISR: registered so, and not fenced."""


class Change(NamedTuple):
    """A change of the ISR that the controller is asked for."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    broker_epochs: tuple[int, ...]
    """Of the replicas in `isr`, when they were found in sync. A process that has restarted since may have lost its log."""
    before: tuple[int, ...] = ()
    """The ISR when the change was asked for."""

    @property
    def is_expansion(self) -> bool:
        """Whether it adds a replica; else it removes some."""
        return len(self.isr) > len(self.before)


class RemoteReplica:
    """What fetches have shown of one other replica. Its log end offset is in `InSyncReplicas.ends`."""

    __slots__ = (
        "_caught_up_s",
        "_mark_end",
        "_mark_s",
        "_resting_in",
        "broker_epoch",
        "fetched_end",
        "fetched_s",
        "log_start_offset",
    )

    def __init__(self, caught_up_s: float) -> None:
        self._caught_up_s = caught_up_s
        self._resting_in: FollowerSession | None = None
        """The session whose fetches find the replica at the log's end, without looking at the partition."""
        self.fetched_s = _NEVER
        self.fetched_end = -1
        """The leader's log end offset at its last fetch."""
        self._mark_s, self._mark_end = _NEVER, -1
        """A fetch, and the leader's log end offset then, that the replica has not reached yet."""
        self.broker_epoch = NO_BROKER_EPOCH
        self.log_start_offset = -1

    @property
    def caught_up_s(self) -> float:
        """When it last had everything that the leader had then."""
        resting_in = self._resting_in
        return self._caught_up_s if resting_in is None else max(self._caught_up_s, resting_in.fetched_s)

    def caught_up_at(self, now_s: float) -> None:
        self._caught_up_s = max(self._caught_up_s, now_s)

    def fetched(self, offset: int, log_start_offset: int, broker_epoch: int, leader_end: int, now_s: float) -> None:
        self.stop_resting()
        if offset >= leader_end:
            self.caught_up_at(now_s)
        elif offset >= self.fetched_end:
            self.caught_up_at(self.fetched_s)  # it has what the leader had at its last fetch
        elif offset >= self._mark_end:
            self.caught_up_at(self._mark_s)  # several answers behind, but it keeps pace: Kafka would drop it
        if offset >= self._mark_end:
            self._mark_s, self._mark_end = now_s, leader_end
        self.fetched_s, self.fetched_end = now_s, leader_end
        self.log_start_offset, self.broker_epoch = log_start_offset, broker_epoch

    def rest_in(self, session: FollowerSession) -> None:
        """The replica is at the log's end, and every fetch of `session` is one of this partition, until `stop_resting`."""
        self._resting_in = session

    def stop_resting(self) -> None:
        """The partition is about to change, or has changed since the session's last fetch."""
        resting_in, self._resting_in = self._resting_in, None
        if resting_in is not None:
            self.caught_up_at(resting_in.fetched_s)
            self.fetched_s = max(self.fetched_s, resting_in.fetched_s)


class InSyncReplicas:
    """The replicas of one partition while this node leads it in one leader epoch."""

    __slots__ = ("_node_id", "_start_offset", "ends", "isr", "pending", "remote", "replicas")

    def __init__(
        self,
        node_id: int,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        start_offset: int,
        ends: dict[int, int],
        now_s: float,
    ) -> None:
        self._node_id = node_id
        self._start_offset = start_offset
        """Where this leader's epoch begins: a replica behind it could still hold other records."""
        self.ends = ends
        """Replica → its log end offset; none until it has fetched in this epoch."""
        self.isr = isr
        """The ISR of the metadata."""
        self.pending: Change | None = None
        """The change that the controller was asked for and has not answered."""
        self.replicas = replicas
        self.remote = {each: RemoteReplica(now_s if each in isr else _NEVER) for each in replicas if each != node_id}

    def adopt(self, replicas: tuple[int, ...], isr: tuple[int, ...], now_s: float) -> None:
        """The metadata has a newer state in the same leader epoch. A pending change is answered by it."""
        self.pending = None
        for each in replicas:
            if each != self._node_id:
                state = self.remote.setdefault(each, RemoteReplica(_NEVER))
                if each in isr and each not in self.isr:
                    state.caught_up_at(now_s)
        for gone in [each for each in self.remote if each not in replicas]:
            del self.remote[gone]
            self.ends.pop(gone, None)
        self.replicas, self.isr = replicas, isr

    @property
    def maximal(self) -> set[int]:
        """The ISR of the metadata with the replicas of a pending change."""
        return {*self.isr, *(() if self.pending is None else self.pending.isr)}

    def is_stale(self, replica: int, broker_epoch: int) -> bool:
        """Whether a fetch comes from an earlier process of a replica that has fetched since its restart."""
        return 0 <= broker_epoch < self.remote[replica].broker_epoch

    def fetched(
        self, replica: int, offset: int, log_start_offset: int, broker_epoch: int, leader_end: int, now_s: float
    ) -> None:
        """A replica fetches from `offset`, and its log does not diverge: it has everything below."""
        self.ends[replica] = offset
        self.remote[replica].fetched(offset, log_start_offset, broker_epoch, leader_end, now_s)

    def awaited(self, leader_end: int, lag_s: float, is_eligible: IsEligible, now_s: float) -> tuple[int, ...]:
        """The other replicas that the high watermark waits for."""
        maximal = self.maximal
        return tuple(
            each
            for each, state in self.remote.items()
            if each in maximal
            or (
                (self.ends.get(each, -1) >= leader_end or now_s - state.caught_up_s <= lag_s)
                and is_eligible(each, state.broker_epoch)
            )
        )

    def low_watermark(self, log_start_offset: int, is_eligible: IsEligible) -> int:
        """The lowest log start offset of the leader, which has this one, and of the replicas that are up."""
        return min(
            [log_start_offset, *(s.log_start_offset for each, s in self.remote.items() if is_eligible(each, s.broker_epoch))]
        )

    # -- changes of the ISR

    def growth(self, replica: int, high_watermark: int, is_eligible: IsEligible) -> tuple[int, ...] | None:
        """The ISR with `replica`, which has just fetched; None if it is in it, not far enough, or a change is pending."""
        if self.pending is not None or replica in self.isr:
            return None
        end = self.ends.get(replica, -1)
        if end < high_watermark or end < self._start_offset or not is_eligible(replica, self.remote[replica].broker_epoch):
            return None
        return (*self.isr, replica)

    def shrinkage(self, leader_end: int, lag_s: float, now_s: float) -> tuple[int, ...] | None:
        """The ISR without the replicas that lag; None if none does or a change is pending."""
        if self.pending is not None:
            return None
        lagging = {
            each
            for each in self.isr
            if each in self.remote and self.ends.get(each, -1) != leader_end and now_s - self.remote[each].caught_up_s > lag_s
        }
        return tuple(each for each in self.isr if each not in lagging) if lagging else None

    def broker_epoch(self, replica: int) -> int:
        """The broker epoch with which a replica last fetched; -1 if it has not."""
        return self.remote[replica].broker_epoch if replica in self.remote else NO_BROKER_EPOCH
