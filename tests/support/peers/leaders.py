"""Who leads a topic's partitions, and waiting until that is as a test wants it. Asks with Ottla's synchronous Admin."""

from contextlib import suppress
from functools import partial

from tests.support.peers.topics import await_true, describe_topic
from tests.support.servers.kafka_server import HANG_S

from ottla import Admin
from ottla.client.admin.topics import NewTopic
from ottla.errors import ElectionNotNeededError, KafkaError, PreferredLeaderNotAvailableError, TopicExistsError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition


def make_replicated(
    admin: Admin, topic: str, assignment: dict[int, list[int]], configs: dict[str, object] | None = None
) -> None:
    """Create a topic whose partitions have these replicas, the preferred leader first, and wait until all are in sync."""
    with suppress(TopicExistsError):  # the client asked again: on a busy machine the first answer was late
        admin.create_topics([NewTopic(topic, replicas=assignment, configs=configs)]).raise_first()
    await_in_sync(admin, topic)


def leaders(admin: Admin, topic: str) -> dict[int, int | None]:
    """The leaders of a topic's partitions."""
    found = admin.describe_topics([topic])[topic]
    return {each.partition: each.leader for each in found.partitions}


def states(admin: Admin, topic: str) -> dict[int, tuple[int | None, frozenset[int]]]:
    """Leader and in-sync replicas of a topic's partitions."""
    return {each.partition: (each.leader, frozenset(each.isr)) for each in admin.describe_topics([topic])[topic].partitions}


def in_sync(admin: Admin, topic: str) -> dict[int, set[int]]:
    """The in-sync replicas of a topic's partitions."""
    return {each.partition: set(each.isr) for each in admin.describe_topics([topic])[topic].partitions}


def await_in_sync(admin: Admin, topic: str, timeout_s: float = HANG_S) -> None:
    """Wait until every replica of every partition is in sync."""

    def is_so() -> bool:
        try:
            found = admin.describe_topics([topic])[topic]
        except KafkaError:
            return False
        return all(set(each.isr) == set(each.replicas) for each in found.partitions)

    await_true(is_so, f"all replicas of {topic} to be in sync", timeout_s)


def await_known(admin: Admin, topic: str) -> None:
    """Wait until every broker knows a topic, also those that were not asked to create it."""

    def knows(address: str) -> bool:
        return describe_topic(address, topic).error_code == ErrorCode.NONE

    for node in admin.describe_cluster().nodes.values():
        await_true(partial(knows, f"{node.host}:{node.port}"), f"node {node.id} to know {topic}")


def await_leader(admin: Admin, topic: str, partition: int, node: int | None) -> None:
    """Wait until a partition is led by `node`."""
    await_true(lambda: leaders(admin, topic).get(partition) == node, f"{topic}-{partition} to be led by {node}")


def lead(admin: Admin, topic: str, partition: int, node: int) -> None:
    """Make a replica the leader: by a new order of the replicas, and a preferred election."""
    found = admin.describe_topics([topic])[topic].partitions[partition]
    order = [node, *(each for each in found.replicas if each != node)]
    admin.alter_partition_reassignments({TopicPartition(topic, partition): order}).raise_first()
    await_true(lambda: admin.list_partition_reassignments([(topic, partition)]) == {}, "the new order of replicas")

    def is_so() -> bool:
        """Elect until it is so: a node that was paused may have told old leaders and replicas that are in sync no more."""
        if leaders(admin, topic)[partition] == node:
            return True
        with suppress(PreferredLeaderNotAvailableError, ElectionNotNeededError):
            admin.elect_leaders("preferred", [(topic, partition)]).raise_first()
        return False

    await_true(is_so, f"{topic}-{partition} to be led by {node}")
