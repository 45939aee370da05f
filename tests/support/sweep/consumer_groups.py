"""The sweep of ConsumerGroupHeartbeat and ConsumerGroupDescribe: stories in every version, and every reply in them.

Also the responses to members of the classic protocol in consumer groups, and groups that change their protocol. Topic ids and
generated member ids are replaced by the order of their appearance in their story.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from tests.support.peers.group_requests import until
from tests.support.peers.raw_client import RawClient
from tests.support.shards.mixed_harness import assignment, subscription
from tests.support.sweep.sweep import COORDINATOR_LOAD_IN_PROGRESS, versions_of

from ottla.ids import Uuid
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SERVED = (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE)
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.max.session.timeout.ms": 300_000,
    "group.consumer.session.timeout.ms": 300_000,
    "group.initial.rebalance.delay.ms": 0,
}
SESSION_MS = 300_000
TOPICS = {"sweep-four": 4, "sweep-two": 2}
FOUR, TWO = TOPICS
_DROPPED = ("throttle_time_ms", "unknown_tags", "error_message", "client_host", "authorized_operations")
_GIVEN_ID = re.compile(r"(?<![\w-])([\w-]{22}|(sweep-|i-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![\w-])")

Owned = Mapping[str, Sequence[int]]


class ConsumerGroupSweep:
    """Runs every story against one server, and keeps the replies by name."""

    def __init__(self, bootstrap: str) -> None:
        self.replies: dict[str, Any] = {}
        self._client = RawClient.to(bootstrap, client_id="sweep")
        self._labels: dict[str, str] = {}
        self.topic_ids: dict[str, Uuid] = {}
        self.group_ids: list[str] = []
        """The group of every story."""
        self.group_id = ""
        self.version = 0
        self._steps = 0

    def close(self) -> None:
        self._client.close()

    def run(self, stories: Sequence[Callable[["ConsumerGroupSweep"], None]]) -> dict[str, Any]:
        """Every story in every version of the heartbeat; the first before the server has a coordinator."""
        self._tell("too early", lambda sweep: sweep.beat("m", 0, {}, **JOIN))
        self.begin()
        for story in stories:
            self._tell(story.__name__.removeprefix("tell_").replace("_", " "), story)
        return self.replies

    def _tell(self, name: str, story: Callable[["ConsumerGroupSweep"], None]) -> None:
        for version in versions_of(ApiKey.CONSUMER_GROUP_HEARTBEAT):
            self._labels, self.version, self._steps = {}, version, 0
            self.group_id = f"{name} {version}"
            self.group_ids.append(self.group_id)
            story(self)

    def begin(self) -> None:
        """Create the topics if they do not exist, and wait until the server knows them and serves groups."""
        find = FindCoordinatorRequest(coordinator_keys=["g"])
        until(lambda: self._client.request(find, 4).coordinators[0].error_code == 0, "a coordinator")
        until(lambda: self._client.request(ListGroupsRequest(), 5).error_code == 0, "what it has to load")
        topics = [CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in TOPICS.items()]
        self._client.request(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)

        def learn() -> bool:
            wanted = [MetadataRequestTopic(name=name) for name in TOPICS]
            found = self._client.request(MetadataRequest(topics=wanted), 12).topics
            self.topic_ids = {each.name: each.topic_id for each in found if not each.error_code}
            return len(self.topic_ids) == len(TOPICS)

        until(learn, "the topics")
        attempts = count()

        def is_assigned() -> bool:
            request = ConsumerGroupHeartbeatRequest(
                group_id=f"warm {next(attempts)}", member_id="m", topic_partitions=[], **JOIN
            )
            request.subscribed_topic_names = list(TOPICS)
            assignment = self._client.request(request, 1).assignment
            return assignment is not None and len(assignment.topic_partitions) == len(TOPICS)

        until(is_assigned, "the coordinator to know the topics")

    # -- requests

    def ask(self, request: Message, version: int | None = None) -> Any:
        """Send a request, in the story's version if no other is named, and keep the reply."""
        version = self.version if version is None else version
        self._steps += 1
        reply = self._client.request(request, version)
        while getattr(reply, "error_code", 0) == COORDINATOR_LOAD_IN_PROGRESS:
            reply = self._client.request(request, version)
        self.replies[f"{APIS[request.KEY].name}: {self.group_id}: step {self._steps}"] = self._plain(reply)
        return reply

    def _plain(self, value: Any) -> Any:
        if isinstance(value, bytes | bytearray | memoryview):
            known = {bytes(topic_id): name for name, topic_id in self.topic_ids.items()}
            return known.get(bytes(value), bytes(value).hex())
        if isinstance(value, list):
            return sorted((self._plain(each) for each in value), key=repr)  # Java's maps and sets have no order
        if isinstance(value, str):
            return self.labelled(value, self._labels)
        if hasattr(value, "__slots__") and not isinstance(value, int):
            fields = (field for part in type(value).__mro__ for field in getattr(part, "__slots__", ()))
            return {field: self._plain(getattr(value, field)) for field in fields if field not in _DROPPED}
        return value

    @staticmethod
    def labelled(text: str, labels: dict[str, str]) -> str:
        """The text with generated ids replaced by the order of their appearance."""
        return _GIVEN_ID.sub(lambda found: labels.setdefault(found[0], f"id {len(labels)}"), text)

    # -- members of the consumer protocol

    def beat(self, member_id: str, epoch: int, owned: Owned | None = None, **fields: Any) -> Any:
        fields = {"group_id": self.group_id, **fields}
        request = ConsumerGroupHeartbeatRequest(member_id=member_id, member_epoch=epoch, **fields)
        if owned is not None:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=self.topic_ids[name], partitions=list(held))
                for name, held in owned.items()
            ]
        return self.ask(request)

    def describe(self, *group_ids: str) -> None:
        for version in versions_of(ApiKey.CONSUMER_GROUP_DESCRIBE):
            self.ask(ConsumerGroupDescribeRequest(group_ids=list(group_ids) or [self.group_id]), version)

    def list_and_describe(self) -> None:
        """List and describe the group, as other clients see it."""
        listed = self._client.request(ListGroupsRequest(), 5).groups
        self._steps += 1
        mine = [each for each in listed if each.group_id == self.group_id]
        self.replies[f"LIST_GROUPS: {self.group_id}: step {self._steps}"] = self._plain(mine)
        self.ask(DescribeGroupsRequest(groups=[self.group_id]), 6)

    def delete(self) -> None:
        self.ask(DeleteGroupsRequest(groups_names=[self.group_id]), 2)

    # -- members of the classic protocol

    def join(self, member_id: str = "", topics: Sequence[str] = (FOUR,), owned: Owned | None = None, **fields: Any) -> Any:
        names = fields.pop("protocols", ("range",))
        request = JoinGroupRequest(
            group_id=self.group_id,
            member_id=member_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=subscription(topics, owned)) for name in names],
        )
        for field, value in fields.items():
            setattr(request, field, value)
        return self.ask(request, 9)

    def sync(self, member_id: str, generation: int, given: Mapping[str, Owned] | None = None, **fields: Any) -> Any:
        request = SyncGroupRequest(
            group_id=self.group_id,
            member_id=member_id,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=assignment(held)) for each, held in (given or {}).items()
            ],
        )
        for field, value in fields.items():
            setattr(request, field, value)
        return self.ask(request, 5)

    def classic_beat(self, member_id: str, generation: int, instance_id: str | None = None) -> Any:
        request = HeartbeatRequest(
            group_id=self.group_id, member_id=member_id, generation_id=generation, group_instance_id=instance_id
        )
        return self.ask(request, 4)

    def leave(self, *members: tuple[str, str | None]) -> Any:
        identities = [MemberIdentity(member_id=each, group_instance_id=instance_id) for each, instance_id in members]
        return self.ask(LeaveGroupRequest(group_id=self.group_id, members=identities), 5)

    def stable_classic(self) -> str:
        """A stable classic group of one member, which owns all partitions of the larger topic."""
        member_id: str = self.join().member_id
        self.join(member_id)
        self.sync(member_id, 1, {member_id: {FOUR: [0, 1, 2, 3]}})
        return member_id


JOIN: dict[str, Any] = {"subscribed_topic_names": [FOUR], "rebalance_timeout_ms": SESSION_MS}
