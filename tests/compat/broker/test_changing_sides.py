"""Members of the consumer protocol that rejoin with the classic protocol: whether their group changes its type."""

from collections.abc import Iterator

import pytest
from tests.support.peers.group_requests import GroupRequests
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import KafkaServer

from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.list_groups import ListGroupsRequest

GENERATION = 2
"""The member epoch after joining a new group. A classic member gets it as its generation."""


class Member:
    """One member that can speak either protocol."""

    def __init__(self, requests: GroupRequests, name: str) -> None:
        self._requests, self._name = requests, name

    def join(self, member_id: str, instance_id: str | None = None) -> int:
        request = ConsumerGroupHeartbeatRequest(group_id=self._name, member_id=member_id, instance_id=instance_id)
        request.rebalance_timeout_ms, request.topic_partitions, request.subscribed_topic_names = 60_000, [], [self._name]
        return int(self._requests.ask(request, 1).error_code)

    def join_as_classic(self, member_id: str, instance_id: str | None = None) -> tuple[int, int]:
        """Error code and generation."""
        topic = self._name.encode()
        subscription = b"\0\0\0\0\0\1" + len(topic).to_bytes(2, "big") + topic + b"\xff\xff\xff\xff"
        request = JoinGroupRequest(group_id=self._name, member_id=member_id, group_instance_id=instance_id)
        request.session_timeout_ms = request.rebalance_timeout_ms = 60_000
        request.protocol_type = "consumer"
        request.protocols = [JoinGroupRequestProtocol(name="range", metadata=subscription)]
        answer = self._requests.ask(request, 9)
        return answer.error_code, answer.generation_id

    def heartbeat(self, member_id: str) -> int:
        request = HeartbeatRequest(group_id=self._name, generation_id=GENERATION, member_id=member_id)
        return int(self._requests.ask(request, 4).error_code)

    def group_type(self) -> str:
        groups = self._requests.ask(ListGroupsRequest(), 5).groups
        return next(group.group_type for group in groups if group.group_id == self._name)


@pytest.fixture
def member(cluster: KafkaServer, topic: str) -> Iterator[Member]:
    make_topic(cluster.bootstrap, topic, 4)
    with GroupRequests(cluster.bootstrap) as requests:
        yield Member(requests, topic)


def test_group_keeps_its_type_when_dynamic_members_rejoin_as_classic(member: Member) -> None:
    assert [member.join("m1"), member.join("m2")] == [0, 0]
    assert member.join_as_classic("m1") == (0, GENERATION)
    assert member.join_as_classic("m2") == (0, GENERATION)
    assert member.group_type() == "consumer"
    assert member.heartbeat("m1") == 0
    assert member.join("m1") == 0, "and back again"
    assert member.group_type() == "consumer"


@pytest.mark.parametrize("member_id", ["m", ""], ids=["same id", "new id"])
def test_group_becomes_classic_when_its_last_static_member_does(member: Member, member_id: str) -> None:
    assert member.join("m", "i") == 0
    assert member.join_as_classic(member_id, "i") == (0, GENERATION)
    assert member.group_type() == "classic"
