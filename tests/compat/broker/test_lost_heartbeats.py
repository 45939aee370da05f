"""A consumer group member that acts on a revoked assignment: the next response corrects or fences it.

The member joins and is assigned all partitions. Before it takes them it changes its subscription, with an empty list of owned
partitions: that declines them. The response is lost, the member takes the partitions after all, and reports them as owned.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from tests.support.servers.ottla_server import StartServer
from tests.support.sweep.consumer_groups import FOUR, JOIN, SETTINGS, ConsumerGroupSweep

from ottla.errors.codes import ErrorCode

ALL_FOUR = {FOUR: [0, 1, 2, 3]}
NO_TOPICS = JOIN | {"subscribed_topic_names": []}
INTERVAL = "group.consumer.assignment.interval.ms"
LONG_MS = 600_000


@contextmanager
def group(start_server: StartServer, **settings: Any) -> Iterator[ConsumerGroupSweep]:
    with start_server(SETTINGS | settings) as server, closing(ConsumerGroupSweep(server.bootstrap)) as sweep:
        sweep.begin()
        sweep.group_id, sweep.version = "lost", 1
        yield sweep


def assigned(reply: Any) -> tuple[int, int, list[int] | None]:
    """Error, epoch and the partitions of the only topic."""
    if reply.assignment is None:
        return reply.error_code, reply.member_epoch, None
    partitions = [index for topic in reply.assignment.topic_partitions for index in topic.partitions]
    return reply.error_code, reply.member_epoch, sorted(partitions)


def test_member_is_corrected_while_its_epoch_stays(start_server: StartServer) -> None:
    # The next target is computed after the interval: until then the epoch stays, and nothing fences the member.
    with group(start_server, **{INTERVAL: LONG_MS, "group.consumer.max.assignment.interval.ms": LONG_MS}) as lost:
        assert assigned(lost.beat("m1", 0, {}, **JOIN)) == (0, 2, [0, 1, 2, 3])
        assert assigned(lost.beat("m1", 2, {}, **NO_TOPICS)) == (0, 2, [])
        assert assigned(lost.beat("m1", 2, ALL_FOUR, **NO_TOPICS)) == (0, 2, [])


def test_member_is_fenced_once_its_epoch_has_changed(start_server: StartServer) -> None:
    with group(start_server) as lost:
        assert assigned(lost.beat("m1", 0, {}, **JOIN)) == (0, 2, [0, 1, 2, 3])
        assert assigned(lost.beat("m1", 2, {}, **NO_TOPICS)) == (0, 3, [])
        assert assigned(lost.beat("m2", 0, {}, **JOIN)) == (0, 4, [0, 1, 2, 3])
        assert lost.beat("m1", 2, ALL_FOUR, **NO_TOPICS).error_code == ErrorCode.FENCED_MEMBER_EPOCH
        assert assigned(lost.beat("m2", 4)) == (0, 4, None)
