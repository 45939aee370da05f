"""Offsets: the committed and pending offsets of one shard, and the replay of their records.

Owns both containers (committed offsets, and those of open transactions). Only this file changes them, by replaying records and
markers. `commits`, `fetches`, `deletions` and `expiry` decide, and only read them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.coordinator.contract import Caller, CoordinatorRecord, Effects, Instant, Producer, Reply
from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.offsets.commits import check_member, commit, commit_in_transaction
from ottla.coordinator.groups.offsets.deletions import delete_offsets, group_tombstones, known_group, topic_tombstones
from ottla.coordinator.groups.offsets.expiry import Expiry
from ottla.coordinator.groups.offsets.fetches import Reader
from ottla.coordinator.groups.offsets.pending import PendingOffsets
from ottla.coordinator.groups.offsets.records import offset_of
from ottla.coordinator.groups.offsets.store import OffsetStore, Place, StoredOffset
from ottla.coordinator.groups.table import GroupTable
from ottla.coordinator.groups.topics import DeletedTopic
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted

if TYPE_CHECKING:
    from ottla.wire.messages.offset_commit import OffsetCommitRequest
    from ottla.wire.messages.offset_delete import OffsetDeleteRequest
    from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
    from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

logger = logging.getLogger("ottla.coordinator")


class Offsets:
    """The offsets of the groups in `table`."""

    def __init__(self, table: GroupTable) -> None:
        self._table = table
        self.committed = OffsetStore()
        self.pending = PendingOffsets()
        self._expiry = Expiry(table, self.committed, self.pending)

    # -- Requests

    def commit(self, request: OffsetCommitRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        return commit(self._table, request, caller, reply, now)

    def commit_in_transaction(self, request: TxnOffsetCommitRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        """Commit offsets in a transaction; the effects name its producer, if there is anything to write."""
        return commit_in_transaction(self._table, request, caller, reply, now)

    def fetch(self, group: OffsetFetchRequestGroup, require_stable: bool, version: int) -> OffsetFetchResponseGroup:
        """The group's committed offsets; `KafkaError` if the member may not read them."""
        return Reader(self._table, self.committed, self.pending, group, version).read(group.topics, require_stable)

    def delete(self, request: OffsetDeleteRequest, reply: Reply, now: Instant) -> Effects:
        return delete_offsets(self._table, self.committed, self.pending, request, reply)

    def delete_group(self, group_id: str, reply: Reply) -> Effects:
        """Delete a group with all its offsets; the answer is None."""
        group = known_group(self._table, group_id)
        group.check_delete()
        records = self.tombstones(group_id)
        logger.info("group %s is deleted on request, with %s", group_id, counted(len(records), "offset"))
        effects = Effects.answer(reply, None, records + group.tombstones())
        effects.may_split = True
        return effects

    # -- For the fast path of OffsetCommit, which decodes no request

    def check_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, version: int, now: Instant
    ) -> int | None:
        """The error code of a commit by this member; None if each partition needs its own check."""
        try:
            check = check_member(self._table, group_id, member_id, instance_id, generation, version, now)
        except KafkaError as refusal:
            return refusal.code
        return ErrorCode.NONE if check is None else None

    # -- For the rest of the coordinator

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """The records that delete all offsets of the group."""
        return group_tombstones(self.committed, self.pending, group_id)

    def loaded(self, now: Instant) -> Effects:
        self._expiry.begin(now)
        return Effects()

    def forget_topics(self, deleted: Iterable[DeletedTopic]) -> Effects:
        """Delete the offsets of deleted topics."""
        return Effects(topic_tombstones(self.committed, self.pending, deleted), may_split=True)

    # -- Replay

    def replay(self, record: CoordinatorRecord, log_offset: int, producer: Producer | None) -> None:
        key, value = record
        place = (key.group, key.topic, key.partition)  # type: ignore[attr-defined]  # both kinds of keys have these
        if value is None:
            self.remove(place)
        elif producer is None:
            group_id, topic, partition = place
            self.replay_into(group_id, topic)[partition] = offset_of(value, log_offset)
        else:
            self.put_pending(producer.id, place, offset_of(value, log_offset))

    def replay_into(self, group_id: str, topic: str) -> dict[int, StoredOffset]:
        """The offsets of a group for one topic, by partition, for the caller to put replayed ones into."""
        self._have_group(group_id)
        return self.committed.of_topic(group_id, topic)

    def put_pending(self, producer_id: int, place: Place, committed: StoredOffset) -> None:
        """Put an offset into the open transaction of a producer."""
        self._have_group(place[0])
        self.pending.put(producer_id, place, committed)

    def remove(self, place: Place) -> None:
        """Delete an offset, also from open transactions: as Apache does, tombstones are written outside of transactions."""
        self.committed.remove(place)
        self.pending.drop(place)

    def _have_group(self, group_id: str) -> None:
        if group_id not in self._table.by_id:
            # A group with manual assignment has no records but its offsets.
            self._table.by_id[group_id] = ClassicGroup(group_id)

    def replay_end(self, producer: Producer, is_commit: bool) -> None:
        ended = self.pending.end(producer.id)
        if ended is None or not is_commit:
            return
        for group_id, topic, partitions in ended.by_topic():
            known = self.committed.of_topic(group_id, topic)
            for partition, committed in partitions.items():
                before = known.get(partition)
                # The record with the higher log offset (the first field) wins, as in a compacted log.
                if before is None or before[0] < committed[0]:
                    known[partition] = committed
