"""One partition: its refusals, and what a new leader epoch resets."""

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual

from ottla.errors import BrokenInvariant, CorruptFile, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.log.read import Isolation
from ottla.metadata.image.image import ResourceType
from ottla.wire.messages.metadata_records import ConfigRecord


def test_new_leader_epoch_forgets_the_followers_offsets() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2))
        partition = held.partition("t")
        held.produce("t", 0, make_batch(b"a"))
        partition.follower_fetches(2, 1, 0, -1)
        await held.change("t", 0, isr=[1, 2])
        assert partition.follower_ends == {2: 1}
        await held.change("t", 0, leader=1)
        assert partition.follower_ends == {}
        assert partition.log.high_watermark == 1, "what was committed stays so"

    virtual(scenario())


def test_unflushed_records_of_a_killed_process_are_flushed_first() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        held.produce("t", 0, make_batch(b"a"))
        flush_each = ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="t", name="flush.messages", value="1")
        await held.restart(crash=True, before=[flush_each])
        log = held.partition("t").log
        assert (log.log_end_offset, log.recovery_point, log.high_watermark) == (1, 1, 1)

    virtual(scenario())


def test_closed_log_refuses_without_growing_its_traceback() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        partition = held.partition("t")
        await held.directories.close()
        for _ in range(3):
            assert held.produced("t", 0, make_batch(b"a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            with pytest.raises(KafkaError, match="is not available now"):
                partition.read(0, 100, Isolation.LOG_END)
        assert partition.log.write_barrier is not None
        assert partition.log.write_barrier.__traceback__ is None

    virtual(scenario())


def test_damaged_file_is_refused_and_a_broken_invariant_raised() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t")
        partition = held.partition("t")
        assert partition.refused_by(CorruptFile("f", 1, "damaged", "Mend it")).code == ErrorCode.CORRUPT_MESSAGE
        with pytest.raises(BrokenInvariant):
            partition.refused_by(BrokenInvariant("it cannot be"))

    virtual(scenario())


def test_refusal_and_repr_name_the_leader() -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", replicas=(1, 2), leader=2)
        assert str(held.partition("t").refusal()) == ("t-0 is led by node 2, not by node 1: ask for new metadata and go there")
        assert "led by 2" in repr(held.partition("t"))

    virtual(scenario())
