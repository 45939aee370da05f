"""Partitions follow the metadata: created, adopted, reconfigured, stray, deleted; on one disk or several, also failed ones."""

import asyncio
import errno

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, only_answer, virtual, waiting

from ottla.broker.requests.context import Pending, future_of
from ottla.env import OpenMode
from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, TopicPartition, Uuid
from ottla.log.directories.partition_metadata import read_partition_metadata
from ottla.log.names import LOG_SUFFIX, segment_file_name
from ottla.log.partition_log import PartitionLog
from ottla.metadata.image.image import ResourceType
from ottla.sim.disk import Fault
from ottla.wire.messages.metadata_records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)


def folders(held: HeldPartitions) -> list[str]:
    """The partition folders there are, without the numbers in their names."""
    names = [name for path in held.paths for name in held.disk.list_directory(path) if held.disk.is_directory(f"{path}/{name}")]
    return sorted(name.split(".")[0] + name[name.rfind("-") :] if "." in name else name for name in names)


def partition_record(topic_id: Uuid, index: int = 0) -> PartitionRecord:
    place = {"replicas": [1], "isr": [1], "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    return PartitionRecord(partition_id=index, topic_id=topic_id, **place)


def code_for(held: HeldPartitions, topic: str, index: int = 0, leader_epoch: int = -1) -> int:
    try:
        held.partitions.leader(topic, index, leader_epoch)
    except KafkaError as error:
        return error.code
    return 0


def test_partitions_wait_for_file_descriptors_and_are_created_later(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(paths=("/a",))
        await held.make_topic("old")
        held.disk.files_left = 6
        held.partitions.start()
        await held.make_topic("t", 60)
        await held.make_topic("gone", 5)
        assert [code_for(held, "t", index) for index in (0, 1, 2, 59)] == [0, 0, 56, 56]
        assert len([record for record in caplog.records if "not created yet: 58 partitions of t" in record.message]) == 1
        assert held.produced("old", 0, make_batch(b"v")).error_code == 0
        assert held.stopped == []
        await held.delete_topic("gone")
        await held.change("t", 50, leader=2)
        held.disk.files_left = None
        await asyncio.sleep(6)
        assert [code_for(held, "t", index) for index in range(60) if index != 50] == [0] * 59
        assert code_for(held, "t", 50) == ErrorCode.NOT_LEADER_OR_FOLLOWER, "metadata that changed while it waited is applied"
        assert code_for(held, "gone") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not held.partitions.waiting_for_room
        assert not held.partitions.offline
        await held.partitions.stop()

    virtual(scenario())


def test_a_new_topic_gets_its_logs() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        topic_id = await held.make_topic("t", 3, {"segment.bytes": 4_000_000})
        assert folders(held) == ["t-0", "t-1", "t-2"]
        assert len(held.partitions) == 3
        for index in range(3):
            partition = held.partition("t", index)
            assert (partition.topic, partition.index, partition.topic_id) == ("t", index, topic_id)
            assert partition.is_leading
            assert partition.log.config.segment_bytes == 4_000_000
            assert read_partition_metadata(held.disk, partition.log.folder) == topic_id
            assert held.partitions.by_id[topic_id][index] is partition
            assert partition.log.epochs.entries == [(0, 0)]

    virtual(scenario())


def test_partitions_of_other_nodes_get_no_log() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(2, 3))
        assert folders(held) == []
        assert held.partitions.find("t", 0) is None
        assert code_for(held, "t") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert code_for(held, "t", 5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code_for(held, "nope") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    virtual(scenario())


def test_leader_epochs_are_checked() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        await held.change("t", 0, leader=1)
        assert [code_for(held, "t", 0, epoch) for epoch in (-1, 0, 1, 2)] == [
            0,
            ErrorCode.FENCED_LEADER_EPOCH,
            0,
            ErrorCode.UNKNOWN_LEADER_EPOCH,
        ]
        await held.change("t", 0, leader=2)
        assert [code_for(held, "t", 0, epoch) for epoch in (-1, 1, 2)] == [
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ]

    virtual(scenario())


def test_new_leader_epoch_is_recorded_before_its_first_record() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        held.produced("t", 0, make_batch(b"a", b"b"))
        await held.change("t", 0, leader=1)
        await held.change("t", 0, isr=[1])
        assert held.partition("t").leader_epoch == 1
        assert held.partition("t").log.epochs.entries == [(0, 0), (1, 2)]

    virtual(scenario())


def test_leader_of_an_unclean_election_names_what_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        assert held.produced("t", 0, make_batch(b"a", b"b")).error_code == 0
        await held.change("t", 0, leader=-1)
        await held.change("t", 0, leader=1, leader_recovery_state=1)
        assert "unclean" not in caplog.text, "the only replica has all there is"
        await held.change("t", 0, leader=2, replicas=[1, 2], directories=[DIRECTORY_MIGRATING] * 2, leader_recovery_state=0)
        await held.change("t", 0, leader=1)
        assert "unclean" not in caplog.text
        await held.change("t", 0, leader=-1, last_known_elr=[1])
        await held.change("t", 0, leader=1, leader_recovery_state=1, last_known_elr=[])
        assert "unclean" not in caplog.text, "the last known leader, too"
        await held.change("t", 0, leader=2, leader_recovery_state=0)
        await held.change("t", 0, leader=1, leader_recovery_state=1)
        lines = [record.message for record in caplog.records if "unclean election" in record.message]
        assert len(lines) == 1
        assert lines[0].startswith("t-0: elected as leader of epoch ")
        assert "This log ends at offset 2: what was acknowledged from there on is lost" in lines[0]
        await held.change("t", 0, isr=[1])
        assert caplog.text.count("unclean election") == 1

    virtual(scenario())


def test_a_restarted_node_leads_only_once_its_process_is_registered() -> None:
    """Before that the metadata names the process before it. Its leader epoch may have begun after what is left of the log."""

    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        await held.change("t", 0, leader=1)
        held.produced("t", 0, make_batch(b"lost"))
        held.is_registered = False
        await held.restart(power_loss=True)
        log = held.partition("t").log
        assert code_for(held, "t") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (log.log_end_offset, log.epochs.entries) == (0, [])
        log.gap_offset = 0
        await held.change("t", 0, leader=1)
        assert code_for(held, "t") == ErrorCode.NOT_LEADER_OR_FOLLOWER, "the controller has elected the earlier process again"
        assert (log.gap_offset, log.epochs.entries) == (0, [])
        held.partitions.incarnation_id = Uuid(b"i" * 16)
        topic_id = held.partition("t").topic_id
        registered = RegisterBrokerRecord(broker_id=1, incarnation_id=held.partitions.incarnation_id, broker_epoch=9)
        await held.commit(PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=-1), registered)
        await held.change("t", 0, leader=1)
        assert code_for(held, "t") == ErrorCode.NONE
        assert (log.gap_offset, log.epochs.entries) == (None, [(4, 0)])

    virtual(scenario())


async def held_with_a_gap() -> tuple[HeldPartitions, PartitionLog]:
    """t-0 with three records, of which recovery found a gap at offset 1."""
    held = await HeldPartitions.open()
    await held.make_topic("t")
    for value in (b"a", b"b", b"c"):
        assert held.produced("t", 0, make_batch(value)).error_code == 0
    log = held.partition("t").log
    log.gap_offset = 1
    return held, log


def test_follower_fetches_again_from_a_gap_that_recovery_found(caplog: pytest.LogCaptureFixture) -> None:
    """It would join the ISR by its end offset, without the committed records of the gap."""

    async def scenario() -> None:
        held, log = await held_with_a_gap()
        await held.change("t", 0, replicas=[1, 2], directories=[DIRECTORY_MIGRATING] * 2)
        assert (log.log_end_offset, log.gap_offset) == (3, 1), "the metadata may be of the time before the power loss"
        await held.change("t", 0, leader=-1)
        assert (log.log_end_offset, log.gap_offset) == (3, 1), "nobody else has these records"
        await held.change("t", 0, leader=2)
        assert (log.log_end_offset, log.gap_offset) == (1, None)
        assert "t-0: truncated from 3 to 1" in caplog.text

    virtual(scenario())


def test_damage_before_a_gap_keeps_one_partition_from_following(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        held, log = await held_with_a_gap()
        path = f"{log.folder}/{segment_file_name(0, LOG_SUFFIX)}"
        data = log.disk.read_file(path)
        file = log.disk.open(path, OpenMode.WRITE)
        file.truncate(0)
        file.append(bytes(30) + data[30:])
        await held.change("t", 0, leader=2, replicas=[1, 2], directories=[DIRECTORY_MIGRATING] * 2)
        assert "t-0 is not replicated until the node is restarted: " in caplog.text
        with pytest.raises(KafkaError, match="no batch of magic 2 begins here") as refused:
            held.partition("t").append_as_follower(bytes(make_batch(b"a", base_offset=1)), held.partition("t").leader_epoch)
        assert refused.value.code == ErrorCode.CORRUPT_MESSAGE

    virtual(scenario())


def test_elected_leader_keeps_what_follows_a_gap() -> None:
    """Truncated later, as a follower in the ISR, it would lose what it has acknowledged."""

    async def scenario() -> None:
        held, log = await held_with_a_gap()
        await held.change("t", 0, leader=-1)
        await held.change("t", 0, leader=1)
        await held.change("t", 0, leader=2, replicas=[1, 2], directories=[DIRECTORY_MIGRATING] * 2)
        assert (log.log_end_offset, log.gap_offset) == (3, None)

    virtual(scenario())


def test_adding_partitions_keeps_the_existing_ones() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        topic_id = await held.make_topic("t")
        held.produced("t", 0, make_batch(b"a"))
        before = held.partition("t")
        await held.commit(partition_record(topic_id, 1))
        assert held.partition("t") is before
        assert folders(held) == ["t-0", "t-1"]

    virtual(scenario())


def test_a_deleted_topic_is_gone_at_once_and_its_files_later() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        topic_id = await held.make_topic("t", 2)
        held.produced("t", 0, make_batch(b"a"))
        gone = held.partition("t")
        await held.delete_topic("t")
        assert folders(held) == ["t-0-delete", "t-1-delete"]
        assert code_for(held, "t") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (held.partitions.by_name, held.partitions.by_id) == ({}, {})
        with pytest.raises(KafkaError, match="was deleted"):
            gone.append(make_batch(b"b"), 1)
        again = await held.make_topic("t")
        assert again != topic_id
        assert held.partition("t").log.log_end_offset == 0

    virtual(scenario())


def test_topic_deleted_and_created_again_in_one_delta() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        old_id = await held.make_topic("t")
        held.produced("t", 0, make_batch(b"a"))
        new_id = held.new_uuid()
        await held.commit(RemoveTopicRecord(topic_id=old_id), TopicRecord(name="t", topic_id=new_id), partition_record(new_id))
        assert held.partition("t").topic_id == new_id
        assert held.partition("t").log.log_end_offset == 0
        assert folders(held) == ["t-0", "t-0-delete"]

    virtual(scenario())


def test_a_replica_that_moved_away_is_deleted_here() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        parked = held.produce("t", 0, make_batch(b"a"), timeout_ms=60_000)
        assert isinstance(parked, Pending), "it waits for node 2"
        await held.change("t", 0, replicas=[2], isr=[2], leader=2, directories=[DIRECTORY_UNASSIGNED])
        assert folders(held) == ["t-0-delete"]
        assert code_for(held, "t") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert only_answer(await future_of(parked)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    virtual(scenario())


def test_settings_are_followed() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", 2, replicas=(1, 2))
        await held.make_topic("u")
        assert held.partition("t", 1).min_isr == 1
        await held.configure("t", retention_ms=5, min_insync_replicas=2)
        assert [held.partition("t", index).log.config.retention_ms for index in (0, 1)] == [5, 5]
        assert held.partition("t", 1).min_isr == 2
        assert held.partition("u").log.config.retention_ms != 5

    virtual(scenario())


def test_settings_are_followed_before_the_isr_of_the_same_delta() -> None:
    """Else the leader acknowledges with the old min.insync.replicas what no other replica has."""

    async def scenario() -> None:
        held = await HeldPartitions.open()
        topic_id = await held.make_topic("t", replicas=(1, 2))
        answer = waiting(held.produce("t", 0, make_batch(b"a")))
        await held.commit(
            ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="t", name="min.insync.replicas", value="2"),
            PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[1]),
        )
        partition = held.partition("t")
        assert (partition.isr, partition.min_isr, partition.log.high_watermark) == ((1,), 2, 0)
        assert only_answer(await answer).error_code == ErrorCode.REQUEST_TIMED_OUT

    virtual(scenario())


@pytest.mark.parametrize("crash", [False, True])
def test_a_restart_finds_everything_again(crash: bool) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", 2, {"retention.ms": 123_456_789})
        held.produced("t", 0, make_batch(b"a", b"b"))
        await held.restart(crash=crash)
        log = held.partition("t").log
        assert (log.high_watermark, log.log_end_offset, log.config.retention_ms) == (2, 2, 123_456_789)
        assert folders(held) == ["t-0", "t-1"]

    virtual(scenario())


def test_logs_that_do_not_belong_here_become_strays_at_the_start() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        for name in ("stays", "deleted", "again"):
            await held.make_topic(name)
            held.produced(name, 0, make_batch(b"a"))
        moved_id = await held.make_topic("moved", replicas=(1, 2))
        topics = held.metadata.image.topics.by_name
        new_id = held.new_uuid()
        while_down = [
            RemoveTopicRecord(topic_id=topics["deleted"].id),
            RemoveTopicRecord(topic_id=topics["again"].id),
            TopicRecord(name="again", topic_id=new_id),
            partition_record(new_id),
        ]
        moved = {"replicas": [2], "isr": [2], "leader": 2, "directories": [DIRECTORY_UNASSIGNED]}
        while_down.append(PartitionChangeRecord(partition_id=0, topic_id=moved_id, **moved))
        await held.restart(before=while_down)
        assert folders(held) == ["again-0", "again-0-stray", "deleted-0-stray", "moved-0-stray", "stays-0"]
        assert held.partition("again").log.log_end_offset == 0
        assert held.partition("stays").log.log_end_offset == 1

    virtual(scenario())


# Failed disks


def test_a_failed_directory_takes_only_its_partitions_offline() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(paths=("/a", "/b", "/c"))
        await held.make_topic("t", 6)
        places = {index: held.partition("t", index).log.folder.split("/")[1] for index in range(6)}
        held.disk.faults.append(Fault("append", "/b/*"))
        broken = next(index for index, place in places.items() if place == "b")
        assert held.produced("t", broken, make_batch(b"a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        for index, place in places.items():
            expected = ErrorCode.KAFKA_STORAGE_ERROR if place == "b" else 0
            assert code_for(held, "t", index) == expected
            assert held.produced("t", index, make_batch(b"a")).error_code == expected
        assert held.stopped == []

    virtual(scenario())


def test_the_last_directory_stops_the_node() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(paths=("/a",))
        lost = []
        held.partitions.on_directory_lost = lost.append
        await held.make_topic("t")
        held.disk.faults.append(Fault("append", "/a/*"))
        held.produced("t", 0, make_batch(b"a"))
        (reason,) = held.stopped
        assert "/a" in reason
        assert [loss.partitions for loss in lost] == [(TopicPartition("t", 0),)]

    virtual(scenario())


def test_partition_on_a_failed_disk_is_not_created_elsewhere() -> None:
    """Else its records would seem lost while the disk is offline, and there would be two logs when it is back."""

    async def scenario() -> None:
        held = await HeldPartitions.open(paths=("/a", "/b", "/c"))
        await held.make_topic("t", 6)
        for index in range(6):
            held.produced("t", index, make_batch(b"a"))
        on_b = [index for index in range(6) if held.partition("t", index).log.folder.startswith("/b/")]
        await held.restart(crash=True, faults=[Fault("*", "/b*", times=None)])
        assert on_b
        for index in range(6):
            assert code_for(held, "t", index) == (ErrorCode.KAFKA_STORAGE_ERROR if index in on_b else 0)
        await held.make_topic("new", 2)
        assert code_for(held, "new", 1) == 0, "new ones are made on the disks that work"

    virtual(scenario())


def test_replica_that_is_moved_here_is_created_although_a_disk_has_failed() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(paths=("/a", "/b"))
        await held.make_topic("t", replicas=(2,))
        held.partitions.lose_directory(LogDirectoryFailed("/b", OSError(5, "broken")))
        await held.change("t", 0, replicas=[1, 2], adding_replicas=[1], directories=[DIRECTORY_UNASSIGNED] * 2)
        assert held.partition("t", 0).log.folder == "/a/t-0"

    virtual(scenario())


def test_a_topic_whose_disk_has_failed_can_be_deleted() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", 2)
        log = held.partition("t", 1).log
        held.partitions.lose_directory(log.fail(OSError(5, "broken")), log)
        await held.delete_topic("t")
        assert code_for(held, "t", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    virtual(scenario())


def test_verification_setting_applies_to_old_and_new_logs() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("old")
        for is_on in (False, True, False):
            setting = {"name": "transaction.partition.verification.enable", "value": str(is_on).lower()}
            await held.commit(ConfigRecord(resource_type=ResourceType.BROKER, resource_name="", **setting))
            await held.make_topic(f"new-{is_on}-{len(held.records)}")
            assert {partition.log.options.verify_transactions for partition in held.partitions} == {is_on}
        await held.restart()
        assert {partition.log.options.verify_transactions for partition in held.partitions} == {False}

    virtual(scenario())


def test_full_disk_is_described_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(paths=("/a",))
        await held.make_topic("t", 4)
        held.disk.fail("append", "*/t-0/*.log", errno.ENOSPC)
        for partition in (0, 1, 2, 3, 0):
            answer = held.produced("t", partition, make_batch(b"v"))
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert len(answer.error_message or "") < 130
        await held.change("t", 1, leader=2)
        await held.make_topic("u", 2)
        long, *others = [record.message for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]
        assert long.startswith("log directory /a failed: ")
        assert long.endswith("Its partitions are offline. Free space on its disk and restart the node")
        assert len(others) == 3, "the node stops, and two new partitions find no room"
        assert all(len(message) < 180 for message in others)
        assert sum("00000000000000000000.log" in record.message for record in caplog.records) == 1
        (stopped,) = held.stopped
        assert stopped.endswith("Free space on its disk and restart the node")

    virtual(scenario())
