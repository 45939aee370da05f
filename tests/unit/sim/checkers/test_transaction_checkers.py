"""The checkers of transactions, each with a shortest sequence of events that violates its invariant, and one that does not."""

import pytest

from ottla.ids import Uuid
from ottla.sim.checkers.checker import Batch, Handed, Place, SeenRecord, TopicPlan, Transaction, Violation
from ottla.sim.checkers.transactions import AtomicTransactions, ExactlyOnce, ProducerEpochs, TimelyEndings

TOPIC = TopicPlan("t", Uuid(bytes(16)), 2)
AT, BESIDE = Place(TOPIC, 0), Place(TOPIC, 1)


def wrote(checker: AtomicTransactions, name: str, **values: Place) -> Transaction:
    transaction = Transaction(name, "id")
    for value, place in values.items():
        checker.transaction_wrote(transaction, Batch("p", place, 0, [value.encode()], [None], True, -1))
    return transaction


def records(*values: str, start: int = 0) -> list[SeenRecord]:
    return [SeenRecord(start + index, value.encode()) for index, value in enumerate(values)]


def handed(epoch: int, requested_s: float, *, producer_id: int = 7, name: str = "id") -> Handed:
    return Handed(name, producer_id, epoch, requested_s, requested_s + 0.1)


def test_records_of_an_uncommitted_transaction_are_not_seen() -> None:
    checker = AtomicTransactions()
    transaction = wrote(checker, "x", a=AT)
    checker.seen_committed(AT, 0, 1, records("z"))  # of no transaction
    with pytest.raises(Violation, match="got one of transaction x, whose commit was never requested"):
        checker.seen_committed(AT, 1, 2, records("a", start=1))
    checker.commit_requested(transaction)
    checker.seen_committed(AT, 1, 2, records("a", start=1))


def test_a_second_read_finds_the_same_records() -> None:
    checker = AtomicTransactions()
    checker.commit_requested(wrote(checker, "x", a=AT, b=AT))
    checker.seen_committed(AT, 0, 3, records("a"))
    checker.seen_committed(AT, 0, 3, records("a"))
    with pytest.raises(Violation, match=r"offset 2: readers of committed records got None there once, and b'b' another time"):
        checker.seen_committed(AT, 2, 3, records("b", start=2))
    with pytest.raises(Violation, match=r"got b'a' there once, and None another time"):
        checker.seen_committed(AT, 0, 1, [])


@pytest.mark.parametrize(("is_answered", "there", "problem"), [
    (True, ("a", "b"), None),
    (False, ("a", "b"), None),
    (False, (), None),
    (True, (), "was committed and acknowledged, but 2 of its records are gone"),
    (False, ("a",), "of transaction x 1 records are there, and 1 are not"),
])  # fmt: skip
def test_a_transaction_is_visible_as_a_whole_or_not_at_all(
    is_answered: bool, there: tuple[str, ...], problem: str | None
) -> None:
    checker = AtomicTransactions()
    transaction = wrote(checker, "x", a=AT, b=BESIDE)
    checker.commit_requested(transaction)
    if is_answered:
        checker.commit_answered(transaction)
    checker.audited_committed(AT, records(*[value for value in there if value == "a"]))
    if problem is None:
        checker.audited_committed(BESIDE, records(*[value for value in there if value == "b"]))
        assert checker.judged == 1
    else:
        with pytest.raises(Violation, match=problem):
            checker.audited_committed(BESIDE, records(*[value for value in there if value == "b"]))


@pytest.mark.parametrize(("outputs", "problem"), [
    (("of0", "of1"), None),
    (("of0",), "has committed 2 for t-0, and nothing was made of the record at 1"),
    (("of0", "of1", "of1again"), "made 2 outputs of the record at 1 of t-0"),
    (("of0", "of1", "of2"), "has committed 2 for t-0, but made something of the record at 2"),
])  # fmt: skip
def test_each_input_has_one_output(outputs: tuple[str, ...], problem: str | None) -> None:
    checker = ExactlyOnce()
    for offset, value in ((0, "of0"), (1, "of1"), (1, "of1again"), (2, "of2")):
        checker.transformed("app", AT, offset, value.encode())
    checker.audited_committed(AT, records("in0", "in1", "in2"))
    checker.audited_committed(BESIDE, records(*outputs))
    if problem is None:
        checker.app_ended("app", {AT: 2})
        assert checker.judged == 2
    else:
        with pytest.raises(Violation, match=problem):
            checker.app_ended("app", {AT: 2})


def test_producer_epochs_rise() -> None:
    checker = ProducerEpochs()
    checker.producer_handed(handed(3, 1.0))
    checker.producer_handed(handed(2, 1.05))  # of two concurrent requests, either may be first
    with pytest.raises(Violation, match="id was handed producer 7 in epoch 3, and then producer 7 in 3"):
        checker.producer_handed(handed(3, 2.0))


def test_a_new_producer_id_is_used_when_epochs_are_used_up() -> None:
    checker = ProducerEpochs(["id"])
    checker.producer_handed(handed(32_765, 1.0))
    checker.producer_handed(handed(0, 2.0, producer_id=8))
    checker.producer_obeyed("id", 7, 32_765, 2.05)  # sent before the first answer arrived
    checker.producer_obeyed("id", 8, 0, 3.0)
    with pytest.raises(Violation, match="what producer 7 sent in epoch 32765 was done, after producer 8"):
        checker.producer_obeyed("id", 7, 32_765, 2.2)
    with pytest.raises(Violation, match="id was handed producer 8 in epoch 0, and then producer 7 in 32766"):
        checker.producer_handed(handed(32_766, 3.0))
    with pytest.raises(Violation, match="in epoch 32767, which is for fencing only"):
        checker.producer_handed(handed(32_767, 3.0))
    strict = ProducerEpochs()
    strict.producer_handed(handed(5, 1.0))
    with pytest.raises(Violation, match="producer 8 in the place of 7, which has epochs left"):
        strict.producer_handed(handed(0, 2.0, producer_id=8))


def test_a_producer_id_has_one_owner() -> None:
    checker = ProducerEpochs()
    checker.producer_id_given(7, 0)
    with pytest.raises(Violation, match="producer id 7 was given to a plain producer and to id"):
        checker.producer_handed(handed(0, 1.0))


def test_requests_of_older_producers_are_refused() -> None:
    checker = ProducerEpochs()
    checker.producer_handed(handed(1, 1.0))
    checker.producer_handed(handed(2, 2.0))
    checker.producer_obeyed("id", 7, 1, 2.05)
    checker.producer_obeyed("id", 7, 2, 3.0)
    with pytest.raises(Violation, match="7 sent in epoch 1 was done, after producer 7 had been handed out in epoch 2"):
        checker.producer_obeyed("id", 7, 1, 2.2)


def test_transactions_end() -> None:
    checker = TimelyEndings(10.0)
    checker.stability_answered(AT, 3, 5, 9.0)
    checker.stability_answered(AT, 5, 5, 11.0)
    with pytest.raises(Violation, match=r"stable up to 3 of 5 only: some transaction has not ended in 11\.0 s"):
        checker.stability_answered(AT, 3, 5, 11.0)
