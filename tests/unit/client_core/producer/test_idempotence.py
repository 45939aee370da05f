"""Sequence numbers: assigned once, renumbered only when no copy can be stored, resolved after timeouts."""

import pytest

from ottla.client_core.producer.batch import ProducerBatch
from ottla.client_core.producer.idempotence import BATCHES_REMEMBERED, EPOCH_MAX, Idempotence
from ottla.errors import KafkaError, exception_of
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.records.kernels import NO_HEADERS, BufferMemory

KEY = ("t", 0)


def made(count: int = 2, key: tuple[str, int] = KEY) -> ProducerBatch:
    batch = ProducerBatch(key, BufferMemory(10_000), 1_000, 1_000, 0, None)
    for _ in range(count):
        batch.append(0, None, b"v", NO_HEADERS, None)
    return batch


def started(*, is_transactional: bool = False, epoch: int = 0) -> Idempotence:
    idempotence = Idempotence(is_transactional)
    assert not idempotence.may_send(made())
    idempotence.take_id(7, epoch)
    return idempotence


def sent(idempotence: Idempotence, *batches: ProducerBatch) -> None:
    """Send batches one behind the other. The first of a producer would go alone; what comes of several is the same."""
    for batch in batches:
        idempotence.assign(batch)


def test_the_first_batch_goes_alone() -> None:
    """A leader that does not know the producer takes any number: a second batch could overtake the first at a new leader."""
    idempotence = started()
    first, second, third = made(), made(), made()
    assert idempotence.may_send(first)
    idempotence.assign(first)
    assert not idempotence.may_send(second)
    idempotence.acked(first, 10)
    assert idempotence.may_send(second)
    idempotence.assign(second)
    assert idempotence.may_send(third)


def test_the_first_batch_of_a_topic_that_was_made_again_goes_alone() -> None:
    """Its leaders know no producer. The batch before it may still wait for a leader of the topic that was deleted."""
    idempotence = started()
    former, new = Uuid(b"f" * 16), Uuid(b"n" * 16)
    acked, first, second = made(), made(), made()
    for batch in (acked, first):
        batch.topic_id = former
    idempotence.assign(acked)
    idempotence.acked(acked, 0)
    idempotence.assign(first)
    assert idempotence.may_send(second, former)
    assert not idempotence.may_send(second, new)
    first.topic_id = new  # sent again, to the new topic
    idempotence.acked(first, 0)
    idempotence.assign(second)
    assert idempotence.may_send(made(), new)


def test_the_first_batch_of_a_transaction_goes_with_others() -> None:
    """Its coordinator has been asked about it: a leader refuses another first number than 0."""
    idempotence = started(is_transactional=True)
    first, second = made(), made()
    idempotence.assign(first)
    assert idempotence.may_send(second)


def test_an_unanswered_batch_stays_among_those_that_a_broker_remembers() -> None:
    """A new leader has it, and answers later ones. The answer of the old leader is lost: its retry must be found there."""
    idempotence = started()
    before, unanswered = made(), made()
    sent(idempotence, before, unanswered)
    idempotence.acked(before, 0)
    for offset in range(BATCHES_REMEMBERED - 1):
        later = made()
        assert idempotence.may_send(later)
        idempotence.assign(later)
        idempotence.acked(later, 10 + offset)
    assert not idempotence.may_send(made())
    idempotence.acked(unanswered, 2)
    assert idempotence.may_send(made())


def refusal(code: ErrorCode) -> KafkaError:
    return exception_of(code)


def test_numbers_follow_each_other_and_stay_through_retries() -> None:
    idempotence = started()
    first, second = made(2), made(3)
    sent(idempotence, first, second)
    assert [(batch.producer, batch.base_sequence) for batch in (first, second)] == [((7, 0), 0), ((7, 0), 2)]
    first.attempts = second.attempts = 1
    assert idempotence.may_send(first)
    assert not idempotence.may_send(second)  # a retry goes alone
    assert not idempotence.may_send(made())
    idempotence.assign(first)
    assert first.base_sequence == 0
    idempotence.acked(first, 10)
    assert idempotence.may_send(second)


def test_a_gap_raises_the_epoch_and_starts_over() -> None:
    idempotence = started()
    first, second = made(), made()
    sent(idempotence, first, second)
    idempotence.failed(first, refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED), is_known_unstored=True)
    assert idempotence.is_bump_due
    assert not idempotence.may_send(made())
    idempotence.bump()
    assert (second.producer, second.base_sequence, second.is_reset) == ((7, 1), 0, True)
    third = made()
    idempotence.assign(third)
    assert (third.producer, third.base_sequence) == ((7, 1), 2)


def test_a_batch_that_may_be_stored_is_asked_about_before_it_gets_a_new_number() -> None:
    idempotence = started()
    first, second, third = made(), made(), made()
    sent(idempotence, first, second, third)
    third.is_uncertain = True
    second.attempts = third.attempts = 1
    idempotence.failed(first, refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED), is_known_unstored=True)
    assert not idempotence.is_bump_safe
    assert idempotence.may_send(third)  # with its old number
    assert not idempotence.may_send(second)
    assert idempotence.is_worth_retrying(third, refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 0)
    assert idempotence.is_bump_safe  # the broker does not have it


def test_out_of_order_is_retried_until_it_is_the_next_batch() -> None:
    idempotence = started()
    first, second = made(), made()
    sent(idempotence, first, second)
    out_of_order = refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert idempotence.is_worth_retrying(second, out_of_order, 0)
    assert not idempotence.is_bump_due  # `first` is still on its way
    idempotence.acked(first, 0)
    assert idempotence.is_worth_retrying(second, out_of_order, 0)
    assert idempotence.is_bump_due  # the broker lost something


@pytest.mark.parametrize("code", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID])
def test_a_renumbered_batch_is_renumbered_again_if_the_broker_loses_the_new_epoch(code: ErrorCode) -> None:
    idempotence = started()
    lost, first, second = made(), made(), made()
    sent(idempotence, lost, first, second)
    idempotence.failed(lost, refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED), is_known_unstored=True)
    idempotence.bump()
    sent(idempotence, first)
    idempotence.acked(first, 10)
    sent(idempotence, second)
    assert (second.producer, second.base_sequence) == ((7, 1), 2)
    assert idempotence.is_worth_retrying(second, refusal(code), 0)
    assert idempotence.is_bump_due
    idempotence.bump()
    assert (second.producer, second.base_sequence) == ((7, 2), 0)


def test_a_transaction_does_not_survive_a_gap() -> None:
    idempotence = started(is_transactional=True)
    first = made()
    sent(idempotence, first)
    assert not idempotence.is_worth_retrying(first, refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 0)
    assert not idempotence.is_bump_due


def test_an_unknown_producer_id_is_retried_with_a_new_epoch() -> None:
    idempotence = started()
    first = made()
    sent(idempotence, first)
    unknown = refusal(ErrorCode.UNKNOWN_PRODUCER_ID)
    assert idempotence.is_worth_retrying(first, unknown, -1)
    assert not idempotence.is_bump_due  # the broker did not say where its log begins
    assert idempotence.is_worth_retrying(first, unknown, 0)
    assert idempotence.is_bump_due


def test_a_broker_that_knows_nothing_of_the_producer_leaves_no_doubt_about_a_batch() -> None:
    idempotence = started()
    first = made()
    sent(idempotence, first)
    first.is_uncertain = True
    assert idempotence.is_worth_retrying(first, refusal(ErrorCode.UNKNOWN_PRODUCER_ID), 0)
    assert idempotence.is_bump_due
    assert idempotence.is_bump_safe


@pytest.mark.parametrize("code", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID])
def test_a_batch_before_a_stored_one_gets_no_new_number(code: ErrorCode) -> None:
    idempotence = started()
    first, second, third = made(), made(), made()
    sent(idempotence, first, second, third)
    for batch in (first, second):
        batch.is_uncertain = True
    assert idempotence.is_worth_retrying(first, refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), 0)
    assert idempotence.to_ask_about(KEY) is second
    idempotence.acked(second, 10)
    assert not idempotence.is_bump_safe
    assert idempotence.to_ask_about(KEY) is first
    assert not idempotence.is_worth_retrying(first, refusal(code), 0)
    idempotence.failed(first, refusal(code), is_known_unstored=True)
    assert idempotence.is_bump_safe
    idempotence.bump()
    assert (third.producer, third.base_sequence) == ((7, 1), 0)


def test_retention_that_removed_the_producers_records_lets_a_transaction_go_on() -> None:
    idempotence = started(is_transactional=True)
    first, second = made(), made()
    sent(idempotence, first, second)
    idempotence.acked(first, 10)
    unknown = refusal(ErrorCode.UNKNOWN_PRODUCER_ID)
    assert not idempotence.is_worth_retrying(second, unknown, 5)
    assert idempotence.is_worth_retrying(second, unknown, 100)
    assert (second.base_sequence, second.is_reset) == (0, True)


def test_a_timeout_blocks_new_batches_until_it_is_resolved() -> None:
    idempotence = started()
    first, second = made(), made()
    sent(idempotence, first, second)
    idempotence.expired(first)
    assert not idempotence.may_send(made())
    assert idempotence.resolve()
    assert not idempotence.is_bump_due  # `second` is not answered yet
    idempotence.acked(second, 2)
    assert idempotence.resolve()
    assert not idempotence.is_bump_due  # it was stored, so `first` was too
    assert idempotence.may_send(made())


def test_a_timeout_that_stays_unknown_raises_the_epoch_or_spoils_the_transaction() -> None:
    for is_transactional in (False, True):
        idempotence = started(is_transactional=is_transactional)
        first = made()
        sent(idempotence, first)
        idempotence.expired(first)
        assert idempotence.resolve() is not is_transactional
        assert idempotence.is_bump_due is not is_transactional


def test_other_partitions_take_the_new_epoch_when_theirs_are_answered() -> None:
    idempotence = started()
    mine, other = made(), made(key=("t", 1))
    sent(idempotence, mine, other)
    idempotence.failed(mine, refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED), is_known_unstored=True)
    idempotence.bump()
    assert not idempotence.may_send(made(key=("t", 1)))
    assert other.producer == (7, 0)
    idempotence.acked(other, 0)
    new = made(key=("t", 1))
    sent(idempotence, new)
    assert (new.producer, new.base_sequence) == ((7, 1), 0)


def test_a_partition_that_is_refused_after_others_raised_the_epoch_starts_over_too() -> None:
    idempotence = started()
    mine, other = made(), made(key=("t", 1))
    sent(idempotence, mine, other)
    out_of_order = refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert idempotence.is_worth_retrying(mine, out_of_order, 0)
    idempotence.bump()
    assert idempotence.is_worth_retrying(other, out_of_order, 0)
    assert idempotence.bump_keys == {("t", 1)}
    idempotence.bump()
    assert (other.producer, other.base_sequence, other.is_reset) == ((7, 2), 0, True)


def test_the_last_epoch_is_followed_by_a_new_id() -> None:
    idempotence = started(epoch=EPOCH_MAX)
    first, second = made(), made()
    sent(idempotence, first, second)
    idempotence.failed(first, refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED), is_known_unstored=True)
    idempotence.bump()
    assert not idempotence.has_id
    idempotence.take_id(8, 0)
    idempotence.finish_bump()
    assert (second.producer, second.base_sequence) == ((8, 0), 0)


def test_numbers_wrap_around() -> None:
    idempotence = started()
    first = made()
    sent(idempotence, first)
    idempotence.acked(first, 0)
    idempotence.partitions[KEY].next = 0x7FFFFFFF
    second, third = made(2), made(2)
    sent(idempotence, second, third)
    assert (second.base_sequence, second.last_sequence, third.base_sequence) == (0x7FFFFFFF, 0, 1)


def test_a_split_batch_is_replaced_by_its_parts() -> None:
    idempotence = started()
    first, second = made(), made()
    sent(idempotence, first, second)
    parts = [made(1), made(1)]
    for number, part in enumerate(parts):
        part.set_producer((7, 0), number)
    idempotence.replace(first, parts)
    assert idempotence.may_send(parts[0])
    assert not idempotence.may_send(parts[1])
    idempotence.acked(parts[0], 0)
    assert idempotence.may_send(parts[1])


def test_restart_forgets_all_numbers() -> None:
    idempotence = started(is_transactional=True)
    first = made()
    sent(idempotence, first)
    idempotence.acked(first, 0)
    idempotence.take_id(7, 1)
    idempotence.restart()
    second = made()
    sent(idempotence, second)
    assert (second.producer, second.base_sequence) == ((7, 1), 0)
