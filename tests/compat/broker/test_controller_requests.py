"""Requests that brokers send to a controller, through Ottla's channel: Apache Kafka and Ottla take and answer them alike."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.nodes.images import context_of, image_of
from tests.support.peers.raw_client import RawClient
from tests.support.servers.kafka_server import KafkaServer

from ottla.broker.channel.envelope import wrap_request
from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.broker.channel.links import Address, ControllerLinks
from ottla.broker.channel.remote import RemoteChannel
from ottla.broker.node_links import NodeLinks
from ottla.env.real.net import RealNetwork
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Principal, Uuid
from ottla.wire.base import Message
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.envelope import EnvelopeRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest

BROKER_ID = 77


def through_channel(server: KafkaServer, work: Callable[[RemoteChannel], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        host, _, port = server.controller_bootstrap.rpartition(":")
        links = ControllerLinks(NodeLinks(RealNetwork()), BROKER_ID)
        try:
            return await work(RemoteChannel(links, lambda: Address(1, host, int(port))))
        finally:
            links.close()

    return asyncio.run(run())


def forwarded(request: Message, version: int) -> ForwardedRequest:
    context = context_of(image_of([], {}), request.KEY, version)
    context.connection.principal = Principal("User", "alice")
    return ForwardedRequest.of(context, request)


def cluster_id(server: KafkaServer) -> str:
    with RawClient.to(server.bootstrap) as client:
        found: str = client.request(DescribeClusterRequest(), 1).cluster_id
        return found


def registration(id: str, **changes: Any) -> BrokerRegistrationRequest:
    known: dict[str, Any] = {
        "broker_id": BROKER_ID,
        "cluster_id": id,
        "incarnation_id": Uuid(os.urandom(16)),
        "listeners": [Listener(name="PLAINTEXT", host="localhost", port=1)],
        "features": [
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in {
                "metadata.version": (7, 30),
                "group.version": (0, 1),
                "transaction.version": (0, 2),
                "eligible.leader.replicas.version": (0, 1),
                "kraft.version": (0, 1),
                "share.version": (0, 1),
                "streams.version": (0, 1),
            }.items()
        ],
        "log_dirs": [Uuid(os.urandom(16))],
    }
    return BrokerRegistrationRequest(**known | changes)


@pytest.mark.parametrize("version", [2, 4, 7])
def test_forwarded_request_is_answered_in_the_clients_version(cluster: KafkaServer, topic: str, version: int) -> None:
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=topic, num_partitions=2, replication_factor=1)], timeout_ms=30_000
    )
    removal = DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000)

    async def work(channel: RemoteChannel) -> None:
        first, again = [await channel.forward(forwarded(request, version)) for _ in range(2)]
        assert [(each.name, each.error_code) for each in first.topics] == [(topic, ErrorCode.NONE)]
        assert [each.error_code for each in again.topics] == [ErrorCode.TOPIC_ALREADY_EXISTS]
        if version >= 5:
            assert first.topics[0].num_partitions == 2
        removed = await channel.forward(forwarded(removal, 5))
        assert [each.error_code for each in removed.responses] == [ErrorCode.NONE]

    through_channel(cluster, work)


def test_what_cannot_be_forwarded_is_refused(cluster: KafkaServer) -> None:
    good = wrap_request(forwarded(DeleteTopicsRequest(), 5))
    cases = {
        "not forwardable": wrap_request(forwarded(HeartbeatRequest(), 4)),
        "no address": EnvelopeRequest(
            request_data=good.request_data, request_principal=good.request_principal, client_host_address=b"\1\2\3"
        ),
        "no principal": EnvelopeRequest(
            request_data=good.request_data, request_principal=b"\0\7", client_host_address=good.client_host_address
        ),
    }
    codes = {}
    for name, request in cases.items():
        with RawClient.to(cluster.controller_bootstrap) as client:
            codes[name] = client.request(request, 0).error_code
    assert codes == {
        "not forwardable": ErrorCode.INVALID_REQUEST,
        "no address": ErrorCode.INVALID_REQUEST,
        "no principal": ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
    }


def test_life_of_a_registered_broker(cluster: KafkaServer) -> None:
    id = cluster_id(cluster)

    async def work(channel: RemoteChannel) -> list[int]:
        codes = []

        async def refused(request: Message) -> None:
            with pytest.raises(KafkaError) as refusal:
                await channel.call(request)
            codes.append(refusal.value.code)

        await refused(registration("another-cluster-000000"))
        await refused(registration(id, log_dirs=[]))
        request = registration(id)
        epoch = (await channel.call(request)).broker_epoch
        assert (await channel.call(request)).broker_epoch == epoch, "the same incarnation keeps its epoch"
        heard = await channel.call(BrokerHeartbeatRequest(broker_id=BROKER_ID, broker_epoch=epoch, current_metadata_offset=-1))
        assert (heard.is_caught_up, heard.is_fenced, heard.should_shut_down) == (False, True, False)
        await refused(BrokerHeartbeatRequest(broker_id=BROKER_ID, broker_epoch=epoch - 1, current_metadata_offset=-1))
        await refused(registration(id))  # another incarnation, while the session of this one lives
        blocks = [await channel.call(AllocateProducerIdsRequest(broker_id=BROKER_ID, broker_epoch=epoch)) for _ in range(2)]
        assert [block.producer_id_len for block in blocks] == [1000, 1000]
        assert blocks[1].producer_id_start >= blocks[0].producer_id_start + 1000
        await refused(AllocateProducerIdsRequest(broker_id=BROKER_ID, broker_epoch=epoch - 1))
        assigned = await channel.call(AssignReplicasToDirsRequest(broker_id=BROKER_ID, broker_epoch=epoch))
        assert assigned.directories == []
        await refused(AssignReplicasToDirsRequest(broker_id=BROKER_ID, broker_epoch=epoch - 1))
        await channel.call(UnregisterBrokerRequest(broker_id=BROKER_ID))
        await refused(UnregisterBrokerRequest(broker_id=BROKER_ID))
        return codes

    assert through_channel(cluster, work) == [
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
    ]
