"""The requests of a transaction carry its identity, and the first error of an answer is found."""

from tests.support.producers.settings import small_settings

from ottla.client_core.machine import Channel
from ottla.client_core.metadata import Metadata
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.client_core.producer import transaction_requests as requests
from ottla.client_core.producer.idempotence import Idempotence
from ottla.client_core.producer.transactions import TransactionManager
from ottla.errors import TopicAuthorizationError
from ottla.errors.codes import ErrorCode
from ottla.wire.codec import encode
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.messages.end_txn import EndTxnResponse
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


def manager() -> TransactionManager:
    settings = small_settings(transactional_id="tx")
    made = TransactionManager("tx", settings, Idempotence(True), Metadata(settings, lambda below: 0), lambda below: 0)
    made.idempotence.take_id(7, 3)
    return made


def test_every_request_can_be_encoded_in_its_newest_allowed_version() -> None:
    made = manager()
    commit = requests.OffsetCommit(ConsumerGroupMetadata("g", 4, "m", "i"), {("t", 0): OffsetAndMetadata(5, "note", 2)})
    for request in (
        requests.init_producer_id(made, 1),
        requests.add_partitions(made, 1, [("t", 0), ("t", 1), ("u", 0)]),
        requests.add_offsets(made, 1, commit),
        requests.commit_offsets(made, 2, commit),
        requests.end_transaction(made, 1, is_commit=True),
    ):
        assert encode(request.message, 4 if request.version_max is None else request.version_max)


def test_partitions_are_grouped_by_topic() -> None:
    message = requests.add_partitions(manager(), 1, [("t", 0), ("t", 1), ("u", 0)]).message
    assert [(each.name, each.partitions) for each in message.v3_and_below_topics] == [("t", [0, 1]), ("u", [0])]  # type: ignore[attr-defined]


def test_versions_follow_the_transaction_version() -> None:
    made = manager()
    commit = requests.OffsetCommit(ConsumerGroupMetadata("g"), {})
    assert requests.end_transaction(made, 1, is_commit=True).version_max == 4
    assert requests.commit_offsets(made, 1, commit).version_max == 4
    made.is_implicit = True
    assert requests.end_transaction(made, 1, is_commit=True).version_max is None
    assert requests.commit_offsets(made, 1, commit).version_max is None
    assert requests.commit_offsets(made, 1, commit).channel is Channel.GROUP


def test_the_first_error_is_found() -> None:
    assert requests.error_in(EndTxnResponse()) is None
    assert requests.error_in(EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)) is not None
    added = AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(
                name="t",
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(partition_index=0),
                    AddPartitionsToTxnPartitionResult(
                        partition_index=1, partition_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    ),
                ],
            )
        ]
    )
    error = requests.error_in(added)
    assert isinstance(error, TopicAuthorizationError)
    assert str(error).startswith("t-1: ")
    committed = TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name="t", partitions=[TxnOffsetCommitResponsePartition(error_code=ErrorCode.ILLEGAL_GENERATION)]
            )
        ]
    )
    assert requests.error_in(committed) is not None
