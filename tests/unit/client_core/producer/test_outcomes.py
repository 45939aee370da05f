"""What becomes of a batch: retried while attempts and time are left, else failed, and with which reason."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.producers.settings import small_settings

from ottla.client_core.metadata import Metadata, Node
from ottla.client_core.pending_connections import Connecting
from ottla.client_core.producer.accumulator import Accumulator
from ottla.client_core.producer.batch import ProducerBatch
from ottla.client_core.producer.sender import BatchOutcomes
from ottla.errors import KafkaError, NetworkError, TimeoutError, TopicAuthorizationError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid
from ottla.records.compression import Codec
from ottla.records.kernels import NO_HEADERS
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.produce import LeaderIdAndEpoch, PartitionProduceResponse


class World:
    """One batch of two records for t-0, which is in flight to node 1."""

    def __init__(self, **changes: Any) -> None:
        self.settings = small_settings(enable_idempotence=False, **changes)
        self.metadata = Metadata(self.settings, lambda below: below // 2)
        self.metadata.want(["t"])
        (request,) = self.metadata.step(0)
        partition = MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=1)
        topic = MetadataResponseTopic(name="t", partitions=[partition])
        brokers = [MetadataResponseBroker(node_id=1, host="h", port=1)]
        self.metadata.answered(request, MetadataResponse(brokers=brokers, topics=[topic]), 13, 0)
        self.accumulator = Accumulator(self.settings, lambda topic, count, number: [0])
        self.accumulator.set_partition_count("t", 1)
        self.connecting = Connecting(self.metadata, 1_000)
        self.outcomes = BatchOutcomes(
            self.settings, self.accumulator, self.metadata, self.connecting, lambda below: below // 2, None
        )
        for value in (b"a", b"b"):
            self.accumulator.append("t", 0, (0, None, value, NO_HEADERS), None, 0)
        self.batch = self.accumulator.take(self.accumulator.queues["t", 0])
        self.batch.seal(Codec.NONE, None, False)

    def answer(self, code: int, now_ms: int = 100) -> None:
        self.outcomes.answered(self.batch, PartitionProduceResponse(index=0, error_code=code, base_offset=7), [], now_ms)

    @property
    def waiting(self) -> list[ProducerBatch]:
        return list(self.accumulator.queues["t", 0].batches)


def test_a_stored_batch_is_finished() -> None:
    world = World()
    world.answer(ErrorCode.NONE)
    assert world.outcomes.finished == [world.batch]
    assert world.batch.is_done
    assert world.batch.error is None


def test_a_retriable_error_puts_the_batch_back_and_refreshes_the_leaders() -> None:
    world = World()
    world.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert world.waiting == [world.batch]
    assert world.batch.retry_at_ms > 100
    assert len(world.metadata.step(10_000)) == 1
    assert "1 attempt failed" in world.outcomes.why_not_stored(world.batch)


@pytest.mark.parametrize(("topic_id", "leader"), [(ZERO_UUID, (2, 9)), (Uuid(b"f" * 16), (1, 1))])
def test_a_leader_is_learned_only_of_the_topic_that_was_sent_to(topic_id: Uuid, leader: tuple[int, int]) -> None:
    """Epochs start over when a topic is made again: metadata with a lower one than the hint's would be ignored for ever."""
    world = World()
    world.batch.topic_id = topic_id
    hint = LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
    answer = PartitionProduceResponse(index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=hint)
    world.outcomes.answered(world.batch, answer, [Node(2, "h", 2)], 100)
    assert world.metadata.leader("t", 0) == leader


@pytest.mark.parametrize(
    ("code", "is_uncertain"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ErrorCode.REQUEST_TIMED_OUT, True),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
        (ErrorCode.NOT_ENOUGH_REPLICAS, False),
        (ErrorCode.THROTTLING_QUOTA_EXCEEDED, False),
    ],
)
def test_a_batch_may_be_stored_if_its_leader_failed_while_it_waited_for_followers(code: ErrorCode, is_uncertain: bool) -> None:
    world = World()
    world.answer(code)
    assert world.waiting == [world.batch]
    assert world.batch.is_uncertain is is_uncertain


@pytest.mark.parametrize(
    ("changes", "now_ms", "error"),
    [
        ({"retries": 0}, 100, NetworkError("gone")),
        ({}, 10_000_000, NetworkError("gone")),
        ({}, 100, TopicAuthorizationError("no")),
    ],
    ids=["no attempts left", "no time left", "no retry helps"],
)
def test_a_batch_fails_if_it_is_not_worth_another_attempt(changes: dict[str, Any], now_ms: int, error: KafkaError) -> None:
    world = World(**changes)
    world.outcomes.failed(world.batch, error, -1, now_ms)
    assert world.waiting == []
    assert world.outcomes.finished == [world.batch]
    assert world.batch.error is error


def test_a_batch_that_is_too_large_is_split() -> None:
    world = World()
    world.answer(ErrorCode.MESSAGE_TOO_LARGE)
    assert not world.batch.is_done
    assert [batch.count for batch in world.waiting] == [1, 1]


def test_a_failed_batch_spoils_its_transaction() -> None:
    world = World()
    seen: list[KafkaError] = []
    gate: Any = SimpleNamespace(is_fatal=False, batch_failed=seen.append)
    world.outcomes.gate = gate
    error = TopicAuthorizationError("no")
    world.outcomes.failed(world.batch, error, -1, 100)
    assert seen == [error]


def test_an_expired_batch_says_what_kept_it_from_being_stored() -> None:
    world = World()
    (request,) = world.connecting.connect(1, 0)
    world.connecting.failed(request, NetworkError("connection refused"))
    world.outcomes.expire(world.settings.delivery_timeout_ms - 1)
    assert not world.batch.is_done
    world.outcomes.expire(world.settings.delivery_timeout_ms)
    assert "node 1 is not connected: connection refused" in str(world.batch.error)


@pytest.mark.parametrize(
    ("code", "refused", "fate"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, "were refused, and none is stored", "None of the records is stored"),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "are stored on too few replicas", "may be stored or not: look for them"),
        (ErrorCode.REQUEST_TIMED_OUT, "were refused:", "may be stored or not: look for them"),
    ],
)
def test_expired_batch_says_whether_it_can_be_stored(code: ErrorCode, refused: str, fate: str) -> None:
    world = World()
    world.answer(code)
    world.outcomes.expire(world.settings.delivery_timeout_ms)
    assert refused in str(world.batch.error)
    assert fate in str(world.batch.error)


def test_expired_batch_that_waits_for_its_answer_may_be_stored() -> None:
    world = World()
    world.outcomes.expire(world.settings.delivery_timeout_ms)
    assert "may be stored or not" in str(world.batch.error)


def test_expired_batch_that_was_not_sent_is_not_stored() -> None:
    world = World()
    world.accumulator.put_back(world.batch)
    world.outcomes.expire(world.settings.delivery_timeout_ms)
    assert "None of the records is stored, because they were not sent" in str(world.batch.error)


def test_a_connection_that_will_not_open_fails_what_waits_for_its_node() -> None:
    world = World()
    world.accumulator.put_back(world.batch)
    error = TopicAuthorizationError("no")
    world.outcomes.fail_unsent_to(2, error)
    assert not world.batch.is_done
    world.outcomes.fail_unsent_to(1, error)
    assert world.batch.error is error


def test_a_batch_that_was_split_twice_expires_when_all_of_it_has() -> None:
    """Who waits for it reads its errors at once: a part without an error counts as stored."""
    world = World()
    for _ in range(8):
        world.accumulator.append("t", 0, (0, None, b"v", NO_HEADERS), None, 0)
    queue = world.accumulator.queues["t", 0]
    whole = world.batch = world.accumulator.take(queue)
    seen: list[KafkaError | None] = []
    whole.waiters.append(lambda: seen.extend(whole.error_of(index) for index in range(whole.count)))
    whole.seal(Codec.NONE, None, False)
    world.answer(ErrorCode.MESSAGE_TOO_LARGE)
    part = world.batch = world.accumulator.take(queue)
    part.seal(Codec.NONE, None, False)
    world.answer(ErrorCode.MESSAGE_TOO_LARGE)
    assert part.parts
    world.outcomes.expire(1_000_000_000)
    assert len(seen) == 8
    assert all(isinstance(error, TimeoutError) for error in seen)
    assert not world.accumulator.incomplete
