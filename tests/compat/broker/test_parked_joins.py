"""Parked JoinGroups that cannot complete: the error and the member id they are answered with."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.support.peers.group_requests import GroupRequests, until
from tests.support.peers.raw_client import RawClient
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer

from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest

SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
PREPARING = "PreparingRebalance"
SETTINGS = {"offsets.topic.num.partitions": 1, "group.initial.rebalance.delay.ms": 0}


class Story:
    """One group with a member that does not rejoin, so that every other JoinGroup is parked."""

    def __init__(self, cluster: KafkaServer, group_id: str, version: int, opened: ExitStack) -> None:
        self._bootstrap, self._opened = cluster.bootstrap, opened
        self.group_id, self.version = group_id, version
        opened.enter_context(GroupRequests(cluster.bootstrap))
        self.admin = self.connect()
        first = self.admin.request(self.join(), 3)
        sync = SyncGroupRequest(group_id=group_id, generation_id=first.generation_id, member_id=first.member_id)
        assert self.admin.request(sync, 3).error_code == 0

    def connect(self) -> RawClient:
        return self._opened.enter_context(RawClient.to(self._bootstrap, client_id="me"))

    def join(self, member_id: str = "", instance_id: str | None = None) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group_id,
            member_id=member_id,
            group_instance_id=instance_id,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )

    def park(self, instance_id: str | None = None) -> tuple[RawClient, str]:
        """A client whose JoinGroup is parked, and the member id that it sent."""
        client, member_id = self.connect(), ""
        if self.version >= 4 and instance_id is None:
            member_id = client.request(self.join(), self.version).member_id
        client.send(self.join(member_id, instance_id), self.version)
        until(lambda: self.described()[0] == PREPARING, "the rebalance")
        return client, member_id

    def described(self) -> tuple[str, list[str]]:
        (group,) = self.admin.request(DescribeGroupsRequest(groups=[self.group_id]), 5).groups
        return group.group_state, [member.member_id for member in group.members]

    def answer(self, client: RawClient) -> tuple[int, str]:
        response = client.receive(JoinGroupRequest.KEY, self.version)
        assert (response.generation_id, response.leader, response.members) == (-1, "", [])
        return response.error_code, response.member_id


@pytest.fixture(params=[3, 5, 9])
def story(request: pytest.FixtureRequest, cluster: KafkaServer, topic: str) -> Iterator[Story]:
    with ExitStack() as opened:
        yield Story(cluster, f"{topic}-{request.param}", request.param, opened)


def test_removed_member_gets_an_empty_id(story: Story) -> None:
    client, _ = story.park()
    leave = LeaveGroupRequest(
        group_id=story.group_id, members=[MemberIdentity(member_id=each) for each in story.described()[1]]
    )
    assert [each.error_code for each in story.admin.request(leave, 3).members] == [0, 0]
    assert story.answer(client) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


@pytest.mark.parametrize("story", [5, 9], indirect=True)
def test_fenced_static_member_gets_its_old_id(story: Story) -> None:
    client, _ = story.park("i")
    before = story.described()[1]
    story.connect().send(story.join(instance_id="i"), story.version)
    code, member_id = story.answer(client)
    assert code == ErrorCode.FENCED_INSTANCE_ID
    assert member_id.startswith("i-")
    assert member_id in before
    assert member_id not in story.described()[1]


def test_member_gets_its_id_when_its_group_is_upgraded(story: Story) -> None:
    client, sent = story.park()
    known = story.described()[1]
    request = ConsumerGroupHeartbeatRequest(group_id=story.group_id, member_id="new", rebalance_timeout_ms=60_000)
    request.topic_partitions, request.subscribed_topic_names = [], ["t"]
    assert story.admin.request(request, 1).error_code == 0
    code, member_id = story.answer(client)
    assert code == ErrorCode.REBALANCE_IN_PROGRESS
    assert member_id in known
    assert sent in ("", member_id)


def test_member_gets_its_id_when_the_coordinator_is_unloaded(start_server: StartServer) -> None:
    with start_server(SETTINGS) as server, ExitStack() as opened:
        story = Story(server, "g", 3, opened)
        client, _ = story.park()
        known = story.described()[1]
        delete = DeleteTopicsRequest(topics=[DeleteTopicState(name=OFFSETS_TOPIC)], timeout_ms=30_000)
        assert story.admin.request(delete, 6).responses[0].error_code == 0
        code, member_id = story.answer(client)
        assert code == ErrorCode.NOT_COORDINATOR
        assert member_id in known
