"""The quota of throttled replicas: it keeps the rate, lets nobody wait longer than needed, and never stops for good."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.replication.quota import PORTION_BYTES_MIN, UNLIMITED, ReplicationQuota, portion_bytes

RATE = 10_000


def test_first_window_may_be_used_at_once_and_then_nothing_until_time_has_passed() -> None:
    quota = ReplicationQuota(11, 1)
    assert quota.allowance(RATE, 50.0) == RATE
    quota.record(RATE, 50.0)
    assert quota.allowance(RATE, 50.5) == 0
    assert quota.allowance(RATE, 51.05) == 0, "too little to be worth a fetch"
    assert quota.allowance(RATE, 51.5) == RATE // 2
    assert quota.rate(52.0) == RATE / 2


def test_debt_is_paid_off_with_time() -> None:
    quota = ReplicationQuota(11, 1)
    quota.record(5 * RATE, 0.0)
    assert [quota.allowance(RATE, now_s) > 0 for now_s in (1.0, 4.9, 5.2)] == [False, False, True]


def test_traffic_is_forgotten_after_all_windows() -> None:
    quota = ReplicationQuota(3, 2)
    quota.record(100 * RATE, 0.0)
    assert quota.allowance(RATE, 5.9) == 0
    assert quota.allowance(RATE, 6.1) == 2 * RATE


def test_without_a_rate_nothing_is_throttled_and_with_rate_0_everything() -> None:
    quota = ReplicationQuota(11, 1)
    quota.record(1 << 40, 0.0)
    assert quota.allowance(UNLIMITED, 0.0) == UNLIMITED
    assert (quota.allowance(0, 100.0), quota.wait_s(0, 100.0)) == (0, 1)


def test_portion_is_what_a_second_is_for_but_not_tiny() -> None:
    assert (portion_bytes(1), portion_bytes(1 << 20)) == (PORTION_BYTES_MIN, 1 << 20)


def test_setting_names_replicas_by_partition_and_broker() -> None:
    quota = ReplicationQuota(11, 1)
    setting = ("0:1", "1:2", "")
    assert [quota.lists("t", index, 1, setting) for index in (0, 1)] == [True, False]
    assert quota.lists("t", 1, 2, setting)
    assert not quota.lists("t", 0, 1, ())
    changed = ("0:2",)
    assert not quota.lists("t", 0, 1, changed), "the topic's setting is another one now"
    assert quota.lists("t", 7, 9, ("*",))


@given(
    steps=st.lists(st.tuples(st.floats(0.001, 3.0), st.integers(1, 30 * RATE)), min_size=1, max_size=200),
    window_count=st.integers(2, 12),
)
def test_what_is_taken_stays_within_the_rate(steps: list[tuple[float, int]], window_count: int) -> None:
    quota = ReplicationQuota(window_count, 1)
    now_s, taken = 0.0, 0
    for pause_s, wanted in steps:
        size_bytes = min(wanted, quota.allowance(RATE, now_s))
        if size_bytes:
            quota.record(size_bytes, now_s)
            taken += size_bytes
        assert taken <= RATE * (now_s + 1) + 1
        now_s += pause_s


@given(batch_bytes=st.integers(1, RATE), window_count=st.integers(2, 12), until_s=st.integers(20, 60))
def test_one_that_always_has_more_to_send_gets_the_rate(batch_bytes: int, window_count: int, until_s: int) -> None:
    """It waits for as long as it is told, and then sends whole batches, at least one."""
    quota = ReplicationQuota(window_count, 1)
    now_s, taken = 0.0, 0
    while now_s < until_s:
        if allowed := quota.allowance(RATE, now_s):
            size_bytes = max(allowed // batch_bytes, 1) * batch_bytes
            quota.record(size_bytes, now_s)
            taken += size_bytes
        else:
            now_s += quota.wait_s(RATE, now_s)
    assert 0.8 * RATE * until_s <= taken <= 1.2 * RATE * until_s + batch_bytes
