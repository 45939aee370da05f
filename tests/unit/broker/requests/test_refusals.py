"""The refused parts of a response, as the log shows them."""

import pytest

from ottla.broker.requests.refusals import summary_of
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.wire.base import Message
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ottla.wire.messages.heartbeat import HeartbeatResponse
from ottla.wire.messages.incremental_alter_configs import AlterConfigsResourceResponse, IncrementalAlterConfigsResponse
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

TOO_LARGE, EXISTS = ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.TOPIC_ALREADY_EXISTS


def produced(*codes: int, **topic: object) -> ProduceResponse:
    parts = [
        PartitionProduceResponse(index=index, error_code=code, error_message="why" if code else None)
        for index, code in enumerate(codes)
    ]
    return ProduceResponse(responses=[TopicProduceResponse(partition_responses=parts, **topic)])  # type: ignore[arg-type]  # name or id


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (ProduceResponse(), None),
        (produced(0, 0, name="orders"), None),
        (produced(0, TOO_LARGE, name="orders"), "MESSAGE_TOO_LARGE for orders-1: why"),
        (produced(TOO_LARGE, 0, TOO_LARGE, name="orders"), "MESSAGE_TOO_LARGE for orders-0: why (and 1 more)"),
        (produced(*[TOO_LARGE] * 1000, name="orders"), "MESSAGE_TOO_LARGE for orders-0: why (and 999 more)"),
        (produced(*[TOO_LARGE] * 5000, name="orders"), "MESSAGE_TOO_LARGE for orders-0: why (and many more)"),
        (produced(TOO_LARGE, topic_id=Uuid(b"\1" * 16)), "MESSAGE_TOO_LARGE for AQEBAQEBAQEBAQEBAQEBAQ-0: why"),
        (
            CreateTopicsResponse(topics=[CreatableTopicResult(name="a", error_code=EXISTS)]),
            "TOPIC_ALREADY_EXISTS for a",
        ),
        (
            DeleteRecordsResponse(
                topics=[
                    DeleteRecordsTopicResult(
                        name="a", partitions=[DeleteRecordsPartitionResult(partition_index=3, error_code=1)]
                    )
                ]
            ),
            "OFFSET_OUT_OF_RANGE for a-3",
        ),
        (
            IncrementalAlterConfigsResponse(
                responses=[AlterConfigsResourceResponse(error_code=40, error_message="bad", resource_type=2, resource_name="t")]
            ),
            "INVALID_CONFIG for t: bad",
        ),
        (HeartbeatResponse(), None),
        (HeartbeatResponse(error_code=25), "UNKNOWN_MEMBER_ID"),
    ],
)
def test_what_was_refused(response: Message, said: str | None) -> None:
    assert summary_of(response) == said


def test_hostile_name_can_neither_forge_lines_nor_fill_the_log() -> None:
    said = summary_of(produced(TOO_LARGE, name="a\n2026-01-01 INFO all is well" + "x" * 9000))
    assert said is not None
    assert said.isprintable()
    assert len(said) <= 520


def test_a_topic_that_is_given_by_its_id_is_named() -> None:
    response = produced(TOO_LARGE, topic_id=Uuid(b"\1" * 16))
    assert summary_of(response, lambda topic_id: "orders") == "MESSAGE_TOO_LARGE for orders-0: why"
