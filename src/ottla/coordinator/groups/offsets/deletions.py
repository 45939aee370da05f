"""Deletes offsets: for OffsetDelete, DeleteGroups and deleted topics."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from ottla.coordinator.contract import CoordinatorRecord, Effects, Reply
from ottla.coordinator.groups.group import Group
from ottla.coordinator.groups.offsets.pending import PendingOffsets
from ottla.coordinator.groups.offsets.records import tombstone_of
from ottla.coordinator.groups.offsets.store import OffsetStore, Place
from ottla.coordinator.groups.table import GroupTable
from ottla.coordinator.groups.topics import DeletedTopic
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


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
