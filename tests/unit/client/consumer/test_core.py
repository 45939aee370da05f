"""What polls raise, and how a consumer behaves while its broker is away."""

from __future__ import annotations

import logging
import re
from typing import Any
from urllib.request import urlopen

import pytest
from tests.support.servers.kafka_server import free_ports

from ottla.errors import TimeoutError
from ottla.testing import Broker

LONG = 60.0


def test_a_broker_that_is_gone_is_named_when_time_is_up(face: Any) -> None:
    with Broker() as broker:
        address = broker.bootstrap_servers
    with face(address, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.assign(("t", 0))
        assert consumer.poll(0.2) == []
        with pytest.raises(TimeoutError, match=r"position in t-0 was not found within 0.3 s: .*nothing listens"):
            consumer.position(("t", 0), timeout=0.3)
        with pytest.raises(TimeoutError, match="were not committed"):
            consumer.commit({("t", 0): 1}, timeout=0.2)
        with pytest.raises(TimeoutError, match="offsets were not found"):
            consumer.end_offsets(("t", 0), timeout=0.2)
        with pytest.raises(TimeoutError, match="not read within"):
            consumer.committed(("t", 0), timeout=0.2)
        consumer.close(timeout=1)


def test_a_closed_consumer_leaves_no_fetch_session_behind(face: Any) -> None:
    (port,) = free_ports(1)

    def sessions() -> int:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LONG) as page:
            found = re.search(r"^kafka_server_fetchsessioncache_numincrementalfetchsessions (\S+)", page.read().decode(), re.M)
        assert found is not None
        return int(float(found[1]))

    with Broker({"ottla.metrics.port": port}) as broker:
        broker.create_topic("t")
        broker.produce("t", value=b"0")
        with face(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign(("t", 0))
            assert len(consumer.poll(LONG)) == 1
            assert sessions() == 1
        assert sessions() == 0


def test_lost_answers_neither_skip_nor_double(face: Any, broker: Broker, topic: str) -> None:
    given = {"auto_offset_reset": "earliest", "max_partition_fetch_bytes": 100, "retry_backoff_ms": 10}
    with face(broker.bootstrap_servers, **given) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        found: list[Any] = []
        faults = [broker.faults.drop, broker.faults.lose_reply]
        while len(found) < 20:
            found += consumer.poll(LONG, max_records=2)
            if faults:
                faults.pop()("Fetch", times=1)
    for partition in range(2):
        assert [record.offset for record in found if record.partition == partition] == list(range(10))


def test_errors_of_a_leader_that_moves_are_retried(face: Any, broker: Broker, topic: str) -> None:
    for error in ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_TOPIC_ID"):
        broker.faults.fail("Fetch", error, times=1)
    with face(broker.bootstrap_servers, auto_offset_reset="earliest", retry_backoff_ms=10) as consumer:
        consumer.assign((topic, 0))
        found: list[Any] = []
        while len(found) < 10:
            found += consumer.poll(LONG)
    assert [record.offset for record in found] == list(range(10))
    broker.faults.clear()


def test_a_topic_made_again_is_read_from_its_start(
    face: Any, broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"auto_offset_reset": "earliest", "metadata_max_age_ms": 100, "allow_auto_create_topics": False}
    with face(broker.bootstrap_servers, **given) as consumer, caplog.at_level(logging.WARNING, "ottla.client"):
        consumer.assign((topic, 0))
        found: list[Any] = []
        while len(found) < 10:
            found += consumer.poll(LONG)
        broker.delete_topic(topic)
        broker.create_topic(topic)
        broker.produce(topic, value=b"new")
        found = []
        while not found:
            found = consumer.poll(LONG)
        assert [(record.offset, record.value) for record in found] == [(0, b"new")]
    assert "deleted and created again" in caplog.text
