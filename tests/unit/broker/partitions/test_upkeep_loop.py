"""The background tasks in virtual time: that they run, when they run, and that they stop."""

import asyncio

import pytest
from tests.support.logs.batches import make_batch, sized_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual

from ottla.errors import BrokenInvariant
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.metadata.image.image import ResourceType
from ottla.sim.disk import Fault
from ottla.wire.messages.metadata_records import ConfigRecord

QUICK = {"log.initial.task.delay.ms": "1000", "log.retention.check.interval.ms": "10000", "log.cleaner.backoff.ms": "1000"}


def files(held: HeldPartitions, topic: str, suffix: str) -> list[str]:
    folder = held.partition(topic).log.folder
    return [name for name in held.disk.list_directory(folder) if name.endswith(suffix)]


def broker_setting(name: str, value: str) -> ConfigRecord:
    """What changes a setting of all brokers at run time."""
    return ConfigRecord(resource_type=ResourceType.BROKER, resource_name="", name=name, value=value)


def checkpoint(held: HeldPartitions, name: str) -> dict[str, int]:
    """What a checkpoint says, of all directories."""
    found: dict[str, int] = {}
    for path in held.paths:
        if held.disk.exists(f"{path}/{name}"):
            for line in held.disk.read_file(f"{path}/{name}").decode().splitlines()[2:]:
                topic, index, offset = line.split()
                found[f"{topic}-{index}"] = int(offset)
    return found


def test_retention_removes_old_segments_and_later_their_files() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(QUICK)
        await held.make_topic("t", 1, {"segment.bytes": 1_048_576, "retention.bytes": 3_000_000, "file.delete.delay.ms": 5000})
        held.partitions.start()
        for _ in range(8):
            held.produced("t", 0, sized_batch(700_000))
        assert len(files(held, "t", ".log")) == 8
        await asyncio.sleep(2)
        assert held.partition("t").log.log_start_offset > 0
        assert len(files(held, "t", ".log.deleted")) == 8 - len(files(held, "t", ".log"))
        await asyncio.sleep(6)
        assert files(held, "t", ".log.deleted") == []
        await held.partitions.stop()

    virtual(scenario())


def test_a_rolled_segment_is_flushed_soon() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(QUICK)
        await held.make_topic("t", 1, {"segment.bytes": 1_048_576})
        held.partitions.start()
        await asyncio.sleep(5)
        for _ in range(3):
            held.produced("t", 0, sized_batch(700_000))
        log = held.partition("t").log
        assert (log.recovery_point, log.flush_wanted_up_to) == (0, 2)
        await asyncio.sleep(0.1)
        assert (log.recovery_point, log.flush_wanted_up_to) == (2, None)
        await held.partitions.stop()

    virtual(scenario())


def test_flush_ms_is_kept_although_the_log_was_quiet_before() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(QUICK)
        await held.make_topic("t", 1, {"flush.ms": 2000})
        held.partitions.start()
        await asyncio.sleep(100)
        held.produced("t", 0, make_batch(b"a"))
        await asyncio.sleep(2.1)
        assert held.partition("t").log.recovery_point == 1
        await held.partitions.stop()

    virtual(scenario())


def test_checkpoints_are_written_when_something_has_changed() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(QUICK)
        await held.make_topic("t", 2)
        held.partitions.start()
        held.produced("t", 1, make_batch(b"a", b"b"))
        await asyncio.sleep(6)
        assert checkpoint(held, "replication-offset-checkpoint") == {"t-0": 0, "t-1": 2}
        path = f"{held.paths[0]}/replication-offset-checkpoint"
        written_ms = held.disk.modified_ms(path)
        await asyncio.sleep(20)
        assert held.disk.modified_ms(path) == written_ms
        await held.partition("t", 1).log.flush()
        held.partition("t", 1).log.delete_records(1)
        await asyncio.sleep(61)
        assert checkpoint(held, "recovery-point-offset-checkpoint")["t-1"] == 2
        assert checkpoint(held, "log-start-offset-checkpoint") == {"t-1": 1}
        await held.partitions.stop()

    virtual(scenario())


def test_compacted_topics_are_compacted() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(QUICK)
        await held.make_topic(
            "t", 1, {"cleanup.policy": "compact", "segment.bytes": 1_048_576, "min.cleanable.dirty.ratio": 0.01}
        )
        held.partitions.start()
        for number in range(3):
            for _ in range(40):
                held.produced("t", 0, make_batch(*[b"%d" % number * 100] * 100, key=b"key"))
            held.partition("t").log.roll()
        before = held.partition("t").log.size_bytes
        await asyncio.sleep(5)
        assert held.partition("t").log.size_bytes < before / 10
        await held.partitions.stop()

    virtual(scenario())


def test_changed_cleaner_settings_take_effect_at_the_next_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(QUICK)
        compactor = held.directories.compactor
        assert compactor is not None
        rates: list[float] = []

        async def run_once(_logs: object) -> None:
            rates.append(compactor.settings.io_max_bytes_per_second)

        monkeypatch.setattr(compactor, "run_once", run_once)
        held.partitions.start()
        await asyncio.sleep(0.5)
        assert len(rates) == 1
        assert rates[0] > 1e300
        await held.commit(
            broker_setting("log.cleaner.io.max.bytes.per.second", "1000"), broker_setting("log.cleaner.threads", "2")
        )
        await asyncio.sleep(1)
        assert rates[1:] == [1000, 1000]
        await held.commit(broker_setting("log.cleaner.threads", "1"))
        rates.clear()
        await asyncio.sleep(3)
        assert len(rates) == 3
        await held.partitions.stop()

    virtual(scenario())


def test_silent_producers_are_forgotten() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(QUICK | {"producer.id.expiration.ms": "60000"})
        await held.make_topic("t")
        held.produced("t", 0, make_batch(b"a", producer=(5, 0, 0)))
        held.partitions.start()
        await asyncio.sleep(700)
        assert held.partition("t").log.producers.is_empty
        await held.partitions.stop()

    virtual(scenario())


def test_a_disk_that_fails_in_the_background_takes_its_partitions_offline() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(QUICK, paths=("/a", "/b"))
        await held.make_topic("t", 2)
        held.partitions.start()
        on_b = next(index for index in (0, 1) if held.partition("t", index).log.folder.startswith("/b"))
        held.disk.faults.append(Fault("replace", "/b/*", times=None))
        for index in (0, 1):
            held.produced("t", index, make_batch(b"a"))
        await asyncio.sleep(70)
        assert held.produced("t", on_b, make_batch(b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert held.produced("t", 1 - on_b, make_batch(b"b")).error_code == 0
        assert TopicPartition("t", on_b) in held.partitions.offline
        await held.partitions.stop()

    virtual(scenario())


def test_broken_invariant_is_reported_and_other_errors_are_retried(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(QUICK)
        told: list[BaseException] = []
        held.partitions.on_broken = told.append
        failures: list[Exception] = [BrokenInvariant("it cannot be"), ValueError("odd")]

        async def run_once(_logs: object) -> None:
            if failures:
                raise failures.pop(0)

        monkeypatch.setattr(held.directories.compactor, "run_once", run_once)
        held.partitions.start()
        await asyncio.sleep(5)
        assert [str(failure) for failure in told] == ["it cannot be"]
        assert not failures
        await held.partitions.stop()

    virtual(scenario())
    assert "ValueError: odd" in caplog.text


def test_deleted_topics_leave_no_files() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(QUICK)
        await held.make_topic("t", 1, {"file.delete.delay.ms": 3000})
        held.partitions.start()
        await asyncio.sleep(10)
        await held.delete_topic("t")
        folders = [name for path in held.paths for name in held.disk.list_directory(path) if name.endswith("-delete")]
        assert len(folders) == 1
        await asyncio.sleep(3.2)
        assert not any(name.endswith("-delete") for path in held.paths for name in held.disk.list_directory(path))
        await held.partitions.stop()

    virtual(scenario())


def test_stopping_ends_every_task() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open(QUICK)
        before = asyncio.all_tasks()
        held.partitions.start()
        await asyncio.sleep(3)
        await held.partitions.stop()
        assert asyncio.all_tasks() == before
        await held.partitions.stop()

    virtual(scenario())
