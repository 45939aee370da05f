"""Each checker with a shortest sequence of events that violates its invariant, and one that does not."""

from collections.abc import Callable

import pytest

from ottla.ids import Uuid
from ottla.sim.checkers.checker import Audit, Batch, Checker, Checkers, Place, SeenRecord, TopicPlan, Violation, Watermarks
from ottla.sim.checkers.logs import (
    FlushedInTime,
    InStep,
    LastingTopics,
    MonotonicQuorum,
    NoLoss,
    Order,
    RisingWatermarks,
    UniqueProducerIds,
)

OUT_OF_ORDER = 45


def place(**configs: str) -> Place:
    return Place(TopicPlan("t", Uuid(bytes(16)), 1, {key.replace("_", "."): value for key, value in configs.items()}), 0)


def batch(at: Place, number: int, *values: bytes, idempotent: bool = True) -> Batch:
    return Batch("p", at, number, list(values), [value[:1] for value in values], idempotent, -1)


def audit(at: Place, *values: bytes, start: int = 0, end: int | None = None) -> Audit:
    records = [SeenRecord(start + index, value, value[:1]) for index, value in enumerate(values)]
    return Audit(at, start, start + len(values) if end is None else end, records)


def acknowledge(checker: Checker, *batches: Batch) -> int:
    """Send and acknowledge batches one after the other."""
    offset = 0
    for each in batches:
        checker.sent(each)
        checker.acknowledged(each, offset)
        offset += len(each.values)
    return offset


def test_acknowledged_records_are_there() -> None:
    at, checker = place(), NoLoss()
    acknowledge(checker, batch(at, 0, b"a", b"b"))
    checker.audited(audit(at, b"a", b"b"))
    with pytest.raises(Violation, match="1 records that were acknowledged or seen are not there; the first is b'b' at 1"):
        checker.audited(audit(at, b"a"))


def test_an_offset_keeps_its_record() -> None:
    at, checker = place(), NoLoss()
    checker.seen(at, [SeenRecord(0, b"a")])
    with pytest.raises(Violation, match="offset 0 held b'a', and now b'b' was acknowledged there"):
        acknowledge(checker, batch(at, 0, b"b"))


def test_records_may_be_missing_only_below_a_deletion() -> None:
    at, checker = place(), NoLoss()
    acknowledge(checker, batch(at, 0, b"a", b"b"))
    checker.deletion_requested(at, 1)
    checker.audited(audit(at, b"b", start=1))
    with pytest.raises(Violation, match="begins at 2, but no client asked to delete beyond 1"):
        checker.audited(audit(at, start=2))


def test_compaction_removes_only_records_with_a_later_one() -> None:
    at, checker = place(cleanup_policy="compact"), NoLoss()
    acknowledge(checker, batch(at, 0, b"a1", b"b1", b"a2"))
    later = [SeenRecord(1, b"b1", b"b"), SeenRecord(2, b"a2", b"a")]
    checker.audited(Audit(at, 0, 3, later))
    with pytest.raises(Violation, match="the first is b'b1' at 1"):
        checker.audited(Audit(at, 0, 3, later[1:]))


def test_a_power_loss_loses_only_unflushed_records() -> None:
    for at, may_lose in ((place(), True), (place(flush_messages="1"), False)):
        checker = NoLoss()
        acknowledge(checker, batch(at, 0, b"a", b"b"))
        checker.power_lost()
        if may_lose:
            checker.audited(audit(at, b"a"))
            checker.acknowledged(batch(at, 1, b"c"), 1)
            with pytest.raises(Violation):
                checker.audited(audit(at, b"a"))
        else:
            with pytest.raises(Violation):
                checker.audited(audit(at, b"a"))


def test_records_older_than_flush_ms_survive_a_power_loss() -> None:
    at, now_s = place(flush_ms="10"), [0.0]
    checker = FlushedInTime(lambda: now_s[0], lambda wait_s: now_s[0] - wait_s)
    acknowledge(checker, batch(at, 0, b"a"))
    now_s[0] = 5.0
    checker.acknowledged(batch(at, 1, b"b"), 1)
    checker.power_lost()
    checker.audited(audit(at, b"a"))
    now_s[0] = 10.0
    checker.power_lost()
    with pytest.raises(Violation, match="lost offset 0"):
        checker.audited(audit(at))


def test_offsets_have_no_gaps() -> None:
    at, checker = place(), Order()
    acknowledge(checker, batch(at, 0, b"a", b"b"))
    gap = Audit(at, 0, 2, [SeenRecord(1, b"b")])
    with pytest.raises(Violation, match="should hold the offsets 0 to 2"):
        checker.audited(gap)
    checker.power_lost()
    checker.audited(gap)
    checker.audited(gap)


def test_nothing_is_invented() -> None:
    at, checker = place(), Order()
    with pytest.raises(Violation, match="which was never sent there"):
        checker.seen(at, [SeenRecord(0, b"a")])


def test_idempotent_records_are_there_once_and_in_order() -> None:
    at = place()
    for idempotent, found in ((True, (b"a", b"a")), (True, (b"b", b"a")), (False, (b"a", b"a"))):
        checker = Order()
        for number, value in enumerate((b"a", b"b")):
            checker.sent(batch(at, number, value, idempotent=idempotent))
        if idempotent:
            with pytest.raises(Violation, match="of the idempotent p comes after"):
                checker.audited(audit(at, *found))
        else:
            checker.audited(audit(at, *found))


def test_later_batches_have_later_offsets() -> None:
    at, checker = place(), Order()
    checker.acknowledged(batch(at, 0, b"a"), 7)
    with pytest.raises(Violation, match="batch 1 of p is at 6, but batch 0"):
        checker.acknowledged(batch(at, 1, b"b"), 6)


def test_producers_stay_in_step_without_a_power_loss() -> None:
    at, checker = place(), InStep()
    checker.power_lost()
    checker.acknowledged(batch(at, 0, b"a"), 0)
    with pytest.raises(Violation, match="OUT_OF_ORDER_SEQUENCE_NUMBER for its oldest unanswered batch 1"):
        checker.out_of_step(batch(at, 1, b"b"), OUT_OF_ORDER)
    checker.power_lost()
    checker.out_of_step(batch(at, 1, b"b"), OUT_OF_ORDER)


@pytest.mark.parametrize("why", ["retention", "a client's wish"])
def test_a_retry_of_a_removed_batch_may_be_out_of_step(why: str) -> None:
    at, checker = place(**{"retention.bytes": "1"} if why == "retention" else {}), InStep()
    if why == "a client's wish":
        checker.deletion_requested(at, 1)
    checker.out_of_step(batch(at, 1, b"b"), OUT_OF_ORDER)


@pytest.mark.parametrize("later", [Watermarks(0, 5, 5), Watermarks(1, 4, 6), Watermarks(1, 6, 5)])
def test_watermarks_rise(later: Watermarks) -> None:
    at, checker = place(), RisingWatermarks()
    checker.watermarks_answered("c#1", at, Watermarks(1, 5, 5))
    checker.watermarks_answered("c#1", at, Watermarks(1, 5, 6))
    checker.watermarks_answered("c#2", at, Watermarks(0, 0, 0))
    with pytest.raises(Violation):
        checker.watermarks_answered("c#1", at, later)


def test_producer_ids_are_given_once() -> None:
    checker = UniqueProducerIds()
    checker.producer_id_given(7, 0)
    checker.producer_id_given(8, 0)
    with pytest.raises(Violation, match="producer id 7 was given to two"):
        checker.producer_id_given(7, 0)


@pytest.mark.parametrize(("epoch", "high_watermark"), [(1, 11), (2, 9)])
def test_the_quorum_does_not_go_back(epoch: int, high_watermark: int) -> None:
    checker = MonotonicQuorum()
    checker.quorum_answered(2, 10)
    with pytest.raises(Violation, match="and now"):
        checker.quorum_answered(epoch, high_watermark)


@pytest.mark.parametrize(
    ("found", "configs"),
    [
        ({}, {}),
        ({"t": (Uuid(bytes(16)), 1), "u": (Uuid(bytes(16)), 1)}, {"t": {}, "u": {}}),
        ({"t": (Uuid(b"\1" * 16), 1)}, {"t": {}}),
        ({"t": (Uuid(bytes(16)), 2)}, {"t": {}}),
        ({"t": (Uuid(bytes(16)), 1)}, {"t": {"segment.ms": "7"}}),
    ],
)
def test_topics_last(found: dict[str, tuple[Uuid, int]], configs: dict[str, dict[str, str]]) -> None:
    topic, checker = place().topic, LastingTopics()
    checker.topic_made(topic)
    checker.topics_answered({"t": (topic.topic_id, 1)}, {"t": {}})
    with pytest.raises(Violation):
        checker.topics_answered(found, configs)
    checker.topic_deleted(topic)
    checker.topics_answered({}, {})


def test_all_checkers_get_every_event() -> None:
    names = [name for name in vars(Checker) if not name.startswith("_")]
    got: list[str] = []

    def hearing(name: str) -> Callable[..., None]:
        return lambda *what: got.append(name)

    listener = Checker()
    for name in names:
        setattr(listener, name, hearing(name))
    both = Checkers([listener, listener])
    for name in names:
        getattr(both, name)()
    assert got == [name for name in names for _ in range(2)]
