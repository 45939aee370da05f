"""Random groups for the assignors: members with equal and different subscriptions, with what they owned, and with racks.

A case is a dict, and so a line of JSON: the assignor; each node's rack; for each topic the replicas of its partitions; for
each member its id, its group.instance.id and its subscription as JoinGroup carries it.
"""

import random
from collections.abc import Iterator
from typing import Any

from ottla.client_core.group.sticky import write_sticky_user_data
from ottla.ids import TopicPartition
from ottla.wire.consumer_protocol import write
from ottla.wire.messages.consumer_protocol import ConsumerProtocolSubscription, ConsumerProtocolSubscriptionTopicPartition

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
CASES_PER_ASSIGNOR = 350
WORDS = ("orders", "payments", "clicks", "a", "t", "übung", "logs.app", "x_1", "metrics-cpu")
STALE_IN_10, CONTESTED_IN_10 = 2, 1


def cases(seed: int = 43) -> Iterator[dict[str, Any]]:
    """All cases, the same every time."""
    for assignor in ASSIGNORS:
        chance = random.Random(f"{seed} {assignor}")
        for _ in range(CASES_PER_ASSIGNOR):
            yield _case(chance, assignor)


def _case(chance: random.Random, assignor: str) -> dict[str, Any]:
    racks: list[str | None] = [None] * 4
    if chance.random() < 0.5:
        racks = [chance.choice(["east", "west", "north", None if chance.random() < 0.2 else "south"]) for _ in range(4)]
    names = sorted({f"{chance.choice(WORDS)}{chance.choice(['', chance.randrange(30)])}" for _ in range(_size(chance))})
    replicas = chance.choice([1, 2, 4])
    topics = {name: [chance.sample(range(4), replicas) for _ in range(chance.randint(1, 12))] for name in names}
    is_alike = chance.random() < 0.5
    members = [_member_id(chance) for _ in range(_size(chance))]
    subscribed = {
        member: list(names) if is_alike else chance.sample(names, chance.randint(0 if chance.random() < 0.1 else 1, len(names)))
        for member in members
    }
    if not is_alike and chance.random() < 0.2:
        subscribed[members[0]].append("no-such-topic")
    histories = _histories(chance, members, topics, subscribed)
    return {
        "assignor": assignor,
        "racks": racks,
        "topics": topics,
        "members": [
            {
                "id": member,
                "instance": f"instance-{chance.randrange(10**6)}" if chance.random() < 0.2 else None,
                "metadata": _metadata(chance, assignor, subscribed[member], *histories[member], racks).hex(),
            }
            for member in members
        ],
    }


def _size(chance: random.Random) -> int:
    """Small, and now and then more than a Java hash table holds before it grows."""
    return chance.randint(1, 6) if chance.random() < 0.8 else chance.randint(7, 30)


def _member_id(chance: random.Random) -> str:
    return f"{chance.choice(['consumer-g-1', 'app', 'ключ'])}-{chance.getrandbits(64):016x}"


History = tuple[list[TopicPartition], int]


def _histories(
    chance: random.Random, members: list[str], topics: dict[str, list[list[int]]], subscribed: dict[str, list[str]]
) -> dict[str, History]:
    """What each member owned: nothing, a fair share, or a lopsided one; now and then stale, or claimed twice."""
    histories: dict[str, History] = {member: ([], 7) for member in members}
    kind = chance.choice(["none", "fair", "lopsided", "some"])
    every = [TopicPartition(name, index) for name, partitions in topics.items() for index in range(len(partitions))]
    chance.shuffle(every)
    owners = members if kind != "some" else chance.sample(members, chance.randint(1, len(members)))
    for turn, partition in enumerate(every if kind != "none" else []):
        wanting = [member for member in owners if partition.topic in subscribed[member] or chance.random() < 0.05]
        if not wanting or chance.random() < 0.1:
            continue
        owner = wanting[0] if kind == "lopsided" and chance.random() < 0.6 else wanting[turn % len(wanting)]
        histories[owner][0].append(partition)
        if chance.random() * 10 < CONTESTED_IN_10 and chance.random() < 0.3:
            histories[chance.choice(members)][0].append(partition)
    if chance.random() * 10 < 2 * STALE_IN_10:
        for member in chance.sample(members, chance.randint(1, len(members))):
            histories[member] = histories[member][0], chance.choice([6, 5, -1])
    return {member: (list(dict.fromkeys(owned)), generation) for member, (owned, generation) in histories.items()}


def _metadata(
    chance: random.Random,
    assignor: str,
    topics: list[str],
    owned: list[TopicPartition],
    generation: int,
    racks: list[str | None],
) -> bytes:
    user_data, by_topic = None, dict[str, list[int]]()
    if assignor == "sticky":
        user_data = write_sticky_user_data(owned, generation) if owned else None
    elif assignor == "cooperative-sticky":
        user_data = generation.to_bytes(4, "big", signed=True) if chance.random() < 0.8 else None
        for partition in sorted(owned):
            by_topic.setdefault(partition.topic, []).append(partition.partition)
    known = [rack for rack in racks if rack]
    subscription = ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=[
            ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=found) for topic, found in by_topic.items()
        ],
        generation_id=generation,
        rack_id=chance.choice([*known, *known, "elsewhere", None]) if known else None,
    )
    return write(subscription, chance.choice([3, 3, 3, 2, 1]))
