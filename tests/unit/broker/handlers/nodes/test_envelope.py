"""Envelope on a controller's listener."""

import pytest
from tests.support.nodes.deciding_controller import DecidingController
from tests.support.nodes.images import context_of, image_of

from ottla.broker.channel.envelope import unwrap_response, wrap_request
from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.envelope import EnvelopeRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest


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
    inner = damaged()
    context = client(inner, 0)
    assert context.api_key == ApiKey.ENVELOPE
    assert DecidingController().ask(wrap_request(context, inner)).error_code == ErrorCode.INVALID_REQUEST
