"""What is measured of a cluster of three nodes. Both sides are asked by the same client, Ottla's, with short backoffs."""

import time

from bench.cluster.nodes import NODES, ThreeNodes

from ottla import Admin, Producer
from ottla.errors import KafkaError

GIVE_UP_S = 120
PATIENT = {"retry_backoff_ms": 10, "retry_backoff_max_ms": 20, "reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 20}
PATIENCE = {"request_timeout_ms": 300_000, "default_api_timeout_ms": 600_000, **PATIENT}
"""For requests about thousands of partitions."""
POLL_S = 0.01
"""Between two questions. Answers are not awaited by other means: the servers are asked as their users ask them."""
SETTLE_S = 3
"""A cluster that has started is idle after this long."""


def start_to_first_record(nodes: ThreeNodes) -> float:
    """Seconds from the start of three processes to the first record that is acknowledged, in a topic made for it."""
    began = time.perf_counter()
    nodes.start()
    with Producer(nodes.bootstrap, delivery_timeout_ms=GIVE_UP_S * 1000, max_block_ms=GIVE_UP_S * 1000, **PATIENT) as producer:
        producer.send("first", b"record").result(GIVE_UP_S)
    nodes.check()
    return time.perf_counter() - began


def wait_for_all(nodes: ThreeNodes) -> None:
    """Wait until all brokers are in the cluster and all voters follow."""
    deadline_s = time.monotonic() + GIVE_UP_S
    with Admin(nodes.bootstrap, **PATIENT) as admin:
        while True:
            nodes.check()
            try:
                quorum = admin.describe_metadata_quorum()
                follow = [each for each in quorum.voters if each.log_end_offset >= quorum.high_watermark]
                if len(admin.describe_cluster().nodes) == len(follow) == len(NODES):
                    return
            except KafkaError as error:
                if time.monotonic() > deadline_s:
                    raise TimeoutError(f"{nodes.label}: {error}") from error
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{nodes.label}: not all nodes are back after {GIVE_UP_S} s")
            time.sleep(5 * POLL_S)  # metadata can only be asked for again


def controller_failover(nodes: ThreeNodes, number: int) -> float:
    """Seconds from kill -9 of the active controller until another one has created a topic. The node is back on return."""
    with Admin(nodes.bootstrap, **PATIENT) as admin:
        old = admin.describe_metadata_quorum().leader_id
    others = [address for node, address in nodes.servers.items() if node != old]
    with Admin(others, request_timeout_ms=GIVE_UP_S * 1000, default_api_timeout_ms=GIVE_UP_S * 1000, **PATIENT) as admin:
        admin.describe_cluster()  # connected
        nodes.kill(old)
        began = time.perf_counter()
        admin.create_topics({f"failover-{number}": 1}).raise_first()
        took_s = time.perf_counter() - began
    nodes.start([old])
    wait_for_all(nodes)
    return took_s


def not_the_controller(nodes: ThreeNodes) -> int:
    """A node that is not the active controller's."""
    with Admin(nodes.bootstrap, **PATIENT) as admin:
        controller = admin.describe_metadata_quorum().leader_id
    return next(node for node in NODES if node != controller)


def idle_memory_mb(nodes: ThreeNodes) -> float:
    """Resident memory of all three nodes a while after their start."""
    time.sleep(SETTLE_S)
    return nodes.memory_mb()
