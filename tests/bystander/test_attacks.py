"""One client cannot stop the others: expensive requests, from 1 and from 20 connections, beside a client that produces.

Each test attacks a node for a few seconds. The bystander's longest wait is at most `WAIT_S_MAX` more than before the attack,
and the node's memory stays below `MEMORY_BYTES_MAX`. docs/decisions/0009 has the promises.
"""

import contextlib
from collections.abc import Iterator

import pytest
from tests.support.hostile import attacks
from tests.support.hostile.attacking import WAIT_S_MAX, attack, make_producers
from tests.support.hostile.attacks import MEGABYTE
from tests.support.hostile.bystander import Bystander
from tests.support.hostile.hostile_client import many_open_files
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.logs.batches import T0
from tests.support.peers.topics import await_true, make_topic

from ottla.records.compression import Codec
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

pytestmark = linux_only
slow = pytest.mark.slow
CONNECTIONS = [pytest.param(1, marks=slow), 20]


@pytest.fixture(scope="module")
def node() -> Iterator[HostileNode]:
    with HostileNode(growth_bytes_max=200_000_000) as running:
        make_topic(running.bootstrap, "bystander")
        yield running


@pytest.mark.parametrize("connections", [1, pytest.param(20, marks=slow)])  # after 20 the node compresses for minutes
@pytest.mark.parametrize(
    ("codec", "level"), [("gzip", 9), pytest.param("lz4", 17, marks=slow), pytest.param("zstd", 22, marks=slow)]
)
def test_recompression(node: HostileNode, codec: str, level: int, connections: int) -> None:
    topic = f"{codec}-{connections}"
    make_topic(node.bootstrap, topic, configs={"compression.type": codec, f"compression.{codec}.level": level})
    if codec == "zstd":  # what takes zstd long does not become small with another codec
        batch = attacks.one_record(bytes(31 * MEGABYTE), Codec.GZIP)
    else:
        batch = attacks.one_record(attacks.two_letters(31 * MEGABYTE), Codec.ZSTD, level=19)
    assert len(batch) < 200_000
    attack(node, [attacks.produce(topic, batch)], connections)


def test_recompression_for_clients_that_have_gone(node: HostileNode) -> None:
    """What was sent is work for half a minute; when the clients have gone, nobody waits for it."""
    topic = "gone"
    make_topic(node.bootstrap, topic, configs={"compression.type": "gzip", "compression.gzip.level": 9})
    frame = attacks.produce(topic, attacks.one_record(attacks.two_letters(31 * MEGABYTE), Codec.ZSTD, level=19))
    node.await_idle()
    clients = [node.connect() for _ in range(20)]
    for client in clients:
        client.send_bytes(frame * 3)
    await_true(lambda: node.memory_bytes > node.memory_bytes_before + 20_000_000, "the work to begin")
    for client in clients:
        client.close()
    before_s = node.cpu_s
    node.await_idle()
    assert node.cpu_s - before_s < 8
    assert "gone-0: " not in node.log


def test_settings_of_everything_for_200_connections(node: HostileNode) -> None:
    names = [f"described-{number}" for number in range(20)]
    with node.connect() as client:
        wanted = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        assert not any(each.error_code for each in client.request(CreateTopicsRequest(topics=wanted), 7).topics)
    resources = [DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=None) for name in names]
    resources.append(DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None))
    ask = DescribeConfigsRequest(resources=resources, include_synonyms=True, include_documentation=True)
    attack(node, [attacks.frame(ask, 4)], 200)


@pytest.mark.parametrize("protocols", [1, pytest.param(60_000, marks=slow), pytest.param(100_000, marks=slow)])
def test_memory_of_large_join_groups_comes_back(node: HostileNode, protocols: int) -> None:
    """90 MB of metadata, whole, in small pieces and in more than a request may have, from members that leave without a word."""
    metadata = bytes(90 * MEGABYTE // protocols)
    offered = [JoinGroupRequestProtocol(name=f"p{number}", metadata=metadata) for number in range(protocols)]
    node.await_idle()
    before = node.memory_bytes
    for number in range(3):
        join = JoinGroupRequest(
            group_id=f"large-{protocols}-{number}",
            session_timeout_ms=6_000,
            rebalance_timeout_ms=6_000,
            protocol_type="consumer",
            protocols=offered,
        )
        with node.connect() as client:
            client.send_bytes(attacks.frame(join, 3))
            client.half_close()
            client.await_end()
    node.must_serve()
    await_true(lambda: node.memory_bytes - before < 60_000_000, "the memory of the joins to come back")


@pytest.mark.parametrize("sent", [b"\x05\xf5\xe1\x00", b"\0\0\xff\xff"])
def test_thousands_of_connections_that_send_a_size_and_nothing_else(node: HostileNode, sent: bytes) -> None:
    node.await_idle()
    node.forget_peak()
    before = node.memory_bytes
    with many_open_files(), contextlib.ExitStack() as stack, Bystander(node.port, "bystander", node.pid) as during:
        for _ in range(2000):
            stack.enter_context(node.connect()).send_bytes(sent)
        node.must_serve()
    assert during.worst_s < 2 * WAIT_S_MAX  # all of them close at once in the end
    assert node.memory_bytes_peak - before < 60_000_000
    node.await_idle()
    assert node.memory_bytes - before < 40_000_000


@slow
@pytest.mark.parametrize("connections", [1, 20])  # 20 wait for each other, for minutes beside others
def test_lookup_by_time_in_batches_whose_headers_lie(node: HostileNode, connections: int) -> None:
    topic = f"lying-{connections}"
    make_topic(node.bootstrap, topic)
    bomb = attacks.produce(topic, attacks.lying_bomb())
    with node.connect() as client:
        for _ in range(4):
            client.send_bytes(bomb)
            client.receive(0, 9)
    attack(node, [attacks.offsets_by_time(topic, T0 + 500_000)], connections)


@slow
@pytest.mark.parametrize("connections", [1, 20])
def test_lookup_by_time_in_batches_of_many_records(node: HostileNode, connections: int) -> None:
    topic, partitions, count = f"many-{connections}", 50, 500_000
    make_topic(node.bootstrap, topic, partitions)
    batch = attacks.many_records(count)
    assert len(batch) < 1_000_000
    with node.connect() as client:
        for index in range(partitions):
            client.send_bytes(attacks.produce(topic, batch, first_index=index))
            (answer,) = client.receive(0, 9).responses[0].partition_responses
            assert answer.error_code == 0, answer
    attack(node, [attacks.offsets_by_time(topic, T0 + 1, partitions)], connections)


@slow
@pytest.mark.parametrize("connections", [1, 20])
def test_transaction_of_many_partitions_named_1000_times(node: HostileNode, connections: int) -> None:
    topic, name = f"in-transaction-{connections}", f"t-{connections}"
    make_topic(node.bootstrap, topic, 500)
    with node.connect() as client:
        while client.request(FindCoordinatorRequest(key=name, key_type=1), 3).error_code:
            pass
        producer = client.request(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4)
        assert producer.error_code == 0, producer
        added = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(range(500)))],
        )
        (result,) = client.request(added, 3).results_by_topic_v3_and_below
        assert not any(part.partition_error_code for part in result.results_by_partition)
    attack(node, [attacks.frame(DescribeTransactionsRequest(transactional_ids=[name] * 1000), 0)], connections)


@pytest.mark.parametrize("connections", CONNECTIONS)
def test_producers_of_one_partition_named_1000_times(node: HostileNode, connections: int) -> None:
    topic = f"producers-{connections}"
    make_topic(node.bootstrap, topic)
    make_producers(node.port, topic, 20_000)
    attack(node, [attacks.producers(topic, 1000)], connections)


@slow  # tests/unit has the price
@pytest.mark.parametrize("connections", [1, 20])
def test_expensive_regular_expressions(node: HostileNode, connections: int) -> None:
    group = f"expressions-{connections}"
    with node.connect() as client:
        while client.request(FindCoordinatorRequest(key=group, key_type=0), 3).error_code:
            pass
    frames = [
        attacks.frame(
            ConsumerGroupHeartbeatRequest(
                group_id=group, member_id=f"m-{number}", member_epoch=0, rebalance_timeout_ms=60_000, topic_partitions=[],
                subscribed_topic_regex=rf"t{number}" + r"\p{L}" * 400,
            ),
            1,
        )
        for number in range(200)
    ]  # fmt: skip
    attack(node, frames, connections)


@slow  # recompression is the quick form
@pytest.mark.parametrize("connections", [1, 20])
def test_bombs_for_a_compacted_topic(node: HostileNode, connections: int) -> None:
    topic = f"compacted-{connections}"
    make_topic(node.bootstrap, topic, configs={"cleanup.policy": "compact"})
    attack(node, [attacks.produce(topic, attacks.one_record(bytes(30 * MEGABYTE)))], connections)
