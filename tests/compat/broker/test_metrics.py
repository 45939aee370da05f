"""A node's metrics over HTTP, as Prometheus scrapes and parses them."""

import socket
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import ServerFailed, free_ports
from tests.support.servers.ottla_server import start_ottla

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
