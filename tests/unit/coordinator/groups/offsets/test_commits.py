"""OffsetCommit and TxnOffsetCommit, decided without a log."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.shards.offsets_harness import WALL_AHEAD_MS, OffsetsHarness

from ottla.coordinator.contract import Instant, Producer
from ottla.coordinator.groups.classic.group import STABLE, ClassicGroup
from ottla.coordinator.groups.group import PartitionCheck
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.log_records import InternalLog, decode_coordinator_key, decode_coordinator_value
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
P = Producer(7, 0)


class JudgingGroup(ClassicGroup):
    """A group whose `check_commit` is set by the test."""

    __slots__ = ("refuse",)

    def __init__(self, refuse: Callable[[], PartitionCheck | None]) -> None:
        super().__init__("g")
        self.refuse = refuse

    def check_commit(self, *asked: Any) -> PartitionCheck | None:  # type: ignore[override]  # takes any arguments
        return self.refuse()


def refusing(code: int) -> JudgingGroup:
    def refuse() -> PartitionCheck | None:
        raise KafkaError(code, "no")

    return JudgingGroup(refuse)


def last_record(harness: OffsetsHarness) -> Any:
    logged = harness.log[-1]
    key = decode_coordinator_key(InternalLog.GROUPS, logged.key)
    assert logged.value is not None
    return key, decode_coordinator_value(InternalLog.GROUPS, key, logged.value)


def test_a_commit_creates_a_simple_group() -> None:
    harness = OffsetsHarness()
    assert harness.commit({("t", 1): 42}, metadata="here") == {("t", 1): 0}
    group = harness.table.by_id["g"]
    assert (group.type, group.state) == ("classic", "Empty")
    key, value = last_record(harness)
    assert (key.KEY, key.group, key.topic, key.partition) == (1, "g", "t", 1)
    assert value.version == 4
    written = value.message
    assert (written.offset, written.leader_epoch, written.metadata) == (42, 3, "here")
    assert written.commit_timestamp == WALL_AHEAD_MS
    assert written.topic_id == harness.table.topics.id_of("t")
    assert harness.fetch({"t": [1]}) == {("t", 1): 42}


def test_retention_of_old_clients_is_written_in_the_version_that_has_it() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 5}, version=3, retention_time_ms=1000)
    _, value = last_record(harness)
    assert (value.version, value.message.expire_timestamp) == (1, WALL_AHEAD_MS + 1000)
    assert value.message.topic_id == ZERO_UUID, "which that version does not have"


def test_a_retention_beyond_int64_means_never() -> None:
    harness = OffsetsHarness()
    assert harness.commit({("t", 0): 5}, version=3, retention_time_ms=2**63 - 1) == {("t", 0): 0}
    _, value = last_record(harness)
    assert value.message.expire_timestamp == 2**63 - 1


def test_unknown_partitions_are_refused() -> None:
    harness = OffsetsHarness()
    codes = harness.commit({("t", 0): 1, ("t", 4): 1, ("t", -1): 1, ("absent", 0): 1})
    assert codes == {("t", 0): 0, ("t", 4): UNKNOWN, ("t", -1): UNKNOWN, ("absent", 0): UNKNOWN}
    assert len(harness.log) == 1


def test_by_topic_id() -> None:
    harness = OffsetsHarness()
    known, unknown = harness.table.topics.id_of("u"), Uuid(b"\x09" * 16)
    assert known is not None
    part = OffsetCommitRequestPartition(partition_index=1, committed_offset=8)
    topics = [OffsetCommitRequestTopic(topic_id=each, partitions=[part]) for each in (known, unknown)]
    answer = harness.ask_commit(OffsetCommitRequest(group_id="g", topics=topics), 10)
    assert [(topic.topic_id, topic.partitions[0].error_code) for topic in answer.topics] == [
        (known, 0),
        (unknown, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert harness.fetch() == {("u", 1): 8}


@pytest.mark.parametrize(("version", "code"), [(2, 22), (8, 22), (9, 69), (10, 69)])
def test_a_member_of_an_unknown_group_is_refused(version: int, code: int) -> None:
    harness = OffsetsHarness()
    request = OffsetCommitRequest(group_id="g", member_id="m", generation_id_or_member_epoch=1)
    part = OffsetCommitRequestPartition(partition_index=0)
    topic_id = harness.table.topics.id_of("t")
    assert topic_id is not None
    request.topics = [OffsetCommitRequestTopic(name="t", topic_id=topic_id, partitions=[part])]
    assert harness.ask_commit(request, version).topics[0].partitions[0].error_code == code
    assert not harness.log
    assert not harness.table.by_id


def test_a_refusal_by_the_group_is_for_existing_partitions() -> None:
    harness = OffsetsHarness()
    harness.put_group(refusing(ErrorCode.REBALANCE_IN_PROGRESS))
    codes = harness.commit({("t", 0): 1, ("absent", 0): 1})
    assert codes == {("t", 0): ErrorCode.REBALANCE_IN_PROGRESS, ("absent", 0): UNKNOWN}
    assert harness.commit({("absent", 0): 1}) == {("absent", 0): UNKNOWN}
    assert not harness.log


def test_metadata_is_counted_in_utf_16_units() -> None:
    harness = OffsetsHarness(GroupSettings(offset_metadata_max_bytes=4))
    too_large = {("t", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert harness.commit({("t", 0): 1}, metadata="abcd") == {("t", 0): 0}
    assert harness.commit({("t", 0): 2}, metadata="abcde") == too_large
    assert harness.commit({("t", 0): 3}, metadata="äöüß") == {("t", 0): 0}
    assert harness.commit({("t", 0): 4}, metadata="𝄞𝄞") == {("t", 0): 0}
    assert harness.commit({("t", 0): 5}, metadata="𝄞𝄞x") == too_large
    assert harness.fetch() == {("t", 0): 4}


def test_null_metadata_is_stored_as_empty() -> None:
    harness = OffsetsHarness()
    harness.commit({("t", 0): 1}, metadata=None)  # type: ignore[arg-type]  # clients send it
    assert last_record(harness)[1].message.metadata == ""


def test_a_partition_check_may_refuse_an_accepted_member() -> None:
    def judge() -> PartitionCheck:
        def check(topic: str, topic_id: Uuid, index: int) -> None:
            if index:
                raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "too old")

        return check

    harness = OffsetsHarness()
    harness.put_group(JudgingGroup(judge))
    assert harness.commit({("t", 0): 1}) == {("t", 0): 0}
    stale = ErrorCode.STALE_MEMBER_EPOCH
    assert harness.commit({("t", 0): 1, ("t", 1): 1}) == {("t", 0): stale, ("t", 1): stale}
    old = ErrorCode.ILLEGAL_GENERATION
    assert harness.commit_in_transaction(P, {("t", 0): 1, ("t", 1): 1}) == {("t", 0): old, ("t", 1): old}
    assert len(harness.log) == 1


def test_a_transaction_commits_without_topic_ids() -> None:
    """As Apache does: its offsets belong to any topic of the name."""
    harness = OffsetsHarness()
    assert harness.commit_in_transaction(P, {("t", 0): 6, ("absent", 1): 1}) == {("t", 0): 0, ("absent", 1): UNKNOWN}
    _, value = last_record(harness)
    assert (value.version, value.message.topic_id, harness.log[-1].producer) == (4, ZERO_UUID, P)
    assert harness.fetch({"t": [0]}) == {("t", 0): -1}
    harness.end(P, True)
    assert harness.fetch({"t": [0]}) == {("t", 0): 6}


def test_a_transactional_commit_to_an_unknown_group_is_refused() -> None:
    harness = OffsetsHarness()
    codes = harness.commit_in_transaction(P, {("t", 0): 6}, member_id="m", generation_id=3)
    assert codes == {("t", 0): ErrorCode.ILLEGAL_GENERATION}
    assert not harness.log


def test_a_transactional_commit_checks_the_member_if_it_names_one() -> None:
    harness = OffsetsHarness()
    group = ClassicGroup("g")
    group.generation = 4
    group.move_to(STABLE, Instant(0, 0))
    harness.put_group(group)
    assert harness.commit_in_transaction(P, {("t", 0): 6}, member_id="m", generation_id=4) == {
        ("t", 0): ErrorCode.UNKNOWN_MEMBER_ID
    }
    # A client of an old version names no member: its commit is accepted.
    assert harness.commit_in_transaction(P, {("t", 0): 6}, version=2) == {("t", 0): 0}
    assert harness.commit({("t", 0): 6}) == {("t", 0): ErrorCode.UNKNOWN_MEMBER_ID}
