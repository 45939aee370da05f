"""A node's metrics over HTTP, as Prometheus scrapes and parses them."""

import socket
import time
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import ServerFailed, free_ports
from tests.support.servers.ottla_server import start_ottla

from ottla import Consumer, Producer
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def scrape(port: int) -> dict[tuple[str, str], float]:
    """(name, topic) → value."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = response.read().decode()
    return {
        (sample.name, sample.labels.get("topic", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_scrape_before_and_after_records() -> None:
    [port] = free_ports(1)
    with start_ottla({"ottla.metrics.port": port}) as server, RawClient.to(server.bootstrap) as raw:
        make_topic(server.bootstrap, "t")
        before = scrape(port)
        for _ in range(3):
            data = PartitionProduceData(index=0, records=bytes(make_batch(b"x" * 1000, b"y")))
            topic = TopicProduceData(name="t", partition_data=[data])
            raw.request(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 9)
        after = scrape(port)
    grown = {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}
    assert grown["kafka_server_brokertopicmetrics_messagesin_total", "t"] == 6
    assert grown["kafka_log_log_logendoffset", "t"] == 6
    assert 3000 < grown["kafka_server_brokertopicmetrics_bytesin_total", ""] < 3600
    assert after["kafka_server_replicamanager_partitioncount", ""] == 1
    assert after["kafka_controller_kafkacontroller_activecontrollercount", ""] == 1
    assert after["process_resident_memory_bytes", ""] > 10_000_000


def test_a_port_that_is_taken_is_said_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServerFailed, match=str(port)) as refused:
            start_ottla({"ottla.metrics.port": port})
    assert "Traceback" not in str(refused.value)


def page(port: int, path: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """(name, labels) → value."""
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as response:
        families = list(text_string_to_metric_families(response.read().decode()))
    assert len({family.name for family in families}) == len(families)
    return {(sample.name, frozenset(sample.labels.items())): sample.value for family in families for sample in family.samples}


def test_groups_in_three_flavours() -> None:
    [port] = free_ports(1)
    with start_ottla({"ottla.metrics.port": port}) as server:
        make_topic(server.bootstrap, "t")
        with Producer(server.bootstrap) as producer:
            for age_s in (9000, 8000, 7000):
                producer.send("t", b"x", partition=0, timestamp=int((time.time() - age_s) * 1000)).result(60)
        with Consumer(server.bootstrap, group_id="g", auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
            consumer.subscribe("t")
            assert consumer.poll(60, max_records=1)
            consumer.commit()
            pages = {each: page(port, f"/metrics/groups?flavour={each}") for each in ("kafka_exporter", "lag", "kminion")}
    of_group = {"topic": "t", "partition": "0"}
    exported = pages["kafka_exporter"]
    assert exported["kafka_consumergroup_lag", frozenset({**of_group, "consumergroup": "g"}.items())] == 2
    assert exported["kafka_consumergroup_lag_sum", frozenset({"consumergroup": "g", "topic": "t"}.items())] == 2
    assert exported["kafka_consumergroup_members", frozenset({("consumergroup", "g")})] == 1
    assert exported["kafka_topic_partition_current_offset", frozenset(of_group.items())] == 3
    assert exported["kafka_brokers", frozenset()] == 1
    [(found, seconds)] = [
        (dict(labels), value)
        for (name, labels), value in pages["lag"].items()
        if name == "kafka_consumergroup_group_lag_seconds"
    ]
    assert 8000 <= seconds < 8100
    assert (found["group"], found["member_host"], found["client_id"]) == ("g", "/127.0.0.1", "ottla-consumer")
    of_topic = frozenset({("group_id", "g"), ("topic_name", "t")})
    assert pages["kminion"]["kminion_kafka_consumer_group_topic_lag", of_topic] == 2
    assert all(each["ottla_group_partitions_unknown", frozenset()] == 0 for each in pages.values())
    info = [dict(labels) for name, labels in pages["kminion"] if name == "kminion_kafka_consumer_group_info"]
    assert [(each["state"], each["protocol_type"]) for each in info] == [("Stable", "consumer")]


def test_page_of_a_loaded_node_has_series_of_topics_and_listeners() -> None:
    [port] = free_ports(1)
    with start_ottla({"ottla.metrics.port": port}) as server:
        make_topic(server.bootstrap, "t")
        with Producer(server.bootstrap) as producer:
            producer.send("t", b"x" * 5000, partition=0).result(60)
            page(port, "/metrics")
            producer.send("t", b"x" * 5000, partition=0).result(60)
        with Consumer(server.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign(("t", 0))
            assert consumer.poll(60)
            found = page(port, "/metrics")
        with urlopen(f"http://127.0.0.1:{port}/readyz?check=isr", timeout=30) as response:
            assert response.read() == b"ok\n"
    topic = frozenset({("topic", "t")})
    assert 10_000 < found["kafka_server_brokertopicmetrics_bytesin_total", topic] < 11_000
    assert found["kafka_server_brokertopicmetrics_bytesout_total", topic] >= 5000
    assert found["kafka_cluster_partition_insyncreplicascount", frozenset({("topic", "t"), ("partition", "0")})] == 1
    listeners = [dict(labels) for name, labels in found if name == "kafka_server_socket_server_metrics_connection_count"]
    assert {"PLAINTEXT"} <= {each.get("listener", "") for each in listeners}
    assert found["kafka_server_raftmetrics_current_state", frozenset({("current_state", "leader")})] == 1
    assert 0 <= found["kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", frozenset()] <= 1
    assert found["kafka_network_requestmetrics_totaltimems", frozenset({("request", "Produce"), ("quantile", "0.99")})] > 0
