"""A group's state, members and assignment, through confluent-kafka's admin client."""

from typing import Any

from confluent_kafka.admin import AdminClient
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S


def describe(bootstrap: str, group: str) -> Any:
    """The description of one group, of either protocol."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    return admin.describe_consumer_groups([group], request_timeout=HANG_S)[group].result()


def await_members_in(bootstrap: str, group: str, members: int, partitions: int) -> None:
    """Return when the group is stable, every one of `members` has a partition, and all `partitions` are assigned."""
    from confluent_kafka import KafkaException

    def is_stable() -> bool:
        try:
            found = describe(bootstrap, group)
        except KafkaException:
            return False  # the group does not exist yet
        shares = [len(member.assignment.topic_partitions) for member in found.members]
        return found.state.name == "STABLE" and len(shares) == members and all(shares) and sum(shares) == partitions

    await_true(is_stable, f"{group} to have {members} members with {partitions} partitions")
