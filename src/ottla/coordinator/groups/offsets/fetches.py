"""Answers OffsetFetch: a group's committed offsets, for the requested partitions or for all."""

from __future__ import annotations

from ottla.coordinator.groups.offsets.pending import PendingOffsets
from ottla.coordinator.groups.offsets.store import OffsetStore, StoredOffset
from ottla.coordinator.groups.table import GroupTable
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

TOPIC_IDS_SINCE = 10
NO_OFFSET = -1


class Reader:
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
