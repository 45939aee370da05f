"""Start and stop of a node with many partitions, Apache Kafka and Ottla in turns.

    python -m bench.restart_bench [--partitions 6000] [--data 0.1] [--rounds 1] [--only ottla]

Partitions are created in topics of 1,000, and a share of them (`--data`) gets a batch of 16 records of 1 KB. Then, per round:

    stop            SIGTERM until the process has ended; the first stop closes everything that was created
    start           start of the process until every partition answers ListOffsets
    stop, idle      the same after a start, nothing written
    start, killed   start after kill -9, with data written before it

Memory is the resident memory after the start, per partition: minus that of the same server without partitions. CPU seconds are
those of the process and its helpers. New partitions of Ottla need three descriptors each (ulimit -n), so more than `AT_ONCE`
are created with restarts in between: after one, empty partitions need none. Apache Kafka needs one for each at all times.
"""

import argparse
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.side_by_side.figures import APACHE, OTTLA
from bench.side_by_side.loads import frames
from bench.side_by_side.processes import cpu_seconds, memory_mb
from tests.support.peers.raw_client import RawClient
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import LOG_LEVELS, SERVER_JVM_FLAGS, default_properties, free_ports, properties_text
from tests.support.servers.keeping import keep
from tests.support.servers.ottla_server import OTTLA as OTTLA_COMMAND
from tests.support.servers.ottla_server import format_ottla

from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

PER_TOPIC = 1000
AT_ONCE = 5000
GIVE_UP_S = 600.0
POLL_S = 0.02
LATEST = -1
SETTINGS = {"auto.create.topics.enable": "false", "offsets.topic.num.partitions": 50}


class Server:
    """One side: its folder, and its process while it runs."""

    def __init__(self, label: str, folder: Path, kafka: ApacheKafka | None) -> None:
        self.label = label
        folder.mkdir()
        self.port, controller_port = free_ports(2)
        properties = default_properties(folder / "data", self.port, controller_port) | SETTINGS
        config = folder / "server.properties"
        config.write_text(properties_text(properties))
        self.log = folder / "server.log"
        if kafka is None:
            format_ottla(properties)
            self.command = [*OTTLA_COMMAND, "server", "start", str(config)]
        else:
            kafka.format(folder / "data", properties)
            flags = [*SERVER_JVM_FLAGS, *LOG_LEVELS]
            self.command = [*kafka.jvm(flags), "-cp", kafka.server_classpath, "kafka.Kafka", str(config)]
        self.process: subprocess.Popen[bytes] | None = None
        self.topics: dict[str, int] = {}

    @property
    def pid(self) -> int:
        assert self.process is not None, "it runs"
        return self.process.pid

    def start(self) -> tuple[float, float]:
        """Start the process; seconds and CPU seconds until every partition answers."""
        began = time.perf_counter()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.await_partitions(began + GIVE_UP_S)
        return time.perf_counter() - began, cpu_seconds(self.pid)

    def end(self, number: int) -> tuple[float, float]:
        """Send a signal; seconds and CPU seconds until the process has ended."""
        process, began, cpu_before = self.process, time.perf_counter(), cpu_seconds(self.pid)
        assert process is not None
        cpu_s = cpu_before
        process.send_signal(number)
        while process.poll() is None:
            cpu_s = max(cpu_s, cpu_seconds(process.pid))
            time.sleep(POLL_S)
            assert time.perf_counter() < began + GIVE_UP_S, f"{self.label} does not stop"
        self.process = None
        return time.perf_counter() - began, cpu_s - cpu_before

    def client(self) -> RawClient:
        return RawClient(self.port, timeout_s=GIVE_UP_S)

    def create(self, partitions: int) -> None:
        for first in range(0, partitions, AT_ONCE):
            if first:
                self.end(signal.SIGTERM)
                self.start()
            self._create(first, min(first + AT_ONCE, partitions))

    def _create(self, begin: int, end: int) -> None:
        with self.client() as client:
            for first in range(begin, end, PER_TOPIC):
                name, count = f"topic-{first // PER_TOPIC}", min(PER_TOPIC, end - first)
                topic = CreatableTopic(name=name, num_partitions=count, replication_factor=1)
                request = CreateTopicsRequest(topics=[topic], timeout_ms=int(GIVE_UP_S * 1000))
                answer = client.request(request, 7).topics[0]
                assert not answer.error_code, f"{self.label}: {answer.error_message}"
                self.topics[name] = count
        self.await_partitions(time.perf_counter() + GIVE_UP_S)

    def write(self, share: float) -> None:
        records = frames.batch(16, 1000)
        every = round(1 / share) if share else 0
        connection = frames.connect(f"127.0.0.1:{self.port}")
        for topic, count in self.topics.items():
            for partition in range(0, count, every) if every else ():
                frames.write_first(connection, frames.produce_frame(topic, partition, records), topic)
        connection.close()

    def await_partitions(self, deadline: float) -> None:
        """Wait until the server answers, and every partition with it."""
        missing = {topic: set(range(count)) for topic, count in self.topics.items()}
        while True:
            try:
                with self.client() as client:
                    while any(missing.values()) or not self.topics:
                        self._ask(client, missing)
                        if not self.topics:
                            return
                        assert time.perf_counter() < deadline, f"{self.label} does not answer for all partitions"
                    return
            except OSError:
                assert self.process is not None
                assert self.process.poll() is None, f"{self.label} has ended; see {self.log}"
                assert time.perf_counter() < deadline, f"{self.label} does not start"
                time.sleep(POLL_S)

    def _ask(self, client: RawClient, missing: dict[str, set[int]]) -> None:
        for topic, partitions in missing.items():
            asked = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in sorted(partitions)]
            if asked:
                request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)])
                for found in client.request(request, 6).topics[0].partitions:
                    if not found.error_code:
                        partitions.discard(found.partition_index)
        if not missing:
            client.request(ListOffsetsRequest(replica_id=-1, topics=[]), 6)
        elif any(missing.values()):
            time.sleep(POLL_S)


@contextmanager
def servers(labels: list[str]) -> Iterator[list[Server]]:
    keep()
    folder = Path(tempfile.mkdtemp(prefix="ottla-restart-"))
    kafka = ApacheKafka.obtain() if APACHE in labels else None
    made = [Server(label, folder / label.replace(" ", "-"), kafka if label == APACHE else None) for label in labels]
    try:
        yield made
    finally:
        for each in made:
            if each.process is not None:
                each.process.kill()
                each.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def say(server: Server, what: str, took: tuple[float, float], more: str = "") -> None:
    print(f"{server.label:14} {what:16} {took[0]:8.2f} s {took[1]:8.2f} s of CPU{more}", flush=True)


def measure(server: Server, partitions: int, share: float, rounds: int, is_killed: bool) -> None:
    server.start()
    time.sleep(1)
    empty_mb = memory_mb(server.pid)
    server.create(partitions)
    server.write(share)
    for number in range(rounds):
        say(server, "stop", server.end(signal.SIGTERM))
        took = server.start()
        kb = (memory_mb(server.pid) - empty_mb) * 1024 / partitions
        files = len(os.listdir(f"/proc/{server.pid}/fd")) if os.path.exists("/proc") else -1
        say(server, "start", took, f"; {kb:.1f} KB per partition, {files} open files")
        say(server, "stop, idle", server.end(signal.SIGTERM))
        if is_killed:
            server.start()
            server.write(share)
            server.end(signal.SIGKILL)
            say(server, "start, killed", server.start())
        elif number + 1 < rounds:
            server.start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--partitions", type=int, default=6000)
    parser.add_argument("--data", type=float, default=0.1, help="share of the partitions with records")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--no-kill", action="store_true", help="leave out the start after kill -9")
    parser.add_argument("--only", choices=("apache", "ottla"))
    options = parser.parse_args()
    labels = {"apache": [APACHE], "ottla": [OTTLA], None: [APACHE, OTTLA]}[options.only]
    with servers(labels) as both:
        for server in both:
            measure(server, options.partitions, options.data, options.rounds, not options.no_kill)


if __name__ == "__main__":
    main()
