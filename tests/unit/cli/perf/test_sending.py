"""The loop of `ottla perf produce`: groups, batches that are done early, split or refused."""

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from ottla.cli.perf.payloads import Counted, random_payloads
from ottla.cli.perf.sending import GROUP_BYTES_MAX, GROUP_RECORDS_MAX, Sending, SendPlan

from ottla.client_core.producer.batch import ProducerBatch
from ottla.errors import InvalidRecordError, NetworkError
from ottla.records.kernels import BufferMemory


class FakeDelivery:
    def __init__(self, batch: ProducerBatch) -> None:
        self.batch = batch


class FakeProducer:
    """Batches of three records. `finish` completes or fails what is in them."""

    def __init__(self) -> None:
        self.batches: list[ProducerBatch] = []
        self.groups: list[int] = []
        self.is_quick = False
        self.error: Any = None

    def send_many(self, topic: str, values: Sequence[bytes]) -> list[FakeDelivery]:
        self.groups.append(len(values))
        handles = []
        for value in values:
            if not self.batches or self.batches[-1].count == 3:
                self.batches.append(ProducerBatch((topic, 0), BufferMemory(1 << 20), 1 << 12, 1 << 16, 0, None))
            self.batches[-1].append(0, None, value, b"\x00", None)
            handles.append(FakeDelivery(self.batches[-1]))
        if self.is_quick:
            self.flush(None)
        return handles

    def flush(self, timeout: float | None) -> None:
        for batch in self.batches:
            if not batch.is_done and self.error is None:
                batch.complete(0, -1)
            elif not batch.is_done:
                batch.fail(self.error)
        self.batches = []


def sent(producer: FakeProducer, plan: SendPlan) -> Sending:
    sending = Sending(producer, plan, lambda _: None, lambda *_: None)  # type: ignore[arg-type]
    sending.run()
    return sending


@pytest.mark.parametrize("is_quick", [False, True], ids=["later", "before send returns"])
def test_every_record_is_counted_once(is_quick: bool) -> None:
    producer = FakeProducer()
    producer.is_quick = is_quick
    sending = sent(producer, SendPlan("t", 10, Counted(), warmup=4))
    assert sending.steady is not None
    assert (sending.all.total.records, sending.all.total.size_bytes) == (10, 10)
    assert (sending.steady.total.records, sending.steady.total.size_bytes) == (6, 6)
    assert producer.groups == [4, 6]


def test_groups_of_large_records_are_small() -> None:
    producer = FakeProducer()
    sent(producer, SendPlan("t", 20, random_payloads(GROUP_BYTES_MAX // 2, 20)))
    assert set(producer.groups) == {2}


def test_refused_batches_are_not_counted_as_stored() -> None:
    producer = FakeProducer()
    producer.error = NetworkError("gone")
    sending = sent(producer, SendPlan("t", 7, Counted()))
    assert (sending.all.total.records, sending.failures) == (0, {"gone": 7})


def test_batch_with_one_bad_record_fails_whole_and_says_why() -> None:
    producer = FakeProducer()
    producer.error = InvalidRecordError("bad", record_errors={1: "no key"})
    sending = sent(producer, SendPlan("t", 3, Counted()))
    assert sending.all.total.records == 0
    assert sorted(sending.failures.values()) == [1, 2]


def test_interval_without_a_stored_record_prints_nothing() -> None:
    def lines_of(producer: FakeProducer) -> list[str]:
        lines: list[str] = []
        ticks = count(step=0.002)
        plan = SendPlan("t", 3 * GROUP_RECORDS_MAX, Counted(), interval_ms=1)
        Sending(producer, plan, lines.extend, lambda *_: None, lambda: next(ticks)).run()  # type: ignore[arg-type]
        return lines

    producer = FakeProducer()
    assert len(lines_of(producer)) == 1
    producer.is_quick = True
    assert len(lines_of(producer)) == 3
