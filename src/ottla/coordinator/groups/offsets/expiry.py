"""Expires offsets after offsets.retention.minutes, and removes groups that have neither members nor offsets.

Checks all groups of the shard every offsets.retention.check.interval.ms, a few at a time, so that requests are not blocked.
"""

from __future__ import annotations

import logging
from collections import deque

from ottla.coordinator.contract import CoordinatorRecord, Effects, Instant
from ottla.coordinator.groups.group import EMPTY, Group
from ottla.coordinator.groups.offsets.pending import PendingOffsets
from ottla.coordinator.groups.offsets.records import tombstone_of
from ottla.coordinator.groups.offsets.store import NO_EXPIRY_MS, CommittedOffset, OffsetStore
from ottla.coordinator.groups.table import GroupTable

logger = logging.getLogger("ottla.coordinator")

GROUPS_PER_TURN = 500
RECORDS_PER_TURN = 1000
TIMER = ("offsets",)
MINUTE_MS = 60_000


class Expiry:
    """The periodic check of all groups."""

    __slots__ = ("_committed", "_left", "_pending", "_table")

    def __init__(self, table: GroupTable, committed: OffsetStore, pending: PendingOffsets) -> None:
        self._table = table
        self._committed = committed
        self._pending = pending
        self._left: deque[str] = deque()
        """The groups that this round has not checked yet."""

    def begin(self, now: Instant) -> None:
        """Set the timer of the first round."""
        self._wait(now)

    def _wait(self, now: Instant) -> None:
        deadline_ms = now.steady_ms + self._table.settings.offsets_retention_check_interval_ms
        self._table.timers.set(TIMER, deadline_ms, self._begin_round)

    def _begin_round(self, now: Instant) -> Effects:
        self._left.extend(self._table.by_id)
        return self._go_on(now)

    def _go_on(self, now: Instant) -> Effects:
        records: list[CoordinatorRecord] = []
        for _ in range(GROUPS_PER_TURN):
            if not self._left or len(records) >= RECORDS_PER_TURN:
                break
            group = self._table.by_id.get(self._left.popleft())
            if group is not None:
                records += self._expired(group, now)
        if self._left:
            self._table.timers.set(TIMER, now.steady_ms, self._go_on)
        else:
            self._wait(now)
        return Effects(records, may_split=True)

    def _expired(self, group: Group, now: Instant) -> list[CoordinatorRecord]:
        """The tombstones of one group: expired offsets, and the group itself if nothing is left."""
        records, kept = [], 0
        for place, committed in self._committed.of_group(group.group_id):
            if self._is_expired(group, place[1], committed, now) and not self._pending.has(place):
                records.append(tombstone_of(place))
            else:
                kept += 1
        if records:
            logger.info(
                "group %s: %d of its offsets have expired, because they were not committed again for %d minutes "
                "(offsets.retention.minutes), or for as long as their client wanted; %d are kept",
                group.group_id,
                len(records),
                self._table.settings.offsets_retention_ms // MINUTE_MS,
                kept,
            )
        if not kept and group.state == EMPTY and not self._pending.has_group(group.group_id):
            logger.info("group %s is removed: it has neither members nor offsets", group.group_id)
            records += group.tombstones()
        return records

    def _is_expired(self, group: Group, topic: str, committed: CommittedOffset, now: Instant) -> bool:
        from_ms = group.offsets_expire_from_ms(topic, committed.commit_ms)
        if from_ms is None:
            return False
        if committed.expire_ms != NO_EXPIRY_MS:
            return now.wall_ms >= committed.expire_ms
        if group.state == EMPTY:
            # A consumer group's records do not say when its last member left: after a load the commit counts, as in Apache.
            from_ms = max(from_ms, self._table.emptied_ms.get(group.group_id, from_ms))
        return now.wall_ms - from_ms >= self._table.settings.offsets_retention_ms
