"""Periodic work: retention over all logs, flushes and removals when due, producer expiry, checkpoints."""

import asyncio
import dataclasses

import pytest
from tests.support.logs.batches import T0, make_batch
from tests.support.logs.log_directories import SMALL, NodeStorage
from tests.support.logs.partition_logs import run

from ottla.ids import TopicPartition

PARTITION = TopicPartition("t", 0)


def node_with(**settings: object) -> NodeStorage:
    config = dataclasses.replace(SMALL, **settings)  # type: ignore[arg-type]  # settings are the dataclass's own
    node = NodeStorage(("/a",), topic_config=config, compaction=True)
    node.open()
    node.fill(node.create("t"))
    return node


@pytest.mark.parametrize("policy", [("delete",), ("compact", "delete")])
def test_retention_reaches_every_log(policy: tuple[str, ...]) -> None:
    node = node_with(retention_ms=1000, cleanup_policy=policy)
    assert run(node.upkeep.run_retention()) == {}
    node.clock.advance(10**6)
    gone = run(node.upkeep.run_retention())
    assert len(gone[PARTITION]) > 1
    assert node.ends()["t-0"] == (60, 60, 60)
    run(node.upkeep.flush_due())
    assert node.upkeep.next_deadline_s == pytest.approx(node.clock.monotonic_s() + 1)
    node.clock.advance(1000)
    assert run(node.upkeep.delete_due()) == 1
    assert not [name for name in node.disk.list_directory("/a/t-0") if name.endswith(".deleted")]


def test_log_start_survives_a_kill_after_retention() -> None:
    node = node_with(retention_ms=1000)
    node.clock.advance(10**6)
    run(node.upkeep.run_retention())
    node.crash()
    assert node.ends()["t-0"][0] == 60


def test_flushes_come_due() -> None:
    node = node_with(flush_ms=500)
    log = node.directories.find(PARTITION)
    assert log is not None
    assert run(node.upkeep.flush_due()) == 1  # segments were rolled
    assert log.recovery_point < log.log_end_offset
    assert run(node.upkeep.flush_due()) == 0
    deadline_s = node.upkeep.next_deadline_s
    assert deadline_s is not None
    node.clock.advance((deadline_s - node.clock.monotonic_s()) * 1000)
    assert run(node.upkeep.flush_due()) == 1
    assert log.recovery_point == log.log_end_offset
    assert node.upkeep.next_deadline_s is None


def test_rolled_segments_want_a_flush_now() -> None:
    node = node_with()
    assert node.upkeep.next_deadline_s == node.clock.monotonic_s()


def test_idle_producers_are_removed() -> None:
    node = node_with()
    log = node.directories.find(PARTITION)
    assert log is not None
    log.append_as_leader(make_batch(b"v", producer=(5, 0, 0), timestamp=T0), 0)
    node.clock.advance(node.config.producer_id_expiration_ms - 1)
    assert node.upkeep.remove_expired_producers() == 0
    node.clock.advance(1)
    assert node.upkeep.remove_expired_producers() == 1


def test_truncation_checkpoints_the_recovery_point_at_once() -> None:
    node = node_with()
    log = node.directories.find(PARTITION)
    assert log is not None
    run(log.flush())
    run(node.upkeep.write_recovery_points())
    assert run(node.directories.truncate(PARTITION, 20))
    assert node.disk.read_file("/a/recovery-point-offset-checkpoint") == b"0\n1\nt 0 20\n"
    node.fill(PARTITION, 5)
    node.crash(power_loss=True)
    assert 20 <= node.ends()["t-0"][2] <= 30


def test_truncating_fully_writes_all_checkpoints() -> None:
    node = node_with()
    log = node.directories.find(PARTITION)
    assert log is not None
    log.delete_records(5)
    run(node.upkeep.write_log_starts())
    run(node.directories.truncate_fully(PARTITION, 2))
    assert node.disk.read_file("/a/log-start-offset-checkpoint") == b"0\n0\n"
    assert node.disk.read_file("/a/replication-offset-checkpoint") == b"0\n1\nt 0 2\n"
    node.crash()
    assert node.ends()["t-0"] == (2, 2, 2)


def test_checkpoint_writes_of_one_directory_take_turns() -> None:
    node = node_with()
    writes = []

    async def pause() -> None:
        writes.append(len(writes))
        await asyncio.sleep(0)

    node.disk.pause = pause

    async def many() -> None:
        directory = node.directories.directories[0]
        await asyncio.gather(*(directory.write_recovery_points() for _ in range(5)), directory.write_high_watermarks())

    run(many())
    assert node.disk.read_file("/a/replication-offset-checkpoint") == b"0\n1\nt 0 60\n"
    assert not [name for name in node.disk.list_directory("/a") if name.endswith(".tmp")]


def test_deletion_drops_the_compaction_checkpoint() -> None:
    node = node_with(cleanup_policy=("compact",))
    run(node.disk.replace_file("/a/cleaner-offset-checkpoint", b"0\n1\nt 0 10\n"))
    run(node.directories.delete(PARTITION))
    assert node.disk.read_file("/a/cleaner-offset-checkpoint") == b"0\n0\n"
