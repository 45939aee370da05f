"""The page of groups in a cluster: a group is on its coordinator's page alone, also with partitions that lie elsewhere."""

import re
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ottla import Admin, Producer
from ottla.client.admin.topics import NewTopic
from ottla.testing import Cluster

GROUPS = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def scraped() -> Iterator[tuple[Cluster, list[int]]]:
    """Two nodes that serve metrics, and their ports."""
    with Cluster({"ottla.metrics.port": 0, "offsets.topic.num.partitions": 4}, nodes=2) as cluster:
        ports = [int(each) for line in cluster.log_lines for each in re.findall(r"http://127\.0\.0\.1:(\d+)/metrics", line)]
        assert len(ports) == 2
        yield cluster, ports


def page(port: int) -> dict[tuple[str, str, str], float]:
    """(name, group, topic) → value."""
    with urlopen(f"http://127.0.0.1:{port}/metrics/groups?flavour=lag", timeout=30) as response:
        return {
            (sample.name, sample.labels.get("group", ""), sample.labels.get("topic", "")): sample.value
            for family in text_string_to_metric_families(response.read().decode())
            for sample in family.samples
        }


def test_sums_over_nodes_are_right(scraped: tuple[Cluster, list[int]]) -> None:
    cluster, ports = scraped
    with Admin(cluster.bootstrap_servers) as admin, Producer(cluster.bootstrap_servers) as producer:
        for topic, replicas in (("one", 1), ("two", 2)):
            admin.create_topics([NewTopic(topic, 2, replicas)])
            for number in range(20):
                producer.send(topic, b"x", partition=number % 2, timestamp=1_000_000_000_000).result(60)
            for group in GROUPS:
                admin.alter_consumer_group_offsets(group, {(topic, 0): 3, (topic, 1): 4})
    pages = [page(port) for port in ports]
    name = "kafka_consumergroup_group_topic_sum_lag"
    for group in GROUPS:
        (mine,) = [each for each in pages if (name, group, "one") in each]
        assert [mine[name, group, topic] for topic in ("one", "two")] == [13, 13], group
        assert mine["kafka_consumergroup_group_max_lag_seconds", group, ""] > 1e8
    assert [each["ottla_group_partitions_unknown", "", ""] for each in pages] == [0, 0]
    seconds = [value for each in pages for key, value in each.items() if key[0] == "kafka_consumergroup_group_lag_seconds"]
    assert len([value for value in seconds if value > 1e8]) == len(seconds)
