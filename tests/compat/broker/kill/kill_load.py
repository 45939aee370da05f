"""Kills a server again and again (SIGKILL) under load, and checks that nothing acknowledged is lost, doubled or out of order.

    python -m tests.compat.broker.kill.kill_load [--server ottla|apache] [--rounds 50] [--seed N]

Each round starts the server on the same directory and port, lets the producers continue, creates a topic, and kills the
server: after a random while, or at the moment a segment has rolled. The producers are idempotent and live through all
rounds. In the end every record sent must be in the log once, in the order of its producer, at the offset that was acknowledged;
and every topic whose creation was acknowledged must be there.
"""

import argparse
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.compat.broker.kill.kill_load_producers import ConfluentLoad, Load, RawLoad
from tests.support.peers.clients import CLIENTS, ConsumerOptions
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import describe_topic, make_topic
from tests.support.servers.kafka_server import HANG_S, KafkaServer, default_properties, free_ports
from tests.support.servers.ottla_server import StartServer, start_ottla

from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

TOPIC = "load"
PARTITIONS = 3
SEGMENT_BYTES = 1 << 20
LOAD_S_MAX = 0.6
ROLL_WAIT_S_MAX = 3.0


@dataclass(slots=True)
class Report:
    """What the run did and found; `problems` is empty if nothing is wrong."""

    rounds: int = 0
    rolls_hit: int = 0
    records: int = 0
    topics: int = 0
    problems: list[str] = field(default_factory=list)


class KillLoad:
    """One run: a directory, its producers, and what was acknowledged to them."""

    def __init__(self, start_server: StartServer, folder: Path, seed: int, in_flight_max: int, checkpoint_ms: int) -> None:
        self._in_flight_max = in_flight_max
        self._start_server = start_server
        self._folder = folder
        self._random = random.Random(seed)
        broker_port, controller_port = free_ports(2)
        self._properties = default_properties(folder, broker_port, controller_port)
        self._properties["log.flush.offset.checkpoint.interval.ms"] = checkpoint_ms
        self._bootstrap = f"127.0.0.1:{broker_port}"
        self._topics: list[str] = []
        self.report = Report()

    def run(self, rounds: int) -> Report:
        """All rounds, then the check."""
        server = self._start()
        make_topic(self._bootstrap, TOPIC, PARTITIONS, {"segment.bytes": SEGMENT_BYTES, "retention.ms": -1})
        loads: list[Load] = [
            ConfluentLoad(self._bootstrap, TOPIC, "c", [0, 1], self._in_flight_max),
            RawLoad(self._bootstrap, TOPIC, "r", 2, self._in_flight_max),
        ]
        try:
            for load in loads:
                load.start()
            for number in range(rounds):
                self._load_and_kill(server, loads, number)
                server = self._start()
            for load in loads:
                load.finish()
            self._check(loads)
        finally:
            for load in loads:
                load.stop()
            server.kill()
        return self.report

    def _start(self) -> KafkaServer:
        return self._start_server(self._properties, data_dir=self._folder)

    def _load_and_kill(self, server: KafkaServer, loads: list[Load], number: int) -> None:
        acknowledged = [load.acknowledged_count for load in loads]
        name = f"made-in-round-{number}"
        make_topic(self._bootstrap, name, 1, {"retention.ms": 10_000_000 + number})
        self._topics.append(name)
        self._await_progress(loads, acknowledged)
        self._compare_ends(loads)
        if number % 2:
            self.report.rolls_hit += self._await_roll()
        else:
            time.sleep(self._random.uniform(0, LOAD_S_MAX))
        server.kill()
        self.report.rounds += 1

    def _await_progress(self, loads: list[Load], before: list[int]) -> None:
        """Return when every producer has had a response from the server since its restart."""
        deadline = time.monotonic() + HANG_S
        while any(load.acknowledged_count <= count for load, count in zip(loads, before, strict=True)):
            for load in loads:
                assert load.problem is None, load.problem
            assert time.monotonic() < deadline, f"a producer had no answer for {HANG_S} s after a restart"
            time.sleep(0.01)

    def _await_roll(self) -> int:
        def segments() -> int:
            return len(list(self._folder.glob(f"{TOPIC}-*/*.log")))

        before, deadline = segments(), time.monotonic() + ROLL_WAIT_S_MAX
        while time.monotonic() < deadline:
            if segments() != before:
                return 1
        return 0

    def _compare_ends(self, loads: list[Load]) -> None:
        """Check that every offset acknowledged before the kill is below the log end offset after it."""
        asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(PARTITIONS)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=asked)])
        highest = [max((load.highest_offset(index) for load in loads), default=-1) for index in range(PARTITIONS)]
        with RawClient.to(self._bootstrap) as client:
            (topic,) = client.request(request, 7).topics
        for part in topic.partitions:
            if part.error_code or part.offset <= highest[part.partition_index]:
                self.report.problems.append(
                    f"{TOPIC}-{part.partition_index} ends at {part.offset}, error {part.error_code}, "
                    f"but offset {highest[part.partition_index]} was acknowledged"
                )

    def _check(self, loads: list[Load]) -> None:
        found: dict[int, list[bytes]] = {}
        for partition in range(PARTITIONS):
            expected = sum(load.sent_to(partition) for load in loads)
            rows = CLIENTS["confluent"]().consume(
                self._bootstrap, TOPIC, [partition], -2, expected, ConsumerOptions(timeout_s=60)
            )
            found[partition] = [row.value or b"" for row in rows]
            self.report.records += len(rows)
            if [row.offset for row in rows] != list(range(expected)):
                self.report.problems.append(f"{TOPIC}-{partition}: {len(rows)} records of {expected}, or offsets with holes")
        for load in loads:
            self.report.problems += load.compare(found)
        for number, name in enumerate(self._topics):
            self.report.topics += 1
            if describe_topic(self._bootstrap, name).error_code:
                self.report.problems.append(f"the topic {name} of round {number} is gone")


def run(start_server: StartServer, rounds: int, seed: int, in_flight_max: int = 5, checkpoint_ms: int = 60_000) -> Report:
    """A whole run in a temporary folder. Problems are reported, not raised.

    `checkpoint_ms` is how often recovery points are written. Kafka's default is longer than a round, so that
    every start would recover the whole log, which takes ever longer in a long run.

    For Apache Kafka `in_flight_max` should be 1: killed right after a roll, it knows only the last batch of each
    producer and may refuse a retry of an earlier one. Ottla knows the last five.
    """
    with tempfile.TemporaryDirectory(prefix="ottla-kill-") as folder:
        return KillLoad(start_server, Path(folder), seed, in_flight_max, checkpoint_ms).run(rounds)


def main() -> None:
    options = argparse.ArgumentParser(description="kill a server under load, and look for losses")
    options.add_argument("--server", choices=("ottla", "apache"), default="ottla")
    options.add_argument("--rounds", type=int, default=50)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--in-flight-max", type=int, default=5)
    options.add_argument("--checkpoint-ms", type=int, default=500)
    chosen = options.parse_args()
    start: StartServer = start_ottla
    if chosen.server == "apache":
        from tests.support.servers.apache_kafka import ApacheKafka

        start = ApacheKafka.obtain().start_server
    report = run(start, chosen.rounds, chosen.seed, chosen.in_flight_max, chosen.checkpoint_ms)
    print(report)
    sys.exit(1 if report.problems else 0)


if __name__ == "__main__":
    main()
