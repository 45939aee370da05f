"""The metrics of replication: partitions led here, changes of their ISRs, and how far this broker lags as a follower.

Computed on request from the state of partitions and fetchers. Nothing here is on a hot path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.services import Services
    from ottla.metrics_text import MetricsText

_PREFIX = "kafka_server_replicamanager"


def write_replication(text: MetricsText, broker: Services) -> None:
    """Add the families of replication to the page."""
    _write_partitions(text, broker)
    _write_isr_changes(text, broker)
    _write_lags(text, broker)
    _write_throttled(text, broker)


def _write_partitions(text: MetricsText, broker: Services) -> None:
    partitions = list(broker.partitions)
    led = [each for each in partitions if each.is_leading]
    states = (broker.metadata.partition(each.topic, each.index) for each in led)
    for name, words, value in (
        ("partitioncount", "Partitions on this node.", len(partitions)),
        ("leadercount", "Partitions that this node leads.", len(led)),
        ("offlinereplicacount", "Partitions whose log directory failed.", len(broker.partitions.offline)),
        (
            "underreplicatedpartitions",
            "Partitions led here with replicas out of sync.",
            sum(len(each.isr) < len(each.replicas) for each in led),
        ),
        (
            "underminisrpartitioncount",
            "Partitions led here with fewer replicas in sync than they need.",
            sum(len(each.isr) < each.min_isr for each in led),
        ),
        (
            "atminisrpartitioncount",
            "Partitions led here with no more replicas in sync than they need.",
            sum(len(each.isr) == each.min_isr for each in led),
        ),
        (
            "reassigningpartitions",
            "Partitions led here that are being reassigned.",
            sum(state is not None and bool(state.adding_replicas or state.removing_replicas) for state in states),
        ),
    ):
        text.gauge(f"{_PREFIX}_{name}", words, value)


def _write_isr_changes(text: MetricsText, broker: Services) -> None:
    counted = broker.replication.isr_counters
    for name, words, value in (
        ("isrshrinks_total", "Replicas removed from the ISR of a partition led here, counted by change.", counted.shrinks),
        ("isrexpands_total", "Replicas added to the ISR of a partition led here, counted by change.", counted.expands),
        ("failedisrupdates_total", "Changes of an ISR that the controller has not made.", counted.failures),
    ):
        text.counter(f"{_PREFIX}_{name}", words, value)


def _write_lags(text: MetricsText, broker: Services) -> None:
    lags = broker.replication.lags()
    text.gauge(
        "kafka_server_replicafetchermanager_maxlag",
        "The most records of one partition that this node, as a follower, lacks of its leader's high watermark.",
        max(lags.values(), default=0),
        [("clientId", "Replica")],
    )
    text.family("ottla_replica_fetcher_lag_max", "gauge", "The same for the partitions of one leader.")
    for leader, lag in sorted(lags.items()):
        text.sample(lag, [("leader", leader)])


def _write_throttled(text: MetricsText, broker: Services) -> None:
    now_s, replication = broker.scheduler.now_s(), broker.replication
    text.gauge(
        "kafka_server_leaderreplication_byte_rate",
        "Bytes per second sent to throttled replicas.",
        replication.leader_quota.rate(now_s),
    )
    text.gauge(
        "kafka_server_followerreplication_byte_rate",
        "Bytes per second fetched for throttled replicas.",
        replication.follower_quota.rate(now_s),
    )
