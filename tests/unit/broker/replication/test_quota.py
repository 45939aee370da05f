"""Quotas of replication, and its metrics."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.nodes.images import image_of, partition

from ottla.broker.metadata_cache import MetadataCache
from ottla.broker.metrics import write_replication
from ottla.broker.replication.quota import PORTION_BYTES_MIN, UNLIMITED, ReplicationQuota, portion_bytes
from ottla.broker.replication.replication import IsrCounters
from ottla.metrics_text import MetricsText

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


class Held(list[Any]):
    """The partitions of a node, those that are offline apart."""

    offline = ("gone",)


def led(index: int, isr: tuple[int, ...], min_isr: int, is_leading: bool = True) -> Any:
    return SimpleNamespace(topic="t", index=index, replicas=(1, 2, 3), isr=isr, min_isr=min_isr, is_leading=is_leading)


def samples(partitions: list[Any], counters: IsrCounters, lags: dict[int, int]) -> dict[str, str]:
    cache = MetadataCache()
    moving = partition(1, 2, 3)._replace(adding_replicas=(3,))
    cache.image = image_of([], {"t": [partition(1, 2, 3), partition(1, 2, 3), moving, moving]})
    quotas = {name: ReplicationQuota(11, 1) for name in ("leader_quota", "follower_quota")}
    quotas["leader_quota"].record(3000, 5.0)
    broker: Any = SimpleNamespace(
        partitions=Held(partitions),
        metadata=cache,
        replication=SimpleNamespace(isr_counters=counters, lags=lambda: lags, **quotas),
        scheduler=SimpleNamespace(now_s=lambda: 8.0),
    )
    text = MetricsText()
    write_replication(text, broker)
    lines = [line for line in text.encode().decode().splitlines() if not line.startswith("#")]
    return {name: value for name, _, value in (line.rpartition(" ") for line in lines)}


def test_partitions_that_are_led_count_by_their_isr() -> None:
    found = samples(
        [led(0, (1, 2, 3), 2), led(1, (1, 2), 2), led(2, (1,), 2), led(3, (2,), 2, is_leading=False)], IsrCounters(), {}
    )
    of_leaders = {name.removeprefix("kafka_server_replicamanager_"): value for name, value in found.items()}
    assert (of_leaders["partitioncount"], of_leaders["leadercount"], of_leaders["offlinereplicacount"]) == ("4", "3", "1")
    assert of_leaders["underreplicatedpartitions"] == "2"
    assert of_leaders["underminisrpartitioncount"] == "1"
    assert of_leaders["atminisrpartitioncount"] == "1"
    assert of_leaders["reassigningpartitions"] == "1", "the other one is led elsewhere"


def test_changes_of_isrs_and_lags_of_each_leader() -> None:
    counters = IsrCounters()
    counters.shrinks, counters.expands, counters.failures = 3, 2, 1
    found = samples([], counters, {2: 10, 3: 4})
    assert found["kafka_server_replicamanager_isrshrinks_total"] == "3"
    assert found["kafka_server_replicamanager_isrexpands_total"] == "2"
    assert found["kafka_server_replicamanager_failedisrupdates_total"] == "1"
    assert found['kafka_server_replicafetchermanager_maxlag{clientId="Replica"}'] == "10"
    assert (found['ottla_replica_fetcher_lag_max{leader="2"}'], found['ottla_replica_fetcher_lag_max{leader="3"}']) == (
        "10",
        "4",
    )
    assert samples([], counters, {})['kafka_server_replicafetchermanager_maxlag{clientId="Replica"}'] == "0"


def test_rates_of_throttled_replicas() -> None:
    found = samples([], IsrCounters(), {})
    assert found["kafka_server_leaderreplication_byte_rate"] == "1000.0"
    assert found["kafka_server_followerreplication_byte_rate"] == "0.0"
