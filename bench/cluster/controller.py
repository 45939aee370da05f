"""The rows about the controller with many partitions, and about one machine used by two nodes. Only when named: they are long.

`--rows many --partitions N`: N partitions, factor 1, topics of 1,000, on three nodes: creation, failover, start, idle CPU.
`--rows two-nodes`: one node of Apache Kafka, and `ottla up --nodes 2`, with 1,000 connections that write to 1,000 partitions.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from bench.cluster.measures import GIVE_UP_S, PATIENT, controller_failover, wait_for_all
from bench.cluster.nodes import ThreeNodes
from bench.cluster.rows import Row
from bench.side_by_side.errors import LoadFailed
from bench.side_by_side.figures import APACHE, OTTLA, at_least
from bench.side_by_side.loads import frames
from bench.side_by_side.loads.probe import Caller, Load
from bench.side_by_side.many import COUNT, FILES_NEEDED, RECORDS_PER_BATCH, VALUE_BYTES, allow_open_files
from bench.side_by_side.progress import Progress
from bench.side_by_side.sides import SETTINGS
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import SERVER_JVM_FLAGS
from tests.support.servers.ottla_server import OTTLA as OTTLA_COMMAND

from ottla import Admin, NewTopic

CREATION, FAILOVER, START, IDLE = "many:creation", "many:failover", "many:start", "many:idle"
TWO_NODES = "two-nodes"
PER_TOPIC = 1000
FILES_PER_PARTITION = 4
SETTLE_S, IDLE_S = 10, 15
WARM_UP_S, SATURATED_S = 3, 5
PATIENCE = {"request_timeout_ms": 300_000, "default_api_timeout_ms": 600_000, **PATIENT}


def table(partitions: int) -> dict[str, Row]:
    """Key → text, unit and goal of every row."""
    what = f"three nodes, {partitions:,} partitions"
    return {
        CREATION: (f"{what}: created", "partitions/s", None),
        FAILOVER: (f"{what}: kill -9 of the controller to the next one's first topic", "ms", None),
        START: (f"{what}: start until all have leaders", "ms", None),
        IDLE: (f"{what}: idle CPU", "% of a core", None),
        TWO_NODES: ("1,000 connections × 1,000 partitions: one Apache node, two of Ottla", "MB/s", at_least(1.2)),
    }


# -- many partitions


def many_partitions(label: str, kafka: ApacheKafka, count: int, failovers: int, progress: Progress) -> dict[str, list[float]]:
    """The samples of one new cluster with `count` partitions."""
    allow_open_files(count * FILES_PER_PARTITION)
    with ThreeNodes(label, kafka, Path(tempfile.mkdtemp(prefix="ottla-bench-"))) as nodes:
        nodes.start()
        wait_for_all(nodes)
        began_s, began_cpu_s = time.perf_counter(), nodes.cpu_seconds()
        with Admin(nodes.bootstrap, **PATIENCE) as admin:
            for number in range(count // PER_TOPIC):
                admin.create_topics({f"many-{number}": PER_TOPIC}).raise_first()
        wait_for_leaders(nodes, count)
        took_s = time.perf_counter() - began_s
        cpu_s = nodes.cpu_seconds() - began_cpu_s
        progress.say(f"{label}: {count:,} partitions in {took_s:.1f} s, {cpu_s:.1f} s of CPU, {nodes.memory_mb():,.0f} MB")
        taken = {CREATION: [count / took_s], FAILOVER: list[float](), START: list[float](), IDLE: [idle_percent(nodes)]}
        progress.say(f"{label}: idle, {taken[IDLE][0]:.1f} % of a core")
        for number in range(failovers):
            taken[FAILOVER].append(controller_failover(nodes, number) * 1000)
            progress.say(f"{label}: a new controller after {taken[FAILOVER][-1]:,.0f} ms")
        nodes.stop()
        began_s = time.perf_counter()
        nodes.start()
        wait_for_leaders(nodes, count)
        taken[START].append((time.perf_counter() - began_s) * 1000)
        progress.say(f"{label}: started in {taken[START][0]:,.0f} ms, {nodes.cpu_seconds():.1f} s of CPU")
    return taken


def wait_for_leaders(nodes: ThreeNodes, count: int) -> None:
    """Wait until the last broker says that every partition has a leader, and all brokers are there."""
    names = [f"many-{number}" for number in range(count // PER_TOPIC)]
    deadline_s = time.monotonic() + 5 * GIVE_UP_S
    wait_for_all(nodes)
    for address in nodes.bootstrap:
        with Admin(address, **PATIENCE) as admin:
            while True:
                nodes.check()
                described = admin.describe_topics(names)
                led = [
                    part for topic in described.values_found.values() for part in topic.partitions if part.leader is not None
                ]
                if len(led) == count:
                    break
                if time.monotonic() > deadline_s:
                    raise TimeoutError(f"{nodes.label}: {len(led)} of {count} partitions have a leader")
                time.sleep(0.1)


def idle_percent(nodes: ThreeNodes) -> float:
    """CPU time of all three nodes while nobody asks them anything, in percent of one core."""
    time.sleep(SETTLE_S)
    before_s = nodes.cpu_seconds()
    time.sleep(IDLE_S)
    return (nodes.cpu_seconds() - before_s) / IDLE_S * 100


# -- one machine


def two_nodes(kafka: ApacheKafka, rounds: int, progress: Progress) -> Mapping[str, list[float]]:
    """MB/s of one Apache node and of two Ottla nodes on this machine, loaded in turns."""
    allow_open_files(FILES_NEEDED)
    rates: dict[str, list[float]] = {APACHE: [], OTTLA: []}
    with ExitStack() as stack:
        apache = kafka.start_server(SETTINGS, jvm_flags=SERVER_JVM_FLAGS)
        stack.callback(apache.kill)
        servers = {APACHE: apache.bootstrap, OTTLA: _up(stack, 2)}
        loads = {label: stack.enter_context(_load(label, servers[label])) for label in rates}
        for number in range(rounds + 1):
            for label, load in loads.items():
                answers_per_s = load.saturate(SATURATED_S if number else WARM_UP_S)
                mb_per_s = answers_per_s * RECORDS_PER_BATCH * VALUE_BYTES / 1e6
                if number:
                    rates[label].append(mb_per_s)
                    progress.say(f"{label}: {mb_per_s:.0f} MB/s with {COUNT} connections")
    return rates


def _up(stack: ExitStack, count: int) -> str:
    """Run `ottla up --nodes`; returns the bootstrap servers."""
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-bench-", ignore_cleanup_errors=True))
    command = [*OTTLA_COMMAND, "up", "--nodes", str(count), "--port", "0", "--data", folder, "--json"]
    command += ["--set", "default.replication.factor=1"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise LoadFailed(f"ottla up --nodes {count} ended with {process.wait()}")
    return str(json.loads(line)["bootstrap_servers"])


def _load(label: str, servers: str) -> Load:
    """A topic of 1,000 partitions with one replica each, and a connection for each, to its leader."""
    topic = "many"
    with Admin(servers, **PATIENCE) as admin:
        admin.create_topics([NewTopic(topic, COUNT, replication_factor=1)]).raise_first()
        while True:
            partitions = admin.describe_topics([topic])[topic].partitions
            leaders = {each.partition: each.leader for each in partitions}
            if len(leaders) == COUNT and None not in leaders.values():
                break
            time.sleep(0.05)
        addresses = {node.id: f"{node.host}:{node.port}" for node in admin.describe_cluster().nodes}
    records = frames.batch(RECORDS_PER_BATCH, VALUE_BYTES)
    callers = []
    for partition, leader in leaders.items():
        frame = frames.produce_frame(topic, partition, records)
        assert leader is not None
        connection = frames.connect(addresses[leader])
        frames.write_first(connection, frame, topic)
        callers.append(Caller(connection, frame))
    return Load(callers, frames.produce_check(label, topic))
