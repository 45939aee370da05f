"""The metrics of a broker's replication."""

from types import SimpleNamespace
from typing import Any

from tests.support.nodes.images import image_of, partition

from ottla.broker.metadata_cache import MetadataCache
from ottla.broker.replication.quota import ReplicationQuota
from ottla.broker.replication.replication import IsrCounters
from ottla.broker.replication.replication_metrics import write_replication
from ottla.metrics_text import MetricsText


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
