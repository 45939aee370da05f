"""Changes of the ISR: asked for one at a time, and ended only by an answer that is certain."""

import asyncio
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual

from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.isr_changes import IsrChanges
from ottla.broker.replication.replication import IsrCounters
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.base import Message
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from ottla.wire.messages.metadata_records import RegisterBrokerRecord


class Channel:
    """A controller that answers with what the test puts in `answers`: an error code, or the partition epoch."""

    def __init__(self) -> None:
        self.asked: list[AlterPartitionRequest] = []
        self.answers: asyncio.Queue[Any] = asyncio.Queue()

    async def call(self, request: Message, timeout_ms: int | None = None) -> AlterPartitionResponse:
        assert isinstance(request, AlterPartitionRequest)
        self.asked.append(request)
        answer = await self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        topics = []
        for topic in request.topics:
            topics.append(AlterPartitionResponseTopicData(topic_id=topic.topic_id))
            for each in topic.partitions:
                data = AlterPartitionResponsePartitionData(partition_index=each.partition_index, leader_id=1)
                if answer > 0:
                    data.error_code = answer
                else:
                    data.isr = [state.broker_id for state in each.new_isr_with_epochs]
                    data.leader_epoch, data.partition_epoch = each.leader_epoch, each.partition_epoch - answer
                topics[-1].partitions.append(data)
        return AlterPartitionResponse(topics=topics)

    async def forward(self, request: Any, timeout_ms: int | None = None) -> Any:
        raise AssertionError("brokers forward nothing here")


MADE = -1
"""The partition epoch is one higher."""
SAME = 0


async def partition_out_of_sync() -> tuple[Channel, IsrChanges, Partition, HeldPartitions]:
    """A leader of two replicas, of which the other is not in sync, and has just caught up."""
    held = await HeldPartitions.open()
    await held.commit(RegisterBrokerRecord(broker_id=2, broker_epoch=7, fenced=False))
    await held.make_topic("t", replicas=(1, 2))
    await held.change("t", 0, isr=[1])
    channel = Channel()
    changes = IsrChanges(1, channel, lambda: 5, IsrCounters())
    held.partitions.on_isr_change = changes.ask
    partition = held.partition("t")
    partition.follower_fetches(2, 0, 0, 7)
    await asyncio.sleep(0.01)
    return channel, changes, partition, held


def test_request_names_the_brokers_and_their_epochs() -> None:
    async def scenario() -> None:
        channel, changes, partition, _ = await partition_out_of_sync()
        (request,) = channel.asked
        (asked,) = request.topics[0].partitions
        assert (request.broker_id, request.broker_epoch, asked.leader_epoch, asked.partition_epoch) == (1, 5, 0, 1)
        assert [(each.broker_id, each.broker_epoch) for each in asked.new_isr_with_epochs] == [(1, 5), (2, 7)]
        assert (partition.isr, partition.isr_size_max) == ((1,), 2)
        partition.follower_fetches(2, 0, 0, 7)
        await asyncio.sleep(1)
        assert len(channel.asked) == 1, "one at a time"
        channel.answers.put_nowait(MADE)
        await asyncio.sleep(0.01)
        assert (partition.isr, partition.partition_epoch, partition.in_sync and partition.in_sync.pending) == ((1, 2), 2, None)
        await changes.stop()

    virtual(scenario())


def test_request_names_the_epoch_in_which_the_replica_was_in_sync() -> None:
    """The process that was in sync may be gone: the next one, which may have lost its log, is not to be added for it."""

    async def scenario() -> None:
        channel, changes, partition, _ = await partition_out_of_sync()
        partition.follower_fetches(2, 0, 0, 8)
        channel.answers.put_nowait(ErrorCode.NOT_CONTROLLER)
        await asyncio.sleep(1)
        asked = [request.topics[0].partitions[0].new_isr_with_epochs for request in channel.asked]
        assert [[(each.broker_id, each.broker_epoch) for each in isr] for isr in asked] == [[(1, 5), (2, 7)]] * 2
        await changes.stop()

    virtual(scenario())


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED, SAME])
def test_certain_refusal_ends_the_change(code: int) -> None:
    async def scenario() -> None:
        channel, changes, partition, _ = await partition_out_of_sync()
        channel.answers.put_nowait(code)
        await asyncio.sleep(1)
        assert (partition.isr, partition.isr_size_max, len(channel.asked)) == ((1,), 1, 1)
        await changes.stop()

    virtual(scenario())


@pytest.mark.parametrize("code", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION])
def test_change_that_came_too_late_stays_pending_until_the_metadata_says_more(code: int) -> None:
    async def scenario() -> None:
        channel, changes, partition, held = await partition_out_of_sync()
        channel.answers.put_nowait(code)
        await asyncio.sleep(1)
        assert (partition.isr_size_max, len(channel.asked)) == (2, 1)
        await held.change("t", 0, isr=[1])
        assert partition.isr_size_max == 1
        await changes.stop()

    virtual(scenario())


@pytest.mark.parametrize(
    "answer",
    [ErrorCode.NOT_CONTROLLER, KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller"), ZeroDivisionError("a bug")],
    ids=["code", "raised", "bug"],
)
def test_uncertain_answer_is_asked_for_again(answer: Any) -> None:
    async def scenario() -> None:
        channel, changes, partition, _ = await partition_out_of_sync()
        channel.answers.put_nowait(answer)
        await asyncio.sleep(1)
        assert (partition.isr_size_max, len(channel.asked)) == (2, 2)
        channel.answers.put_nowait(MADE)
        await asyncio.sleep(0.01)
        assert partition.isr == (1, 2)
        await changes.stop()

    virtual(scenario())


def test_answer_after_newer_metadata_changes_nothing() -> None:
    async def scenario() -> None:
        channel, changes, partition, held = await partition_out_of_sync()
        await held.change("t", 0, isr=[1], leader=1)
        await held.change("t", 0, isr=[1])
        channel.answers.put_nowait(MADE)
        await asyncio.sleep(0.01)
        assert (partition.isr, partition.partition_epoch) == ((1,), 3)
        await changes.stop()

    virtual(scenario())


@pytest.mark.parametrize(
    ("answer", "counted"),
    [(MADE, (1, 0, 0)), (SAME, (0, 0, 0)), (ErrorCode.INELIGIBLE_REPLICA, (0, 0, 1))],
    ids=["made", "so already", "refused"],
)
def test_changes_are_counted_and_logged(answer: int, counted: tuple[int, int, int], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "ottla")

    async def scenario() -> None:
        channel, changes, partition, held = await partition_out_of_sync()
        if answer == MADE:
            await held.change("t", 0, isr=[1, 2])  # the metadata comes before the answer
            partition = held.partition("t")
        channel.answers.put_nowait(answer)
        await asyncio.sleep(0.01)
        counters = changes.counters
        assert (counters.expands, counters.shrinks, counters.failures) == counted
        if answer == MADE:
            partition.append(make_batch(b"x"), 1)
            await asyncio.sleep(3600)
            partition.drop_lagging()
            channel.answers.put_nowait(MADE)
            await asyncio.sleep(0.01)
            assert (counters.expands, counters.shrinks, partition.isr) == (1, 1, (1,))
        await changes.stop()

    virtual(scenario())
    said = [line.split(": ")[-1] for line in caplog.messages if "the ISR is" in line]
    made = ["the ISR is [1, 2] now, it was [1]", "the ISR is [1] now, it was [1, 2]"]
    assert said == (made if answer == MADE else []), "nothing is said if nothing has changed"
