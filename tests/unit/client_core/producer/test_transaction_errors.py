"""What follows from an error in a transaction."""

import pytest

from ottla.client_core.producer.transaction_errors import Verdict, is_fatal_for_producer, verdict_of
from ottla.errors import exception_of
from ottla.errors.codes import ErrorCode
from ottla.wire.apis import ApiKey


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
