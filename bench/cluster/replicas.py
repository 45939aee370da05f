"""Loads on replicated topics of three nodes: throughput with its CPU, latency at a fixed rate, leaders killed, idle partitions.

Throughput comes from Kafka's own ProducerPerformance. Everything else is asked by the same Python code on both sides.
"""

import time

from bench.cluster.measures import GIVE_UP_S, PATIENT, POLL_S, not_the_controller, wait_for_all
from bench.cluster.nodes import NODES, ThreeNodes
from bench.cluster.rows import PARTITIONS, Load
from bench.side_by_side.errors import AdminFailed, LoadFailed
from bench.side_by_side.loads import frames
from bench.side_by_side.produce import TOOL, parse_rate
from bench.side_by_side.sides import CLIENT_JVM_FLAGS, run_program
from tests.support.servers.apache_kafka import ApacheKafka

from ottla import Admin, NewTopic, Producer
from ottla.errors.codes import ErrorCode

WARM_UP = Load("warm-up", "1 KB", 1000, 300_000, 100_000)
LATENCY_REQUESTS, LATENCY_REQUESTS_QUICK, LATENCY_WARM_UP = 3000, 600, 300
RATE_PER_S = 200
IDLE_S, IDLE_QUICK_S = 20, 5
PARTITIONS_PER_TOPIC = 1000
"""Both controllers refuse a request that creates much more at once."""


def create_topic(nodes: ThreeNodes, name: str, partitions: int, replicas: int) -> dict[int, str]:
    """Create a topic, wait until all its replicas are in sync; returns the address of each partition's leader."""
    deadline_s = time.monotonic() + GIVE_UP_S
    with Admin(nodes.bootstrap, default_api_timeout_ms=GIVE_UP_S * 1000, request_timeout_ms=GIVE_UP_S * 1000) as admin:
        for error in admin.create_topics([NewTopic(name, partitions, replicas)]).errors.values():
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # a busy controller's first answer came too late
                raise error
        while True:
            nodes.check()
            known = admin.describe_topics([name])
            found = () if known.errors else known[name].partitions
            if sum(each.leader is not None and len(each.isr) == replicas for each in found) == partitions:
                return {each.partition: nodes.servers[each.leader] for each in found if each.leader is not None}
            if time.monotonic() > deadline_s:
                raise AdminFailed(f"{nodes.label}: {name} has not all leaders and replicas after {GIVE_UP_S} s")
            time.sleep(POLL_S)


def delete_topic(nodes: ThreeNodes, name: str) -> None:
    """Delete a topic, and wait until its files are gone from all nodes."""
    with Admin(nodes.bootstrap) as admin:
        admin.delete_topics([name]).raise_first()
    deadline_s = time.monotonic() + GIVE_UP_S
    while nodes.has_files_of(name):
        if time.monotonic() > deadline_s:
            raise AdminFailed(f"{nodes.label}: there are files of {name} {GIVE_UP_S} s after its deletion")
        time.sleep(POLL_S)


def produce(nodes: ThreeNodes, kafka: ApacheKafka, load: Load, replicas: int, records: int) -> tuple[float, float]:
    """MB/s, and CPU seconds of all nodes per GB of values, of one run of Kafka's tool."""
    topic = f"produce-{load.part}-{replicas}"
    create_topic(nodes, topic, PARTITIONS, replicas)
    arguments: list[object] = ["--topic", topic, "--num-records", records, "--record-size", load.record_bytes]
    arguments += ["--throughput", -1, "--command-property", f"bootstrap.servers={','.join(nodes.bootstrap)}", "acks=all"]
    before_s = nodes.cpu_seconds()
    output = run_program(
        [*kafka.jvm(CLIENT_JVM_FLAGS), "-cp", kafka.classpath, TOOL, *map(str, arguments)], "ProducerPerformance", 900
    )
    spent_s = nodes.cpu_seconds() - before_s
    nodes.check()
    if "Exception" in output:
        raise LoadFailed(f"ProducerPerformance could not write all records to {nodes.label}:\n{output[-2000:]}")
    delete_topic(nodes, topic)
    return parse_rate(output), spent_s / (records * load.record_bytes / 1e9)


def latencies(nodes: ThreeNodes, requests: int) -> tuple[float, float]:
    """p50 and p99 in ms of produce requests with one record of 1 KB, sent at a fixed rate to the leaders in turn.

    The time of a request runs from when it was due: one that waits for its predecessor counts with its wait.
    """
    topic = "latency"
    leaders = create_topic(nodes, topic, len(NODES), len(NODES))
    records = frames.batch(1, 1000)
    connections = [frames.connect(leaders[index]) for index in range(len(NODES))]
    asked = [frames.produce_frame(topic, index, records) for index in range(len(NODES))]
    check, taken_ms = frames.produce_check(nodes.label, topic), []
    try:
        for connection, frame in zip(connections, asked, strict=True):
            frames.write_first(connection, frame, topic)
        began_s = time.perf_counter()
        for number in range(requests + LATENCY_WARM_UP):
            due_s = began_s + number / RATE_PER_S
            time.sleep(max(0.0, due_s - time.perf_counter()))  # the fixed rate
            where = number % len(connections)
            frames.pipeline(connections[where], [asked[where]], 1, 1 << 10, check)
            taken_ms.append((time.perf_counter() - due_s) * 1000)
    finally:
        for connection in connections:
            connection.close()
    delete_topic(nodes, topic)
    taken_ms = sorted(taken_ms[LATENCY_WARM_UP:])
    return taken_ms[len(taken_ms) // 2], taken_ms[len(taken_ms) * 99 // 100]


def leader_failover(nodes: ThreeNodes, number: int) -> float:
    """Seconds from kill -9 of a partition's leader, which is not the controller, until a record on it is acknowledged by all.

    The node is back, and in sync, on return.
    """
    topic = f"leader-{number}"
    leaders = create_topic(nodes, topic, len(NODES), len(NODES))
    victim = not_the_controller(nodes)
    partition = next(index for index, address in leaders.items() if address == nodes.servers[victim])
    patient = {"delivery_timeout_ms": GIVE_UP_S * 1000, "request_timeout_ms": 2000, **PATIENT}
    with Producer(nodes.bootstrap, acks="all", **patient) as sends:
        sends.send(topic, b"before", partition=partition).result(GIVE_UP_S)
        nodes.kill(victim)
        began_s = time.perf_counter()
        sends.send(topic, b"after", partition=partition).result(GIVE_UP_S)
        took_s = time.perf_counter() - began_s
    nodes.start([victim])
    wait_for_all(nodes)
    delete_topic(nodes, topic)
    return took_s


def idle_partitions(nodes: ThreeNodes, count: int, idle_s: float) -> tuple[float, float, float]:
    """With `count` partitions of three replicas: CPU in percent of a core, memory in MB, and ms from kill -9 of a node until
    every partition has a leader on another one."""
    topics = []
    for first in range(0, count, PARTITIONS_PER_TOPIC):
        topics.append(f"idle-{first}")
        create_topic(nodes, topics[-1], min(PARTITIONS_PER_TOPIC, count - first), len(NODES))
    time.sleep(idle_s / 2)  # until elections, snapshots and compiled code of the creation are done
    before_s, began_s = nodes.cpu_seconds(), time.perf_counter()
    time.sleep(idle_s)
    cpu_percent = (nodes.cpu_seconds() - before_s) / (time.perf_counter() - began_s) * 100
    memory_mb = nodes.memory_mb()
    victim = not_the_controller(nodes)
    others = [address for node, address in nodes.servers.items() if node != victim]
    with Admin(others, default_api_timeout_ms=GIVE_UP_S * 1000, request_timeout_ms=GIVE_UP_S * 1000) as admin:
        admin.describe_cluster()  # connected
        nodes.kill(victim)
        began_s = time.perf_counter()
        while any(
            each.leader in (None, victim) for topic in admin.describe_topics(topics).values() for each in topic.partitions
        ):
            if time.perf_counter() - began_s > GIVE_UP_S:
                raise AdminFailed(f"{nodes.label}: partitions without a leader {GIVE_UP_S} s after the end of node {victim}")
            nodes.check()
            time.sleep(POLL_S)
        return cpu_percent, memory_mb, (time.perf_counter() - began_s) * 1000
