"""Decides on OffsetCommit and TxnOffsetCommit: checks the offsets, and builds the records of those that may be committed.

An unknown topic or a too long metadata text refuses its partition alone. An error of the member or the group refuses all
partitions that were not refused before, with the same code. Pure: changes nothing but a member's session.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordinator.contract import Caller, CoordinatorRecord, Effects, Instant, Producer, Reply
from ottla.coordinator.groups.group import PartitionCheck
from ottla.coordinator.groups.offsets.store import EXPIRING_VALUE_VERSION, NO_EXPIRY_MS, VALUE_VERSION
from ottla.coordinator.groups.table import GroupTable
from ottla.coordinator.groups.topics import Topics
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.log_records import LogRecord
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_records import OffsetCommitKey, OffsetCommitValue
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

TOPIC_IDS_SINCE = 10
GROUP_NOT_FOUND_SINCE = 9
DEFAULT_RETENTION_MS = -1
INT64_MAX = 2**63 - 1

Committed = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition
Result = OffsetCommitResponsePartition | TxnOffsetCommitResponsePartition


class Candidate(NamedTuple):
    """An offset for an existing partition, with its part of the response."""

    topic: str
    topic_id: Uuid
    committed: Committed
    result: Result


def commit(table: GroupTable, request: OffsetCommitRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
    response = OffsetCommitResponse()
    candidates: list[Candidate] = []
    for topic in request.topics:
        name, topic_id, code = _find(table.topics, topic.name, topic.topic_id, caller.version)
        known = 0 if code else table.topics.partition_count(name)
        results = []
        for partition in topic.partitions:
            result = OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            results.append(result)
            if 0 <= partition.partition_index < known:
                candidates.append(Candidate(name, topic_id, partition, result))
            elif not code:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if results or code:
            response.topics.append(OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=results))
    if not candidates:
        return Effects.answer(reply, response)
    expire_ms = _expire_ms(request.retention_time_ms, now)
    try:
        check = check_member(
            table,
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            caller.version,
            now,
        )
        records = _records(table, request.group_id, candidates, check, now.wall_ms, expire_ms)
    except KafkaError as refusal:
        return _refused(reply, response, candidates, refusal.code)
    return Effects.answer(reply, response, records)


def commit_in_transaction(
    table: GroupTable, request: TxnOffsetCommitRequest, caller: Caller, reply: Reply, now: Instant
) -> Effects:
    """Commit offsets in a transaction: they take effect when the transaction commits."""
    response = TxnOffsetCommitResponse()
    candidates: list[Candidate] = []
    for topic in request.topics:
        known = table.topics.partition_count(topic.name)
        results = []
        for partition in topic.partitions:
            result = TxnOffsetCommitResponsePartition(partition_index=partition.partition_index)
            results.append(result)
            if 0 <= partition.partition_index < known:
                topic_id = table.topics.id_of(topic.name) or ZERO_UUID
                candidates.append(Candidate(topic.name, topic_id, partition, result))
            else:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if results or not known:
            response.topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=results))
    if not candidates:
        return Effects.answer(reply, response)
    try:
        check = _check_transaction(table, request, caller, now)
        # Without topic ids, as Apache writes these records.
        records = _records(table, request.group_id, candidates, check, now.wall_ms, NO_EXPIRY_MS, with_ids=False)
    except KafkaError as refusal:
        code = ErrorCode.ILLEGAL_GENERATION if refusal.code == ErrorCode.STALE_MEMBER_EPOCH else refusal.code
        return _refused(reply, response, candidates, code)
    effects = Effects.answer(reply, response, records)
    if records:
        effects.producer = Producer(request.producer_id, request.producer_epoch)
    return effects


def _expire_ms(retention_ms: int, now: Instant) -> int:
    if retention_ms == DEFAULT_RETENTION_MS:
        return NO_EXPIRY_MS
    return min(now.wall_ms + retention_ms, INT64_MAX)  # the field holds no later time, which means never


def _find(topics: Topics, name: str, topic_id: Uuid, version: int) -> tuple[str, Uuid, int]:
    """The topic by its id, or by its name in older versions: (name, id, error code)."""
    if version >= TOPIC_IDS_SINCE:
        known = topics.name_of(topic_id)
        return (name, topic_id, ErrorCode.UNKNOWN_TOPIC_ID) if known is None else (known, topic_id, ErrorCode.NONE)
    known_id = topics.id_of(name)
    if known_id is None:
        return name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return name, known_id, ErrorCode.NONE


def check_member(
    table: GroupTable, group_id: str, member_id: str, instance_id: str | None, generation: int, version: int, now: Instant
) -> PartitionCheck | None:
    """`Group.check_commit`, also for unknown groups: raises `KafkaError` unless this member may commit."""
    group = table.by_id.get(group_id)
    if group is None:
        if generation < 0:
            table.limit.check_room(f"the new group {group_id!r}")
            return None  # a consumer with manual assignment, or a tool: replaying its offsets creates the group
        code = ErrorCode.GROUP_ID_NOT_FOUND if version >= GROUP_NOT_FOUND_SINCE else ErrorCode.ILLEGAL_GENERATION
        raise KafkaError(code, f"there is no group {group_id!r}: join it before committing as one of its members")
    return group.check_commit(member_id, instance_id, generation, version, False, now)


def _check_transaction(
    table: GroupTable, request: TxnOffsetCommitRequest, caller: Caller, now: Instant
) -> PartitionCheck | None:
    group = table.by_id.get(request.group_id)
    if group is None:
        if request.generation_id < 0:
            table.limit.check_room(f"the new group {request.group_id!r}")
            return None
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"there is no group {request.group_id!r}: join it before committing as one of its members",
        )
    return group.check_commit(request.member_id, request.group_instance_id, request.generation_id, caller.version, True, now)


def _records(
    table: GroupTable,
    group_id: str,
    candidates: list[Candidate],
    check: PartitionCheck | None,
    now_ms: int,
    expire_ms: int,
    with_ids: bool = True,
) -> list[CoordinatorRecord]:
    limit = table.settings.offset_metadata_max_bytes
    version = VALUE_VERSION
    if expire_ms != NO_EXPIRY_MS:
        version, with_ids = EXPIRING_VALUE_VERSION, False  # that version has no topic id: replay must equal loading
    records = []
    for topic, topic_id, committed, result in candidates:
        metadata = committed.committed_metadata or ""
        if metadata and _is_longer(metadata, limit):
            result.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            continue
        if check is not None:
            check(topic, topic_id, committed.partition_index)
        value = OffsetCommitValue(
            offset=committed.committed_offset,
            leader_epoch=committed.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp=now_ms,
            expire_timestamp=expire_ms,
            topic_id=topic_id if with_ids else ZERO_UUID,
        )
        key = OffsetCommitKey(group=group_id, topic=topic, partition=committed.partition_index)
        records.append(CoordinatorRecord(key, LogRecord(value, version)))
    return records


def _is_longer(text: str, limit: int) -> bool:
    """Whether a text has more than `limit` UTF-16 units: Apache counts these, although the setting says bytes."""
    if len(text) > limit:
        return True
    return 2 * len(text) > limit and not text.isascii() and len(text.encode("utf-16-le", "surrogatepass")) // 2 > limit


def _refused(
    reply: Reply, response: OffsetCommitResponse | TxnOffsetCommitResponse, candidates: list[Candidate], code: int
) -> Effects:
    for candidate in candidates:
        candidate.result.error_code = code
    return Effects.answer(reply, response)
