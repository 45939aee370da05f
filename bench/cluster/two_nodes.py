"""The row about one machine used by two nodes. Only when named: `--rows two-nodes`.

One node of Apache Kafka, and `ottla up --nodes 2`, with 1,000 connections that write to 1,000 partitions.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack

from bench.cluster.measures import GIVE_UP_S, PATIENCE, POLL_S
from bench.cluster.nodes import STOP_S
from bench.cluster.rows import Row
from bench.side_by_side.errors import AdminFailed, LoadFailed
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

KEY = "two-nodes"
ROWS: dict[str, Row] = {KEY: ("1,000 connections × 1,000 partitions: one Apache node, two of Ottla", "MB/s", at_least(1.2))}
WARM_UP_S, SATURATED_S = 3, 5


def two_nodes(kafka: ApacheKafka, rounds: int, progress: Progress, samples: Mapping[str, dict[str, list[float]]]) -> None:
    """MB/s of one Apache node and of two Ottla nodes on this machine, loaded in turns; `samples` of each side gets them."""
    allow_open_files(FILES_NEEDED)
    with ExitStack() as stack:
        progress.say(f"{COUNT} partitions and connections on one Apache node and on two of Ottla")
        apache = kafka.start_server(SETTINGS, jvm_flags=SERVER_JVM_FLAGS)
        stack.callback(apache.kill)
        servers = {APACHE: apache.bootstrap, OTTLA: _up(stack, 2)}
        loads = {label: stack.enter_context(_load(label, servers[label])) for label in samples}
        for number in range(rounds + 1):
            for label, load in loads.items():
                answers_per_s = load.saturate(SATURATED_S if number else WARM_UP_S)
                mb_per_s = answers_per_s * RECORDS_PER_BATCH * VALUE_BYTES / 1e6
                if number:
                    samples[label].setdefault(KEY, []).append(mb_per_s)
                    progress.say(f"{label}: {mb_per_s:.0f} MB/s with {COUNT} connections")


def _up(stack: ExitStack, count: int) -> str:
    """Run `ottla up --nodes`; returns the bootstrap servers."""
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-bench-", ignore_cleanup_errors=True))
    command = [*OTTLA_COMMAND, "up", "--nodes", str(count), "--port", "0", "--data", folder, "--json"]
    command += ["--set", "default.replication.factor=1"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    stack.callback(process.wait, STOP_S)
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
        deadline_s = time.monotonic() + GIVE_UP_S
        while True:
            partitions = admin.describe_topics([topic])[topic].partitions
            leaders = {each.partition: each.leader for each in partitions}
            if len(leaders) == COUNT and None not in leaders.values():
                break
            if time.monotonic() > deadline_s:
                raise AdminFailed(f"{label}: not all of {COUNT} partitions have a leader after {GIVE_UP_S} s")
            time.sleep(POLL_S)  # metadata can only be asked for again
        addresses = {node.id: f"{node.host}:{node.port}" for node in admin.describe_cluster().nodes.values()}
    records = frames.batch(RECORDS_PER_BATCH, VALUE_BYTES)
    callers = []
    for partition, leader in leaders.items():
        frame = frames.produce_frame(topic, partition, records)
        assert leader is not None
        connection = frames.connect(addresses[leader])
        frames.write_first(connection, frame, topic)
        callers.append(Caller(connection, frame))
    return Load(callers, frames.produce_check(label, topic))
