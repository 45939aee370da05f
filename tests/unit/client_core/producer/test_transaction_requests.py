"""The requests of a transaction carry its identity, and the first error of an answer is found."""

import pytest
from tests.support.producers.settings import small_settings

from ottla.client_core.machine import Channel
from ottla.client_core.metadata import Metadata
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.client_core.producer import transaction_requests as requests
from ottla.client_core.producer.idempotence import Idempotence
from ottla.client_core.producer.transaction_requests import Pending, Verdict, is_fatal_for_producer, verdict_of
from ottla.client_core.producer.transactions import TransactionManager
from ottla.errors import NetworkError, TopicAuthorizationError, exception_of
from ottla.errors.codes import ErrorCode
from ottla.wire.apis import ApiKey
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


# An operation becomes done once and calls those who wait.


def test_only_the_first_end_counts() -> None:
    pending = Pending("something")
    called: list[str] = []
    pending.waiters.append(lambda: called.append("done"))
    error = NetworkError("gone")
    pending.finish(error)
    pending.finish()
    assert (called, pending.is_done, pending.error) == (["done"], True, error)


# What follows from an error in a transaction.


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (ErrorCode.NOT_COORDINATOR, Verdict.RELOCATE),
        (ErrorCode.NETWORK_EXCEPTION, Verdict.RELOCATE),
        (ErrorCode.REQUEST_TIMED_OUT, Verdict.RELOCATE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, Verdict.RETRY),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Verdict.RETRY),
        (ErrorCode.TRANSACTION_ABORTABLE, Verdict.ABORT),
        (ErrorCode.ILLEGAL_GENERATION, Verdict.ABORT),
        (ErrorCode.PRODUCER_FENCED, Verdict.FATAL),
        (ErrorCode.INVALID_TXN_STATE, Verdict.FATAL),
        (ErrorCode.UNKNOWN_SERVER_ERROR, Verdict.FATAL),
    ],
)
def test_verdicts(code: ErrorCode, verdict: Verdict) -> None:
    assert verdict_of(exception_of(code), ApiKey.END_TXN) is verdict


def test_an_unknown_error_of_add_partitions_only_ends_the_transaction() -> None:
    assert verdict_of(exception_of(ErrorCode.UNKNOWN_SERVER_ERROR), ApiKey.ADD_PARTITIONS_TO_TXN) is Verdict.ABORT


def test_an_old_epoch_in_a_produce_answer_can_be_aborted() -> None:
    assert not is_fatal_for_producer(exception_of(ErrorCode.INVALID_PRODUCER_EPOCH))
    assert is_fatal_for_producer(exception_of(ErrorCode.PRODUCER_FENCED))
