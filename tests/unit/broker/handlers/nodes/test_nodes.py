"""Requests of brokers and controllers on a controller's listener: proposals, registrations, envelopes, votes."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.nodes.controller_cluster import ControllerCluster
from tests.support.nodes.deciding_controller import DecidingController
from tests.support.nodes.images import context_of, image_of

from ottla.broker.channel.envelope import unwrap_response, wrap_request
from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.broker.handlers.nodes import replica_requests
from ottla.broker.requests.context import ConnectionInfo, Pending, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest, Listener
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.envelope import EnvelopeRequest
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.vote import VoteRequest, VoteResponse


def test_both_versions_are_answered_and_a_stale_epoch_is_refused_as_a_whole() -> None:
    controller = DecidingController()
    cluster = controller.cluster
    for broker_id in (1, 2):
        cluster.add_broker(broker_id)
    cluster.create_topic("t", assignments=[[1, 2]])
    epoch = cluster.state.image.cluster.brokers[1].epoch

    def request(broker_epoch: int, **isr: object) -> AlterPartitionRequest:
        proposal = AlterPartitionRequestPartitionData(partition_epoch=cluster.partition("t").partition_epoch, **isr)  # type: ignore[arg-type]
        topic = AlterPartitionRequestTopicData(topic_id=cluster.topic("t").id, partitions=[proposal])
        return AlterPartitionRequest(broker_id=1, broker_epoch=broker_epoch, topics=[topic])

    assert controller.ask(request(epoch + 1)).error_code == ErrorCode.STALE_BROKER_EPOCH
    shrunk = controller.ask(request(epoch, new_isr=[1]), 2)
    assert (shrunk.error_code, shrunk.topics[0].partitions[0].isr) == (ErrorCode.NONE, [1])
    grown = controller.ask(request(epoch, new_isr_with_epochs=[BrokerState(broker_id=1), BrokerState(broker_id=2)]), 3)
    assert (grown.error_code, grown.topics[0].partitions[0].isr) == (ErrorCode.NONE, [1, 2])
    assert cluster.partition("t").isr == (1, 2)


REQUEST = ControllerRegistrationRequest(controller_id=4, listeners=[Listener(name="CONTROLLER", host="four", port=9093)])


def test_endpoints_are_stored() -> None:
    controller = DecidingController()
    response = controller.ask(REQUEST)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert controller.cluster.state.image.cluster.controllers[4].endpoints["CONTROLLER"].host == "four"


def test_old_metadata_version_is_refused_with_a_text() -> None:
    response = DecidingController(ControllerCluster(7)).ask(REQUEST)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.error_message


def client(request: Message, version: int) -> ForwardedRequest:
    """A client's request on a broker."""
    return ForwardedRequest.of(context_of(image_of([], {}), request.KEY, version), request)


def test_request_inside_is_decided_and_answered_in_its_version() -> None:
    controller = DecidingController()
    controller.cluster.add_broker(1)
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=2, replication_factor=1)])
    context = client(request, 4)
    envelope = controller.ask(wrap_request(context))
    assert envelope.error_code == ErrorCode.NONE
    response = unwrap_response(context, envelope)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("t", ErrorCode.NONE)]
    assert controller.versions == [4]
    assert len(controller.cluster.topic("t").partitions) == 2


def test_refusal_as_a_whole_is_in_the_response_inside() -> None:
    controller = DecidingController()
    controller.refusal = KafkaError(ErrorCode.POLICY_VIOLATION, "too many")
    request = DeleteTopicsRequest(topic_names=["t"])
    context = client(request, 5)
    envelope = controller.ask(wrap_request(context))
    assert envelope.error_code == ErrorCode.NONE
    assert unwrap_response(context, envelope).responses[0].error_code == ErrorCode.POLICY_VIOLATION


def test_not_controller_is_an_error_of_the_envelope() -> None:
    controller = DecidingController()
    controller.refusal = KafkaError(ErrorCode.NOT_CONTROLLER, "ask another")
    request = DeleteTopicsRequest(topic_names=["t"])
    envelope = controller.ask(wrap_request(client(request, 5)))
    assert (envelope.error_code, envelope.response_data) == (ErrorCode.NOT_CONTROLLER, None)


def damaged(**changes: bytes) -> EnvelopeRequest:
    request = DeleteTopicsRequest(topic_names=["t"])
    envelope = wrap_request(client(request, 5))
    for name, data in changes.items():
        setattr(envelope, name, data)
    return envelope


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        (wrap_request(client(HeartbeatRequest(), 4)), ErrorCode.INVALID_REQUEST),
        (damaged(request_data=b"\0"), ErrorCode.INVALID_REQUEST),
        (damaged(request_data=b"\0\x14\0\1\0\0\0\1\0\4test"), ErrorCode.INVALID_REQUEST),
        (damaged(request_data=b"\0\x14\0\x63\0\0\0\1\0\4test\0"), ErrorCode.UNSUPPORTED_VERSION),
        (damaged(client_host_address=b"\1\2\3"), ErrorCode.INVALID_REQUEST),
        (damaged(request_principal=b"\0\7"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
    ],
    ids=["not forwardable", "no header", "no body", "unknown version", "no address", "no principal"],
)
def test_what_cannot_be_read_is_refused(envelope: EnvelopeRequest, code: int) -> None:
    controller = DecidingController()
    response = controller.ask(envelope)
    assert (response.error_code, response.response_data) == (code, None)
    assert not controller.versions, "nothing was decided"


def test_envelope_is_not_forwarded_in_an_envelope() -> None:
    inner = client(damaged(), 0)
    assert inner.message.KEY == ApiKey.ENVELOPE
    assert DecidingController().ask(wrap_request(inner)).error_code == ErrorCode.INVALID_REQUEST


def context(key: int, services: object = None) -> RequestContext:
    return RequestContext(cast(Any, services), ConnectionInfo(1, "CONTROLLER", ("h", 1), True), key, 1, 1, "c", 0.0)


def test_the_replica_is_asked_with_version_and_listener() -> None:
    asked: list[object] = []

    def ask(*arguments: object) -> Pending:
        asked.extend(arguments)
        return Pending()

    request = VoteRequest()
    replica_requests.handle(context(52, SimpleNamespace(quorum=SimpleNamespace(ask=ask))), request)
    assert asked == [request, 1, "CONTROLLER"]


def test_failures_become_responses_of_their_api() -> None:
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "why")
    vote = replica_requests.refuse(context(52), VoteRequest(), error)
    assert isinstance(vote, VoteResponse)
    assert vote.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert isinstance(replica_requests.refuse(context(1), FetchRequest(), error), FetchResponse)
