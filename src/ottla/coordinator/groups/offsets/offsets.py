"""Offsets: the committed and pending offsets of one shard, and the replay of their records.

Owns both containers (committed offsets, and those of open transactions). Only this file changes them, by replaying records and
markers. The decisions, here and in `commits`, only read them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from ottla.coordinator.contract import Caller, CoordinatorRecord, Effects, Instant, Producer, Reply
from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.group import EMPTY, Group
from ottla.coordinator.groups.offsets.commits import check_member, commit, commit_in_transaction
from ottla.coordinator.groups.offsets.store import (
    NO_EXPIRY_MS,
    CommittedOffset,
    OffsetStore,
    PendingOffsets,
    Place,
    StoredOffset,
    offset_of,
    tombstone_of,
)
from ottla.coordinator.groups.table import GroupTable
from ottla.coordinator.groups.topics import DeletedTopic
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from ottla.wire.messages.offset_commit import OffsetCommitRequest
    from ottla.wire.messages.offset_delete import OffsetDeleteRequest
    from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
    from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

logger = logging.getLogger("ottla.coordinator")


# Expires offsets after offsets.retention.minutes, and removes groups that have neither members nor offsets.
#
# Checks all groups of the shard every offsets.retention.check.interval.ms, a few at a time, so that requests are not blocked.

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


# Deletes offsets: for OffsetDelete, DeleteGroups and deleted topics.


def known_group(table: GroupTable, group_id: str) -> Group:
    group = table.by_id.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
    return group


def delete_offsets(
    table: GroupTable, committed: OffsetStore, pending: PendingOffsets, request: OffsetDeleteRequest, reply: Reply
) -> Effects:
    group = known_group(table, request.group_id)
    group.check_offset_delete()
    response = OffsetDeleteResponse()
    records: list[CoordinatorRecord] = []
    for topic in request.topics:
        known = table.topics.partition_count(topic.name)
        is_read = known > 0 and group.is_subscribed_to(topic.name)
        results = []
        for index in (partition.partition_index for partition in topic.partitions):
            result = OffsetDeleteResponsePartition(partition_index=index)
            results.append(result)
            place = (request.group_id, topic.name, index)
            if not 0 <= index < known:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif is_read:
                result.error_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            elif committed.get(place) is not None or pending.has(place):
                records.append(tombstone_of(place))
        response.topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=results))
    effects = Effects.answer(reply, response, records)
    effects.may_split = True
    return effects


def group_tombstones(committed: OffsetStore, pending: PendingOffsets, group_id: str) -> list[CoordinatorRecord]:
    """The records that delete all offsets of a group, including those of open transactions."""
    places: dict[Place, None] = {place: None for place, _ in committed.of_group(group_id)}
    places.update(dict.fromkeys(pending.places_of_group(group_id)))
    return [tombstone_of(place) for place in places]


def topic_tombstones(
    committed: OffsetStore, pending: PendingOffsets, deleted: Iterable[DeletedTopic]
) -> list[CoordinatorRecord]:
    """The records that delete the offsets of deleted topics, but not those of a new topic with the same name."""
    ids: dict[str, list[Uuid]] = {}
    for topic in deleted:
        ids.setdefault(topic.name, [ZERO_UUID]).append(topic.id)
    if not ids:
        return []
    found = chain(committed.of_topics(ids), pending.of_topics(ids))
    places = dict.fromkeys(place for place, offset in found if offset.topic_id in ids[place[1]])
    return [tombstone_of(place) for place in places]


# Answers OffsetFetch: a group's committed offsets, for the requested partitions or for all.

TOPIC_IDS_SINCE = 10
NO_OFFSET = -1


class OffsetReader:
    """Reads the offsets of one group of a request. Raises `KafkaError` if the group refuses the member."""

    def __init__(
        self, table: GroupTable, committed: OffsetStore, pending: PendingOffsets, group: OffsetFetchRequestGroup, version: int
    ) -> None:
        self._topics = table.topics
        self._group_id = group.group_id
        self._by_id = version >= TOPIC_IDS_SINCE
        known = table.by_id.get(group.group_id)
        if known is not None:
            known.check_fetch(group.member_id, group.member_epoch)
        # Offsets without a group are not shown: they are being deleted with the group.
        self._committed = {} if known is None else committed.by_group.get(group.group_id, {})
        self._pending = pending

    def read(self, wanted: list[OffsetFetchRequestTopics] | None, require_stable: bool) -> OffsetFetchResponseGroup:
        require_stable = require_stable and self._pending.has_group(self._group_id)
        topics = self._all(require_stable) if wanted is None else [self._topic(each, require_stable) for each in wanted]
        return OffsetFetchResponseGroup(group_id=self._group_id, topics=topics)

    def _topic(self, wanted: OffsetFetchRequestTopics, require_stable: bool) -> OffsetFetchResponseTopics:
        name: str | None = wanted.name
        if self._by_id:
            name = self._topics.name_of(wanted.topic_id)
        response = OffsetFetchResponseTopics(name=name or "", topic_id=wanted.topic_id)
        if name is None:
            response.partitions = [_nothing(index, ErrorCode.UNKNOWN_TOPIC_ID) for index in wanted.partition_indexes]
            return response
        committed = self._committed.get(name, {})
        response.partitions = [
            self._partition(name, index, committed.get(index), wanted.topic_id, require_stable)
            for index in wanted.partition_indexes
        ]
        return response

    def _all(self, require_stable: bool) -> list[OffsetFetchResponseTopics]:
        found = []
        for name, committed in self._committed.items():
            topic_id = self._topics.id_of(name)
            if topic_id is None and self._by_id:
                continue  # a deleted topic has no id to answer with
            partitions = [self._partition(name, index, each, ZERO_UUID, require_stable) for index, each in committed.items()]
            found.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id or ZERO_UUID, partitions=partitions))
        return found

    def _partition(
        self, topic: str, index: int, committed: StoredOffset | None, topic_id: Uuid, require_stable: bool
    ) -> OffsetFetchResponsePartitions:
        if require_stable and self._pending.has((self._group_id, topic, index)):
            return _nothing(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        if committed is None:
            return _nothing(index, ErrorCode.NONE)
        _, offset, leader_epoch, metadata, _, _, committed_id = committed
        if _is_of_another(committed_id, topic_id):
            return _nothing(index, ErrorCode.NONE)
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=offset, committed_leader_epoch=leader_epoch, metadata=metadata
        )


def _is_of_another(committed_id: Uuid, wanted_id: Uuid) -> bool:
    """Whether an offset was committed for another topic of the same name."""
    return committed_id not in (wanted_id, ZERO_UUID) and wanted_id != ZERO_UUID


def _nothing(index: int, code: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code)


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
        return OffsetReader(self._table, self.committed, self.pending, group, version).read(group.topics, require_stable)

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
