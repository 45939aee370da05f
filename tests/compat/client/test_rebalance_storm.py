"""Members of both faces that join and leave all the time, by every assignor of both protocols: the at-least-once loop of
docs/clients.md neither dies nor loses a record. `tests/unit/client/consumer/test_rebalances.py` is the same in virtual time.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import make_topic

from ottla import Producer
from ottla.errors import CommitFailedError

pytestmark = pytest.mark.slow

PARTITIONS = 6
MEMBERS = 4
STORM_S = 8.0
WAIT_S = 60.0
ASSIGNORS = {
    **{each: {"partition_assignment_strategy": each} for each in ("range", "roundrobin", "sticky", "cooperative-sticky")},
    "uniform (consumer)": {"group_protocol": "consumer", "group_remote_assignor": "uniform"},
    "range (consumer)": {"group_protocol": "consumer", "group_remote_assignor": "range"},
}


class Storm:
    """Threads that run the loop. A consumer lives for a few hundred milliseconds, and the next takes its place."""

    def __init__(self, make: Callable[[], Any], topic: str) -> None:
        self._make = make
        self._topic = topic
        self._is_over = threading.Event()
        self.handled: Counter[int] = Counter()
        self.lives = 0
        self.refused: list[CommitFailedError] = []
        self.deaths: list[BaseException] = []

    def run(self, number: int) -> None:
        try:
            random = Random(number)
            while not self._is_over.is_set():
                self._live(random.uniform(0.3, 1.5))
        except BaseException as error:
            self.deaths.append(error)

    def _live(self, life_s: float) -> None:
        self.lives += 1
        ends_s = time.monotonic() + life_s
        with self._make() as consumer:
            consumer.subscribe([self._topic])
            while time.monotonic() < ends_s and not self._is_over.is_set():
                records = consumer.poll(timeout=0.2)
                for record in records:
                    self.handled[int(record.value)] += 1
                if records:
                    try:
                        consumer.commit()
                    except CommitFailedError as error:
                        self.refused.append(error)

    def end(self) -> None:
        self._is_over.set()


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_the_loop_survives_members_that_come_and_go(bootstrap: str, face: Faces, topic: str, assignor: str) -> None:
    make_topic(bootstrap, topic, PARTITIONS)
    given = {"group_id": topic, "auto_offset_reset": "earliest", "enable_auto_commit": False, "max_poll_records": 50}
    if "consumer" not in assignor:
        given["heartbeat_interval_ms"] = 100
    storm = Storm(lambda: face.consumer(bootstrap, **given, **ASSIGNORS[assignor]), topic)
    threads = [threading.Thread(target=storm.run, args=(number,)) for number in range(MEMBERS)]
    for thread in threads:
        thread.start()
    try:
        sent, ends_s = 0, time.monotonic() + STORM_S
        with Producer(bootstrap) as producer:
            while time.monotonic() < ends_s:
                for _ in range(20):
                    producer.send(topic, b"%d" % sent, partition=sent % PARTITIONS)
                    sent += 1
                time.sleep(0.02)  # the load, not a wait for something
        deadline_s = time.monotonic() + WAIT_S
        while len(storm.handled) < sent and not storm.deaths:
            assert time.monotonic() < deadline_s, f"{sent - len(storm.handled)} of {sent} records were not handled"
            time.sleep(0.05)
    finally:
        storm.end()
        for thread in threads:
            thread.join(WAIT_S)
    assert storm.deaths == []
    assert storm.refused == [], "members that leave in good order hand their partitions over"
    assert max(storm.handled.values()) == 1, "and no record is handled twice"
    assert storm.lives > 2 * MEMBERS
