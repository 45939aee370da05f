"""Counting of stored, refused and lost records, however their batches end."""

from ottla.cli.produce.sending import Ledger, Stored
from ottla.client_core.producer.batch import ProducerBatch
from ottla.errors import KafkaError, exception_of
from ottla.errors.codes import ErrorCode
from ottla.records.compression import Codec
from ottla.records.kernels import NO_HEADERS, BufferMemory


def batch_of(count: int) -> ProducerBatch:
    batch = ProducerBatch(("orders", 0), BufferMemory(100_000), 10_000, 10_000, 0, None)
    for _ in range(count):
        assert batch.append(7, None, b"v", NO_HEADERS, None) >= 0
    return batch


def stored_at(count: int, offset: int) -> ProducerBatch:
    batch = batch_of(count)
    batch.complete(offset, -1)
    return batch


def refusal() -> KafkaError:
    return exception_of(ErrorCode.MESSAGE_TOO_LARGE, "too large")


def test_stored_batches_count() -> None:
    ledger = Ledger()
    ledger.read = 6
    ledger.finished(stored_at(3, 10))
    assert (ledger.stored, ledger.pending) == (3, 3)
    ledger.finished(stored_at(2, 4))
    ledger.finished(stored_at(1, -1))
    assert ledger.partitions == {("orders", 0): Stored(6, 4, 12)}
    assert ledger.total("orders") == "6 records stored in orders"
    assert not ledger.failed.is_set()


def test_parts_of_a_split_batch_count_for_it() -> None:
    ledger = Ledger()
    ledger.read = 4
    batch = batch_of(4)
    batch.seal(Codec.NONE, None, is_transactional=False)
    parts = batch.split(61 + 20)
    assert len(parts) > 1
    for number, part in enumerate(parts[:-1]):
        part.complete(number * 10, -1)
    parts[-1].fail(refusal())
    batch.finish()
    for each in (*parts, batch):
        ledger.finished(each)
    assert (ledger.stored, ledger.refused, ledger.pending) == (4 - parts[-1].count, parts[-1].count, 0)


def test_refused_and_unknown_are_told_apart() -> None:
    ledger = Ledger()
    ledger.read = 7
    endings = [refusal(), exception_of(ErrorCode.REQUEST_TIMED_OUT, "late"), refusal()]
    for number, error in enumerate(endings):
        batch = batch_of(2)
        batch.is_uncertain = number == 2
        batch.fail(error)
        ledger.finished(batch)
    assert (ledger.refused, ledger.lost, ledger.pending) == (2, 4, 1)
    assert ledger.failure is endings[0]
    assert ledger.failed.is_set()
    assert ledger.total("orders") == "0 records stored in orders, 2 refused, 5 not known to be stored"


def test_failure_names_what_is_wrong_with_a_record() -> None:
    ledger = Ledger()
    batch = batch_of(3)
    error = exception_of(ErrorCode.INVALID_RECORD, "some record is bad")
    error.record_errors = ((1, "it has no key"),)
    batch.fail(error)
    ledger.finished(batch)
    assert "it has no key" in str(ledger.failure)
