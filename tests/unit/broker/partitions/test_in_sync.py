"""Who is in sync, for whom the high watermark waits, and which change of the ISR is due."""

from ottla.broker.partitions.in_sync import Change, InSyncReplicas

LAG_S = 10.0


def eligible(replica: int, broker_epoch: int) -> bool:
    return True


def fenced(replica: int, broker_epoch: int) -> bool:
    return False


def of(isr: tuple[int, ...] = (1, 2, 3), start_offset: int = 0, now_s: float = 0.0) -> InSyncReplicas:
    return InSyncReplicas(1, (1, 2, 3), isr, start_offset, {}, now_s)


def awaited(replicas: InSyncReplicas, leader_end: int = 100, now_s: float = 0.0) -> set[int]:
    return set(replicas.awaited(leader_end, LAG_S, eligible, now_s))


def test_high_watermark_waits_for_the_isr_even_before_its_first_fetch() -> None:
    assert awaited(of(), now_s=1000) == {2, 3}


def test_pending_addition_counts_as_in_sync() -> None:
    replicas = of(isr=(1, 2))
    assert awaited(replicas, now_s=1000) == {2}
    replicas.pending = Change((1, 2, 3), 0, 0, (7, 7, 7))
    assert awaited(replicas, now_s=1000) == {2, 3}


def test_pending_removal_still_counts_as_in_sync() -> None:
    replicas = of()
    replicas.pending = Change((1, 2), 0, 0, (7, 7))
    assert replicas.maximal == {1, 2, 3}
    assert awaited(replicas, now_s=1000) == {2, 3}


def test_high_watermark_waits_for_a_caught_up_replica_that_may_join() -> None:
    replicas = of(isr=(1, 2))
    replicas.fetched(3, 100, 0, 7, 100, now_s=50)
    assert awaited(replicas, leader_end=101, now_s=51) == {2, 3}
    assert set(replicas.awaited(101, LAG_S, fenced, 51)) == {2}
    assert awaited(replicas, leader_end=101, now_s=61) == {2}, "it has not caught up for too long"


def test_replica_joins_at_the_high_watermark_and_past_the_start_of_the_epoch() -> None:
    replicas = of(isr=(1, 2), start_offset=50)
    assert replicas.growth(3, 40, eligible) is None, "it has not fetched"
    replicas.fetched(3, 49, 0, 7, 100, 0)
    assert replicas.growth(3, 40, eligible) is None, "before the start of the leader's epoch"
    replicas.fetched(3, 50, 0, 7, 100, 0)
    assert replicas.growth(3, 51, eligible) is None, "below the high watermark"
    assert replicas.growth(3, 50, fenced) is None
    assert replicas.growth(3, 50, eligible) == (1, 2, 3)
    replicas.pending = Change((1,), 0, 0, (7,))
    assert replicas.growth(3, 50, eligible) is None, "one change at a time"


def test_lagging_replicas_leave_the_isr() -> None:
    replicas = of()
    replicas.fetched(2, 100, 0, 7, 100, now_s=5)
    assert replicas.shrinkage(100, LAG_S, now_s=10) is None
    assert replicas.shrinkage(101, LAG_S, now_s=15) == (1, 2), "node 3 was last caught up when this epoch began"
    assert replicas.shrinkage(100, LAG_S, now_s=1000) == (1, 2), "node 2 has everything"
    replicas.pending = Change((1, 2), 0, 0, (7, 7))
    assert replicas.shrinkage(100, LAG_S, now_s=1000) is None, "one change at a time"


def test_replica_that_keeps_pace_without_ever_reaching_the_end_stays() -> None:
    replicas = of()
    for second in range(1, 100):
        replicas.fetched(2, 10 * (second - 1), 0, 7, 10 * second, now_s=second)
        replicas.fetched(3, 0, 0, 7, 10 * second, now_s=second)
    assert replicas.shrinkage(1000, LAG_S, now_s=100) == (1, 2)


def test_replica_that_is_several_answers_behind_and_keeps_pace_stays() -> None:
    replicas = of(isr=(1, 2))
    for second in range(1, 101):  # each answer brings one batch, and the leader is always four ahead
        replicas.fetched(2, second * 10, 0, 7, second * 10 + 40, now_s=second)
        assert replicas.shrinkage(second * 10 + 40, LAG_S, second) is None
    replicas.fetched(2, 1005, 0, 7, 2000, now_s=101)
    assert replicas.shrinkage(2000, LAG_S, 120) == (1,), "now it falls behind"


def test_fetch_of_an_earlier_process_is_stale() -> None:
    replicas = of()
    assert not replicas.is_stale(2, 7)
    replicas.fetched(2, 0, 0, 7, 0, 0)
    assert replicas.is_stale(2, 6)
    assert not replicas.is_stale(2, -1), "old versions send none"
    assert replicas.broker_epoch(2) == 7
    assert replicas.broker_epoch(3) == replicas.broker_epoch(9) == -1


def test_newer_metadata_answers_the_pending_change_and_drops_replicas_that_are_gone() -> None:
    replicas = of(isr=(1, 2))
    replicas.fetched(2, 5, 0, 7, 5, 0)
    replicas.pending = Change((1, 2, 3), 0, 0, (7, 7, 7))
    replicas.adopt((1, 3, 4), (1, 3), now_s=20)
    assert replicas.pending is None
    assert sorted(replicas.remote) == [3, 4]
    assert replicas.ends == {}
    assert awaited(replicas, now_s=20) == {3}
