"""Logs without records after a clean shutdown: nothing is opened until the first append."""

import pytest
from tests.support.logs.batches import make_batch
from tests.support.logs.partition_logs import FOLDER, LogOnDisk, run

from ottla.env import OpenMode
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.log.names import LEADER_EPOCH_CHECKPOINT, LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_file_name
from ottla.log.recovery.vacant import holds_no_record

FILES = {segment_file_name(0, suffix): 0 for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (FILES, True),
        (FILES | {"partition.metadata": 43, LEADER_EPOCH_CHECKPOINT: 8}, True),
        (FILES | {segment_file_name(0, LOG_SUFFIX): 1}, False),
        (FILES | {segment_file_name(0, TIME_INDEX_SUFFIX): 12}, False),
        (FILES | {segment_file_name(9, LOG_SUFFIX): 0}, False),
        (FILES | {segment_file_name(9, ".snapshot"): 10}, False),
        ({segment_file_name(0, LOG_SUFFIX): 0}, False),
        ({}, False),
    ],
)
def test_folder_without_records(names: dict[str, int], expected: bool) -> None:
    assert holds_no_record(names) is expected


def test_first_append_activates_the_segment_and_everything_works_then() -> None:
    env = LogOnDisk()
    env.reopen()
    segment = env.log.segments.active
    assert segment.is_dormant
    assert not segment.offset_index.is_open
    assert env.offsets() == []
    assert env.log.offset_for_time(0) is None
    env.fill(40)
    assert not segment.is_dormant
    assert segment.offset_index.count > 0
    assert env.offsets() == list(range(80))
    env.reopen()
    assert env.offsets() == list(range(80))
    env.crash(power_loss=True)
    assert env.offsets() == list(range(80))


def test_follower_and_coordinator_appends_activate_it_too() -> None:
    env = LogOnDisk()
    env.reopen()
    batch = make_batch(b"a")
    env.log.append_as_follower(batch, 0)
    assert env.offsets() == [0]
    env = LogOnDisk()
    env.reopen()
    env.end_transaction(5, commit=False)
    assert env.log.log_end_offset == 1
    assert not env.log.segments.active.is_dormant


def test_append_is_refused_while_no_file_can_be_opened() -> None:
    env = LogOnDisk()
    env.reopen()
    env.disk.files_left = 0
    with pytest.raises(KafkaError, match="nothing can be appended to topic-0") as refused:
        env.append(b"a")
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    env.disk.files_left = None
    assert env.append(b"a") == 0
    assert env.log.failure is None


def test_truncation_and_deletion_of_a_dormant_log() -> None:
    env = LogOnDisk()
    env.reopen()
    assert not run(env.log.truncate_to(5))
    run(env.log.truncate_fully_and_start_at(10))
    assert env.append(b"a") == 10
    assert env.offsets() == [10]


def test_damaged_log_is_not_taken_for_a_vacant_one() -> None:
    env = LogOnDisk()
    env.close()
    env.disk.open(f"{FOLDER}/{segment_file_name(0, OFFSET_INDEX_SUFFIX)}", OpenMode.WRITE).append(b"xyz")
    env.load(clean=True)
    env.fill(20)
    assert env.offsets() == list(range(40))
