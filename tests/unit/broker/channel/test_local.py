"""The channel to the controller in this process."""

import asyncio

import pytest
from tests.support.nodes.deciding_controller import DecidingController, services_of
from tests.support.nodes.images import context_of

from ottla.broker.channel import ControllerChannel
from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.broker.channel.local import LocalChannel
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.api_table import ApiKey
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest


def channel_of(controller: DecidingController) -> ControllerChannel:
    return LocalChannel(services_of(controller))


def test_own_request_is_decided_in_the_newest_version() -> None:
    controller = DecidingController()
    epoch = controller.cluster.register(1)
    block = asyncio.run(channel_of(controller).call(AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)))
    assert block.producer_id_len == 1000
    assert controller.versions == [0]
    with pytest.raises(KafkaError) as refused:
        asyncio.run(channel_of(controller).call(AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch + 1)))
    assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_clients_request_is_decided_in_its_version() -> None:
    controller = DecidingController()
    context = context_of(controller.cluster.state.image, ApiKey.DELETE_TOPICS, 4)
    response = asyncio.run(
        channel_of(controller).forward(ForwardedRequest.of(context, DeleteTopicsRequest(topic_names=["absent"])))
    )
    assert [each.error_code for each in response.responses] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert controller.versions == [4]
