"""The core on its event loop: metadata, compression levels and what it does when it cannot go on."""

import asyncio
from random import Random
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode, FakeStream
from tests.support.producers.model_cluster import NODES, TOPIC, ModelCluster
from tests.support.producers.settings import small_settings

from ottla import Producer
from ottla.client.producer.asynchronous import TaskWaiting
from ottla.client.producer.core import ProducerCore, codec_level, set_done
from ottla.client.world import ClientWorld, real_client_world
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.config.client import producer_settings
from ottla.env.real.clock import RealClock
from ottla.env.real.threads import RealThreads
from ottla.errors import (
    ClusterAuthorizationError,
    GroupAuthorizationError,
    IllegalStateError,
    KafkaError,
    TopicAuthorizationError,
    TransactionAbortedError,
)
from ottla.records.kernels import NO_HEADERS
from ottla.sim.world import SeededRandomness
from ottla.testing import Broker
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import ProduceRequest

HANG_S = 60


def core_for(broker: Broker) -> ProducerCore:
    return ProducerCore(producer_settings(broker.bootstrap_servers), real_client_world(), TaskWaiting())


def test_a_topic_becomes_known_with_its_partitions(broker: Broker) -> None:
    async def run() -> None:
        core = core_for(broker)
        await core.know_topic("t", 0, HANG_S)
        assert core.accumulator.topics["t"].partition_count == 3
        await core.know_topic("t", 99, HANG_S)  # a refresh shows no such partition: the caller decides
        await core.close(HANG_S)
        assert await core.close(HANG_S) == 0

    asyncio.run(asyncio.wait_for(run(), HANG_S))


def test_a_refused_topic_is_asked_for_again_by_the_next_call(broker: Broker) -> None:
    async def run() -> None:
        core = core_for(broker)
        with pytest.raises(TopicAuthorizationError):
            await core.know_topic("t", 0, HANG_S)
        with pytest.raises(TopicAuthorizationError):
            await core.know_topic("t", 0, HANG_S)
        broker.faults.clear()
        await core.know_topic("t", 0, HANG_S)
        await core.close(HANG_S)

    broker.faults.fail("Metadata", "TOPIC_AUTHORIZATION_FAILED", topic="t")
    asyncio.run(asyncio.wait_for(run(), HANG_S))


def test_a_new_topic_does_not_wait_for_the_retry_backoff(broker: Broker) -> None:
    async def run() -> None:
        settings = producer_settings(
            broker.bootstrap_servers, config={"retry.backoff.ms": 600_000, "retry.backoff.max.ms": 600_000}
        )
        core = ProducerCore(settings, real_client_world(), TaskWaiting())
        for topic in ("t", "u", "v"):  # each after the answer to the one before
            await core.know_topic(topic, 0, HANG_S)
        await core.close(HANG_S)

    asyncio.run(asyncio.wait_for(run(), HANG_S))


def test_a_producer_without_an_id_fails_what_it_has(broker: Broker) -> None:
    async def run() -> None:
        core = core_for(broker)
        await core.know_topic("t", 0, HANG_S)
        seen: list[KafkaError | None] = []
        sent = core.accumulator.append("t", 0, (0, None, b"v", NO_HEADERS), lambda _, error: seen.append(error), core.now_ms())
        assert sent is not None
        core.wake()
        with pytest.raises(ClusterAuthorizationError):
            await sent
        late = core.accumulator.append("t", 0, (0, None, b"v", NO_HEADERS), None, core.now_ms())
        core.wake()
        assert late is not None
        with pytest.raises(ClusterAuthorizationError):
            await late
        assert isinstance(core.fault, ClusterAuthorizationError)
        assert seen == [core.fault]
        with pytest.raises(ClusterAuthorizationError):
            await core.finish_transaction(("tx", 1, 0), True)  # type: ignore[arg-type]
        await core.close(HANG_S)

    broker.faults.fail("InitProducerId", "CLUSTER_AUTHORIZATION_FAILED")
    asyncio.run(asyncio.wait_for(run(), HANG_S))


class _DeadNode(FakeNetwork):
    """A network in which the attempt to connect to the first node neither succeeds nor fails."""

    def __init__(self, nodes: dict[tuple[str, int], FakeNode]) -> None:
        super().__init__(nodes)
        self.attempted = asyncio.Event()

    async def connect(self, host: str, port: int, *arguments: Any, **options: Any) -> FakeStream:
        if (host, port) == ("localhost", 9000 + NODES[0]):
            self.attempted.set()
            await asyncio.sleep(HANG_S)
        return await super().connect(host, port, *arguments, **options)


def test_batch_goes_to_a_new_leader_while_the_old_one_is_still_connected_to() -> None:
    cluster = ModelCluster(1)
    node = FakeNode(
        {
            MetadataRequest: lambda request, version: cluster.metadata(),
            InitProducerIdRequest: lambda request, version: InitProducerIdResponse(producer_id=7, producer_epoch=0),
            ProduceRequest: lambda request, version: cluster.execute(NODES[1], request),
        }
    )

    async def run() -> None:
        network = _DeadNode({("first", 9092): node, ("localhost", 9000 + NODES[1]): node})
        settings = producer_settings("first:9092", {"socket.connection.setup.timeout.ms": HANG_S * 1000})
        world = ClientWorld(RealClock(), network, SeededRandomness(Random(1)), RealThreads())
        core = ProducerCore(settings, world, TaskWaiting())
        await core.know_topic(TOPIC, 0, HANG_S)
        sent = core.accumulator.append(TOPIC, 0, (0, None, b"v", NO_HEADERS), None, core.now_ms())
        core.wake()
        await network.attempted.wait()
        cluster.move_leader(0)
        core.metadata.refresh("another request has failed")
        core.wake()
        assert sent is not None
        assert (await sent).offset == 0
        await core.close(HANG_S)

    asyncio.run(asyncio.wait_for(run(), HANG_S / 2))
    assert cluster.partitions[0].log == [b"v"]


@pytest.mark.parametrize("api", ["TxnOffsetCommit", "FindCoordinator"])
def test_a_commit_after_an_error_does_not_wait_for_records_that_are_never_sent(broker: Broker, api: str) -> None:
    async def run() -> None:
        settings = producer_settings(broker.bootstrap_servers, None, {"transactional_id": "tx-" + api, "linger_ms": 60_000})
        core = ProducerCore(settings, real_client_world(), TaskWaiting())
        await core.initialize()
        await core.know_topic("t", 0, HANG_S)
        core.begin()
        sent = core.accumulator.append("t", 0, (0, None, b"v", NO_HEADERS), None, core.now_ms())
        assert sent is not None
        broker.faults.fail(api, "GROUP_AUTHORIZATION_FAILED", times=1)
        with pytest.raises(GroupAuthorizationError):
            await core.send_offsets({("t", 0): OffsetAndMetadata(1)}, ConsumerGroupMetadata("g"))
        with pytest.raises(TransactionAbortedError):
            await sent
        with pytest.raises(IllegalStateError, match="Now abort the transaction"):
            await core.commit()
        await core.abort()
        core.begin()
        await core.commit()
        await core.close(HANG_S)

    asyncio.run(asyncio.wait_for(run(), HANG_S))


def test_transactions_need_a_transactional_id(broker: Broker) -> None:
    async def run() -> None:
        core = core_for(broker)
        with pytest.raises(IllegalStateError, match=r"no transactional\.id"):
            await core.initialize()
        await core.close(HANG_S)

    asyncio.run(asyncio.wait_for(run(), HANG_S))


@pytest.mark.parametrize(("codec", "level"), [("none", None), ("gzip", None), ("lz4", 9), ("zstd", 3), ("snappy", None)])
def test_compression_levels(codec: str, level: int | None) -> None:
    assert codec_level(small_settings(compression_type=codec)) == level


def test_a_caller_that_stopped_waiting_is_left_alone() -> None:
    async def body() -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.cancel()
        set_done(done)
        assert done.cancelled()

    asyncio.run(body())


@pytest.mark.parametrize(("wrong", "kind"), [("5", TypeError), (-1, ValueError)])
def test_timeouts_are_checked_at_the_call(broker: Broker, wrong: Any, kind: type[Exception]) -> None:
    with Producer(broker.bootstrap_servers, linger_ms=60_000) as producer:
        delivery, many = producer.send("t", b"v"), producer.send_many("t", [b"v"])
        calls = [producer.flush, producer.client_instance_id, producer.close, delivery.result, delivery.exception]
        for call in [*calls, many.wait, many.result, many.ranges, many.first_failure]:
            with pytest.raises(kind, match="a timeout is a number of seconds"):
                call(timeout=wrong)
