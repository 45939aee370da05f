"""The rows about a cluster with many partitions. They are long, so only when named:
`--rows many --partitions N --replicas 1,3`.

N partitions in topics of 1,000 on three nodes: creation, idle CPU, memory, kill -9 of the controller and, with three
replicas, of another node; a stop of all nodes, and their start.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.cluster.measures import (
    GIVE_UP_S,
    PATIENCE,
    controller_failover,
    wait_for_all,
)
from bench.cluster.nodes import ThreeNodes
from bench.cluster.rows import Row
from bench.side_by_side.errors import AdminFailed
from bench.side_by_side.figures import at_most
from bench.side_by_side.many import allow_open_files
from bench.side_by_side.progress import Progress
from tests.support.servers.apache_kafka import ApacheKafka

from ottla import Admin, NewTopic
from ottla.errors import TopicExistsError

PER_TOPIC = 1000
"""Both controllers refuse a request that creates much more at once."""
FILES_PER_PARTITION = 4
SETTLE_S, IDLE_S = 10, 15
"""What a server does after a creation or a start (elections, snapshots, compiled code) is over after `SETTLE_S`."""
LOOK_S = 0.2
"""Between two questions about all partitions, which cost the servers CPU themselves."""


def table(partitions: int) -> dict[str, Row]:
    """Key → text, unit and goal of every row."""
    rows: dict[str, Row] = {}
    for replicas in (1, 3):
        what = f"three nodes, {partitions:,} partitions × {replicas} replica{'' if replicas == 1 else 's'}"
        part = f"many:r{replicas}"
        rows |= {
            f"{part}-creation": (f"{what}: created", "partitions/s", None),
            f"{part}-idle": (f"{what}: idle CPU", "% of a core", at_most(1.0)),
            f"{part}-memory": (f"{what}: memory of the three nodes", "MB", at_most(0.5)),
            f"{part}-failover": (f"{what}: kill -9 of the controller to the next one's first topic", "ms", at_most(1.0)),
            f"{part}-leaders": (f"{what}: kill -9 of a node until all have leaders", "ms", at_most(1.0)),
            f"{part}-start": (f"{what}: start until all have leaders", "ms", None),
        }
    return rows


def many_partitions(
    label: str,
    kafka: ApacheKafka,
    count: int,
    replicas: int,
    failovers: int,
    progress: Progress,
    taken: dict[str, list[float]],
) -> None:
    """Measure one new cluster with `count` partitions; `taken` gets the samples."""

    def take(row: str, value: float, more: str = "") -> None:
        taken.setdefault(f"many:r{replicas}-{row}", []).append(value)
        progress.say(f"{label}, {count:,} partitions × {replicas}, {row}: {value:,.1f}{more}")

    allow_open_files(count * FILES_PER_PARTITION)
    with ThreeNodes(label, kafka, Path(tempfile.mkdtemp(prefix="ottla-bench-"))) as nodes:
        nodes.start()
        wait_for_all(nodes)
        progress.say(f"{label}: creating {count:,} partitions × {replicas}")
        began_s, began_cpu_s = time.perf_counter(), nodes.cpu_seconds()
        topics = _create(nodes, count, replicas, progress)
        wait_for_leaders(nodes, topics, count, replicas)
        took_s = time.perf_counter() - began_s
        take("creation", count / took_s, f" in {took_s:.1f} s, {nodes.cpu_seconds() - began_cpu_s:.1f} s of CPU")
        take("idle", idle_percent(nodes))
        take("memory", nodes.memory_mb())
        for number in range(failovers):
            take("failover", controller_failover(nodes, number) * 1000)
        if replicas > 1:
            wait_for_leaders(nodes, topics, count, replicas)  # the node that was killed is in sync again
            take("leaders", _until_all_are_led(nodes, topics) * 1000)
        progress.say(f"{label}: stopping")
        nodes.stop()
        began_s = time.perf_counter()
        nodes.start()
        wait_for_leaders(nodes, topics, count, 1)
        take("start", (time.perf_counter() - began_s) * 1000, f", {nodes.cpu_seconds():.1f} s of CPU")


def _create(nodes: ThreeNodes, count: int, replicas: int, progress: Progress) -> list[str]:
    topics = []
    with Admin(nodes.bootstrap, **PATIENCE) as admin:
        for first in range(0, count, PER_TOPIC):
            topics.append(f"many-{first}")
            try:
                admin.create_topics([NewTopic(topics[-1], min(PER_TOPIC, count - first), replicas)]).raise_first()
            except TopicExistsError:
                progress.say(f"{nodes.label}: the controller changed while {topics[-1]} was created")
    return topics


def wait_for_leaders(nodes: ThreeNodes, topics: Sequence[str], count: int, in_sync: int) -> None:
    """Wait until every broker says that each partition has a leader and `in_sync` replicas in sync."""
    deadline_s = time.monotonic() + 5 * GIVE_UP_S
    wait_for_all(nodes)
    for address in nodes.bootstrap:
        with Admin(address, **PATIENCE) as admin:
            while True:
                nodes.check()
                described = admin.describe_topics(topics).values_found.values()
                led = sum(
                    part.leader is not None and len(part.isr) >= in_sync for topic in described for part in topic.partitions
                )
                if led == count:
                    break
                if time.monotonic() > deadline_s:
                    raise AdminFailed(f"{nodes.label}: {led} of {count} partitions have a leader and {in_sync} in sync")
                time.sleep(LOOK_S)  # metadata can only be asked for again


def _until_all_are_led(nodes: ThreeNodes, topics: Sequence[str]) -> float:
    """Seconds from kill -9 of a node, not the controller's, until all its partitions have leaders. It is back on return."""
    victim = _leads_most(nodes, topics)
    others = [address for node, address in nodes.servers.items() if node != victim]
    with Admin(others, **PATIENCE) as admin:
        admin.describe_cluster()  # connected
        nodes.kill(victim)
        began_s = time.perf_counter()
        while any(
            each.leader in (None, victim) for topic in admin.describe_topics(topics).values() for each in topic.partitions
        ):
            nodes.check()
            if time.perf_counter() - began_s > GIVE_UP_S:
                raise AdminFailed(f"{nodes.label}: partitions without a leader {GIVE_UP_S} s after the end of node {victim}")
            time.sleep(LOOK_S)  # metadata can only be asked for again
        took_s = time.perf_counter() - began_s
    nodes.start([victim])
    wait_for_all(nodes)
    return took_s


def _leads_most(nodes: ThreeNodes, topics: Sequence[str]) -> int:
    """The node, not the controller's, that leads the most partitions: one that has just come back leads none."""
    with Admin(nodes.bootstrap, **PATIENCE) as admin:
        controller = admin.describe_metadata_quorum().leader_id
        led = Counter(each.leader for topic in admin.describe_topics(topics).values() for each in topic.partitions)
    return max((node for node in nodes.servers if node != controller), key=lambda node: led[node])


def idle_percent(nodes: ThreeNodes) -> float:
    """CPU time of all three nodes while nobody asks them anything, in percent of one core."""
    time.sleep(SETTLE_S)  # what the creation left to do is not idle time
    before_s, began_s = nodes.cpu_seconds(), time.perf_counter()
    time.sleep(IDLE_S)  # the time that is measured
    return (nodes.cpu_seconds() - before_s) / (time.perf_counter() - began_s) * 100
