"""The sweep of JoinGroup, SyncGroup, Heartbeat and LeaveGroup: short stories in every version, and every reply in them.

Unlike other sweeps it uses earlier responses: a member continues with the id it got. In the replies ids are replaced by the
order of their appearance in their story, so that the replies of two servers can be compared.
"""

import re
from struct import pack
from typing import Any

from tests.support.peers.group_requests import until
from tests.support.peers.raw_client import RawClient
from tests.support.sweep.sweep import versions_of

from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

MEMBERSHIP = (ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP)
SESSION_MS = 300_000
UNKNOWN_MEMBER_ID = 25
_ENDS_IN_UUID = re.compile(r".*[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DROPPED = ("throttle_time_ms", "unknown_tags", "error_message")


class MembershipSweep:
    """Runs every story against one server, and keeps the replies by name."""

    def __init__(self, bootstrap: str) -> None:
        self.replies: dict[str, Any] = {}
        self._client = RawClient.to(bootstrap, client_id="sweep")
        self._labels: dict[str, str] = {}
        self._group_id = ""
        self._version = 0

    def close(self) -> None:
        self._client.close()

    def run(self) -> dict[str, Any]:
        """Run every story; before the first the server has no coordinator."""
        for api_key in MEMBERSHIP:
            self._in_every_version(api_key, "too early", self._refusals)
        self._await_coordinator()
        for api_key in MEMBERSHIP:
            self._in_every_version(api_key, "refused", self._refusals)
        self._in_every_version(ApiKey.JOIN_GROUP, "alone", self._join_alone)
        self._in_every_version(ApiKey.JOIN_GROUP, "odd", self._join_oddly)
        self._in_every_version(ApiKey.JOIN_GROUP, "static", self._join_static, since=5)
        self._in_every_version(ApiKey.SYNC_GROUP, "alone", self._sync_alone)
        self._in_every_version(ApiKey.SYNC_GROUP, "static", self._sync_static, since=3)
        self._in_every_version(ApiKey.HEARTBEAT, "alone", self._heartbeat_alone)
        self._in_every_version(ApiKey.HEARTBEAT, "static", self._heartbeat_static, since=3)
        self._in_every_version(ApiKey.LEAVE_GROUP, "alone", self._leave_alone)
        self._in_every_version(ApiKey.LEAVE_GROUP, "many", self._leave_many, since=3)
        return self.replies

    def _in_every_version(self, api_key: int, story: str, tell: Any, since: int = 0) -> None:
        for version in versions_of(api_key):
            if version >= since:
                self._labels, self._version = {}, version
                self._group_id = f"{APIS[api_key].name} {story} {version}"
                tell(api_key) if tell == self._refusals else tell()

    def _await_coordinator(self) -> None:
        find = FindCoordinatorRequest(coordinator_keys=["g"])
        until(lambda: self._client.request(find, 4).coordinators[0].error_code == 0, "a coordinator")
        heartbeat = HeartbeatRequest(group_id="g", member_id="nobody")
        until(lambda: self._client.request(heartbeat, 4).error_code == UNKNOWN_MEMBER_ID, "what it has to load")

    # -- requests

    def ask(self, what: str, request: Message, version: int | None = None) -> Any:
        """Send a request, in the story's version if no other is named, and keep the reply."""
        version = self._version if version is None else version
        reply = self._client.request(request, version)
        name = f"{APIS[request.KEY].name}: {self._group_id}: {what}"
        assert name not in self.replies, f"{name} comes twice"
        self.replies[name] = self._plain(reply)
        return reply

    def _plain(self, value: Any) -> Any:
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value).hex()
        if isinstance(value, list):
            return [self._plain(each) for each in value]
        if isinstance(value, str):
            is_id = _ENDS_IN_UUID.fullmatch(value) is not None
            return self._labels.setdefault(value, f"id {len(self._labels)} of {value[:-37]}") if is_id else value
        if hasattr(value, "__slots__") and not isinstance(value, int):
            fields = (field for part in type(value).__mro__ for field in getattr(part, "__slots__", ()))
            return {field: self._plain(getattr(value, field)) for field in fields if field not in _DROPPED}
        return value

    def join(self, member_id: str = "", protocols: str = "range", **fields: Any) -> JoinGroupRequest:
        """`protocols` are names, separated by spaces; for each, the member subscribes to a topic of that name."""
        request = JoinGroupRequest(
            group_id=self._group_id,
            member_id=member_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=_subscribed_to(name)) for name in protocols.split()],
        )
        for field, value in fields.items():
            setattr(request, field, value)
        return request

    def sync(self, member_id: str, generation: int, is_leader: bool = True, **fields: Any) -> SyncGroupRequest:
        request = SyncGroupRequest(group_id=self._group_id, member_id=member_id, generation_id=generation)
        if self._version >= 5:
            request.protocol_type, request.protocol_name = "consumer", "range"
        if is_leader:
            request.assignments = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine")]
        for field, value in fields.items():
            setattr(request, field, value)
        return request

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self._group_id, member_id=member_id, generation_id=generation, group_instance_id=instance_id
        )

    def leave(self, *members: tuple[str, str | None]) -> LeaveGroupRequest:
        identities = [MemberIdentity(member_id=member_id, group_instance_id=instance) for member_id, instance in members]
        if self._version < 3:
            return LeaveGroupRequest(group_id=self._group_id, member_id=identities[0].member_id)
        return LeaveGroupRequest(group_id=self._group_id, members=identities)

    def stable(self, instance_id: str | None = None) -> str:
        """A member that has joined, in generation 1, and has its assignment."""
        joined = self._client.request(self.join(group_instance_id=instance_id), 3 if instance_id is None else 5)
        member_id: str = joined.member_id
        assert joined.generation_id == 1, joined
        synced = self._client.request(
            SyncGroupRequest(
                group_id=self._group_id,
                member_id=member_id,
                generation_id=1,
                group_instance_id=instance_id,
                assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine")],
            ),
            3,
        )
        assert synced.error_code == 0
        return member_id

    def describe(self, what: str) -> None:
        self.ask(what, DescribeGroupsRequest(groups=[self._group_id]), 6)

    # -- the stories

    def _refusals(self, api_key: int) -> None:
        """Requests to a group that does not exist, and to one without a name."""
        requests: dict[int, Any] = {
            ApiKey.JOIN_GROUP: lambda: self.join("nobody"),
            ApiKey.SYNC_GROUP: lambda: self.sync("nobody", 1),
            ApiKey.HEARTBEAT: lambda: self.heartbeat("nobody", 1),
            ApiKey.LEAVE_GROUP: lambda: self.leave(("nobody", None)),
        }
        self.ask("no such group", requests[api_key]())
        nameless = requests[api_key]()
        nameless.group_id = ""
        self.ask("no group id", nameless)
        if api_key == ApiKey.JOIN_GROUP:
            for session_ms in (5999, 1_800_001, -1):
                self.ask(f"session of {session_ms} ms", self.join(session_timeout_ms=session_ms))

    def _join_alone(self) -> None:
        joined = self.ask("first", self.join())
        if self._version >= 4:
            joined = self.ask("with its id", self.join(joined.member_id))
        member_id = joined.member_id
        self.describe("while it assigns")
        self.ask("again while it assigns", self.join(member_id))
        self.ask("sync", self.sync(member_id, joined.generation_id, protocol_type=None, protocol_name=None), 3)
        self.describe("stable")
        self.ask("again as the leader", self.join(member_id))
        self.ask("sync again", self.sync(member_id, 2, protocol_type=None, protocol_name=None), 3)
        self.ask("with an id that is unknown", self.join("nobody"))
        self.ask("leave", LeaveGroupRequest(group_id=self._group_id, members=[MemberIdentity(member_id=member_id)]), 3)
        self.describe("empty")
        self.ask("with its old id", self.join(member_id))

    def _join_oddly(self) -> None:
        self.ask("no protocol", self.join(protocols=""))
        self.ask("no protocol type", self.join(protocol_type=""))
        member_id = self.stable()
        for who in ("", member_id, "nobody"):
            name = {"": "a newcomer", member_id: "a member"}.get(who, "a stranger")
            self.ask(f"{name} of another type", self.join(who, protocol_type="connect"))
            self.ask(f"{name} with another protocol", self.join(who, protocols="sticky"))
            self.ask(f"{name} without protocols", self.join(who, protocols=""))
        if self._version >= 5:
            self.ask("a member with an instance id", self.join(member_id, group_instance_id="i"))
        self.ask("with more protocols", self.join(member_id, protocols="sticky range"))
        self.describe("with more protocols")

    def _join_static(self) -> None:
        first = self.ask("first", self.join(group_instance_id="i"))
        self.ask("restarted while it assigns", self.join(group_instance_id="i"))
        self.ask("the first, fenced", self.join(first.member_id, group_instance_id="i"))
        second = self.ask("restarted again", self.join(group_instance_id="i"))
        sync = self.sync(second.member_id, second.generation_id, group_instance_id="i", protocol_type=None, protocol_name=None)
        self.ask("sync", sync, 3)
        third = self.ask("restarted when stable", self.join(group_instance_id="i"))
        self.ask("with an instance that is unknown", self.join(third.member_id, group_instance_id="j"))
        self.ask("with a member that is unknown", self.join("nobody", group_instance_id="i"))
        self.ask("without the instance", self.join(third.member_id))
        self.describe("at the end")

    def _sync_alone(self) -> None:
        member_id = self.stable()
        self.ask("again", self.sync(member_id, 1, is_leader=False))
        self.ask("too late", self.sync(member_id, 0))
        self.ask("too soon", self.sync(member_id, 2))
        self.ask("a stranger", self.sync("nobody", 1))
        if self._version >= 5:
            self.ask("another type", self.sync(member_id, 1, protocol_type="connect"))
            self.ask("another protocol", self.sync(member_id, 1, protocol_name="sticky"))
            self.ask("no type", self.sync(member_id, 1, protocol_type=None))
            self.ask("no protocol", self.sync(member_id, 1, protocol_name=None))
        self.ask("join", self.join(member_id), 3)
        self.ask("no assignments", self.sync(member_id, 2, is_leader=False))
        self.ask("join again", self.join(member_id), 3)
        twice = self.sync(member_id, 3)
        twice.assignments += [
            SyncGroupRequestAssignment(member_id="nobody", assignment=b"theirs"),
            SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine too"),
        ]
        self.ask("one twice", twice)
        self.describe("at the end")
        self._leave(member_id)
        self.ask("to an empty group", self.sync(member_id, 4))

    def _sync_static(self) -> None:
        member_id = self.stable("i")
        self.ask("as static", self.sync(member_id, 1, group_instance_id="i"))
        self.ask("without the instance", self.sync(member_id, 1))
        self.ask("another member", self.sync("nobody", 1, group_instance_id="i"))
        self.ask("another instance", self.sync(member_id, 1, group_instance_id="j"))

    def _heartbeat_alone(self) -> None:
        member_id = self.stable()
        self.ask("in time", self.heartbeat(member_id, 1))
        self.ask("too late", self.heartbeat(member_id, 0))
        self.ask("too soon", self.heartbeat(member_id, 2))
        self.ask("a stranger", self.heartbeat("nobody", 1))
        self.ask("join", self.join(member_id), 3)
        self.ask("while it assigns", self.heartbeat(member_id, 2))
        pending = self._client.request(self.join(), 4).member_id
        self.ask("who has only an id", self.heartbeat(pending, 2))
        self._leave(member_id)
        self.ask("while others are waited for", self.heartbeat(member_id, 2))
        self._leave(pending)
        self.ask("to an empty group", self.heartbeat(member_id, 3))

    def _heartbeat_static(self) -> None:
        member_id = self.stable("i")
        self.ask("as static", self.heartbeat(member_id, 1, "i"))
        self.ask("without the instance", self.heartbeat(member_id, 1))
        self.ask("another member", self.heartbeat("nobody", 1, "i"))
        self.ask("another instance", self.heartbeat(member_id, 1, "j"))

    def _leave_alone(self) -> None:
        member_id = self.stable()
        self.ask("a stranger", self.leave(("nobody", None)))
        self.ask("nobody in particular", self.leave(("", None)))
        pending = self._client.request(self.join(), 4).member_id
        self.ask("who has only an id", self.leave((pending, None)))
        self.ask("a member", self.leave((member_id, None)))
        self.ask("once more", self.leave((member_id, None)))
        self.describe("at the end")

    def _leave_many(self) -> None:
        member_id = self.stable("i")
        self.ask("none", self.leave())
        self.ask("those who cannot", self.leave(("nobody", "i"), (member_id, "j"), ("", "j"), ("nobody", None)))
        self.ask("one twice", self.leave(("", "i"), (member_id, "i"), (member_id, None)))
        self.describe("at the end")

    def _leave(self, member_id: str) -> None:
        request = LeaveGroupRequest(group_id=self._group_id, members=[MemberIdentity(member_id=member_id)])
        assert self._client.request(request, 3).members[0].error_code == 0


def _subscribed_to(topic: str) -> bytes:
    return pack(">hih", 0, 1, len(topic)) + topic.encode() + pack(">i", -1)
