"""DeleteRecords: the new log start offset, what is refused, and that no restart brings records back."""

import asyncio

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.data_node import DataNode, append, run
from tests.support.nodes.held_partitions import HeldPartitions, virtual

from ottla.broker.handlers.data import delete_records
from ottla.broker.requests import memory
from ottla.broker.requests.context import ConnectionInfo
from ottla.broker.requests.memory import GRACE_S
from ottla.broker.requests.parked import Parked
from ottla.broker.requests.pipeline import RequestPipeline
from ottla.errors.codes import ErrorCode
from ottla.wire.headers import encode_request
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.metadata_records import RegisterBrokerRecord

Answer = dict[tuple[str, int], tuple[int, int]]
"""(topic, partition) → (error code, low watermark)"""


def delete(node: DataNode, *wanted: tuple[str, int, int], version: int = 2) -> Answer:
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)])
            for topic, index, offset in wanted
        ],
        timeout_ms=1000,
    )
    response = node.ask(delete_records, request, version)
    names = [topic.name for topic in response.topics]
    assert len(names) == len(set(names))
    return {
        (topic.name, each.partition_index): (each.error_code, each.low_watermark)
        for topic in response.topics
        for each in topic.partitions
    }


@pytest.fixture
def node() -> DataNode:
    node = DataNode()
    hosted = node.topic("t", 2)
    for _ in range(3):
        append(hosted, b"a", b"b", b"c")
    return node


def test_minus_one_is_the_high_watermark(node: DataNode) -> None:
    node.partitions.leader("t", 0).log.update_high_watermark(4)
    assert delete(node, ("t", 0, -1), ("t", 1, -1)) == {("t", 0): (0, 4), ("t", 1): (0, 0)}


def test_offset_above_the_high_watermark_is_refused(node: DataNode) -> None:
    node.partitions.leader("t", 0).log.update_high_watermark(4)
    assert delete(node, ("t", 0, 5)) == {("t", 0): (ErrorCode.OFFSET_OUT_OF_RANGE, -1)}


def test_one_refused_partition_does_not_affect_the_others(node: DataNode) -> None:
    append(node.topic("__consumer_offsets"), b"a", key=b"k")
    node.topic("followed")
    node.follow("followed")
    assert delete(node, ("nope", 0, 0), ("t", 7, 0), ("__consumer_offsets", 0, 0), ("followed", 0, 0), ("t", 0, 1)) == {
        ("nope", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ("t", 7): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ("__consumer_offsets", 0): (ErrorCode.INVALID_TOPIC_EXCEPTION, -1),
        ("followed", 0): (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
        ("t", 0): (0, 1),
    }


@pytest.mark.parametrize("power_loss", [False, True])
def test_deleted_records_stay_deleted_after_crash_or_power_loss(node: DataNode, power_loss: bool) -> None:
    append(node.partitions.leader("t", 1))
    for partition in (0, 1):
        log = node.partitions.leader("t", partition).log
        delete(node, ("t", partition, 1))
        assert log.segments.first.base_offset == 0
    # Flushed, so that a power loss takes nothing but what was deleted.
    for log in node.storage.directories.logs.values():
        run(log.flush())
    directories = node.storage.crash(power_loss)
    assert {str(name): log.log_start_offset for name, log in directories.logs.items()} == {"t-0": 1, "t-1": 1}


def test_directory_that_fails_during_the_checkpoint_is_offline(node: DataNode) -> None:
    log = node.partitions.leader("t", 0).log
    directory = log.folder.rpartition("/")[0]
    fault = node.storage.disk.fail("replace", f"{directory}/log-start-offset-checkpoint")
    assert delete(node, ("t", 0, 1)) == {("t", 0): (ErrorCode.KAFKA_STORAGE_ERROR, -1)}
    assert fault.hits == 1
    assert [loss.directory for loss in node.storage.directories.take_losses()] == [directory]


def test_large_requests_that_wait_for_a_replica_do_not_hold_up_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them take all memory for large requests, and would hold it for as long as their clients say."""
    monkeypatch.setattr(memory, "SHARE_BYTES", 2 << 20)

    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.commit(RegisterBrokerRecord(broker_id=2, broker_epoch=7, fenced=False))
        await held.make_topic("t", replicas=(1, 2))
        held.produce("t", 0, make_batch(b"x"), acks=1)
        held.partition("t").follower_fetches(2, 1, 0, 7)
        pipeline = RequestPipeline(held.services)
        held.services.scheduler = pipeline.scheduler

        def ask(topic: str) -> Parked:
            named = [DeleteRecordsPartition(partition_index=0, offset=1)] * 5000  # 1.6 MB, parsed
            request = DeleteRecordsRequest(timeout_ms=3_600_000, topics=[DeleteRecordsTopic(name=topic, partitions=named)])
            frame = bytearray(b"".join(bytes(part) for part in encode_request(request, 2, 1, "test")))[4:]
            connection = ConnectionInfo(len(asked), "PLAINTEXT", ("peer", 1))
            parked = pipeline.handle(connection, frame)
            assert isinstance(parked, Parked)
            asked.append(parked)
            return parked

        asked: list[Parked] = []
        for _ in range(2):
            ask("t")
        last = ask("other")
        await asyncio.sleep(1)
        assert [each.is_ready for each in asked[:1]] == [False], "the replica has not deleted them"
        await asyncio.sleep(2 * GRACE_S)
        assert last.is_ready
        assert asked[0].is_ready, "the first has waited for long, and its memory was needed"

    virtual(scenario())
