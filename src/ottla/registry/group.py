"""The group in which registries elect the one that writes, as Confluent's do: for a registry that stands beside theirs.

A classic group of the protocol type `sr`. A member's metadata says where it listens and whether it may lead. The member that
the coordinator chose gives everybody the same assignment: of those that may lead, the one with the smallest address. The others
forward writes to it. Among Ottla's registries nobody needs to lead (`topic.py`); this keeps Confluent's from writing meanwhile.

Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client_core.coordinators import CoordinatorKind
from ottla.errors import KafkaError, exception_of
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

logger = logging.getLogger("ottla.registry")

PROTOCOL_TYPE, PROTOCOL = "sr", "v0"
SESSION_MS, REBALANCE_MS = 10_000, 10_000
HEARTBEAT_S = 3.0
RETRY_S = 0.5
NO_ERROR, DUPLICATE_URLS = 0, 1
REJOIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})


class Address(NamedTuple):
    """Where a registry listens, as it tells the others."""

    scheme: str
    host: str
    port: int
    may_lead: bool = True

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    def as_json(self) -> dict[str, Any]:
        return {
            "version": 1,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.may_lead,
            "scheme": self.scheme,
            "leader": False,
        }


def read_address(data: bytes) -> Address:
    """The metadata of a member. Raises ValueError, KeyError or TypeError if it is none."""
    found = json.loads(data)
    may_lead = bool(found.get("master_eligibility", True))
    return Address(str(found.get("scheme") or "http"), str(found["host"]), int(found["port"]), may_lead)


def elect(members: Mapping[str, bytes]) -> dict[str, Any]:
    """The assignment that all members get: who leads."""
    addresses = {}
    for member_id, metadata in members.items():
        try:
            addresses[member_id] = read_address(metadata)
        except (ValueError, KeyError, TypeError) as problem:
            logger.warning("member %s of the registries' group says nothing that can be read: %s", member_id, problem)
    urls = [each.url for each in addresses.values()]
    if len(set(urls)) != len(urls):
        return {"version": 1, "error": DUPLICATE_URLS, "master": None, "master_identity": None}
    able = {member_id: each for member_id, each in addresses.items() if each.may_lead}
    leader = min(able, key=lambda each: able[each].url, default=None)
    identity = None if leader is None else {**able[leader].as_json(), "leader": True}
    return {"version": 1, "error": NO_ERROR, "master": leader, "master_identity": identity}


class RegistryGroup:
    """A member of the group. `run` keeps it in; `leader` is who writes."""

    def __init__(self, cluster: Cluster, group_id: str, address: Address) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._address = address
        self._member_id = ""
        self._generation = -1
        self._coordinator = -1
        self.leader: Address | None = None
        """Who writes; None while nobody does."""
        self.changed = asyncio.Event()
        """Set when a leader was elected."""

    @property
    def is_leader(self) -> bool:
        return self.leader is not None and self.leader.url == self._address.url

    async def run(self) -> None:
        """Be a member for ever."""
        try:
            while True:
                try:
                    await self._once_in()
                except KafkaError as error:
                    if error.code not in REJOIN:
                        logger.warning("group %s of registries: %s", self._group_id, error)
                        self._coordinator = -1
                        await asyncio.sleep(RETRY_S)
                    if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
                        self._member_id = ""
                self.leader = None
        finally:
            self.leader = None
            await self._leave()

    async def _once_in(self) -> None:
        """Join, and stay until the group changes."""
        if self._coordinator < 0:
            places, failures = await self._cluster.coordinators(CoordinatorKind.GROUP, [self._group_id])
            for failure in failures.values():
                raise failure
            self._coordinator = next(iter(places))
        joined = await self._join()
        self._member_id, self._generation = joined.member_id, joined.generation_id
        assignments: list[SyncGroupRequestAssignment] = []
        if joined.leader == joined.member_id:
            found = json.dumps(elect({each.member_id: bytes(each.metadata) for each in joined.members})).encode()
            assignments = [SyncGroupRequestAssignment(member_id=each.member_id, assignment=found) for each in joined.members]
        self._take(await self._sync(assignments))
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            request = HeartbeatRequest(group_id=self._group_id, generation_id=self._generation, member_id=self._member_id)
            response: HeartbeatResponse = await self._cluster.once(self._coordinator, request)
            if response.error_code:
                raise exception_of(response.error_code)

    async def _join(self) -> JoinGroupResponse:
        metadata = json.dumps(self._address.as_json(), separators=(",", ":")).encode()
        for _ in range(2):
            request = JoinGroupRequest(group_id=self._group_id, member_id=self._member_id, protocol_type=PROTOCOL_TYPE)
            request.session_timeout_ms, request.rebalance_timeout_ms = SESSION_MS, REBALANCE_MS
            request.protocols = [JoinGroupRequestProtocol(name=PROTOCOL, metadata=metadata)]
            response: JoinGroupResponse = await self._cluster.once(self._coordinator, request)
            if response.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                break
            self._member_id = response.member_id
        if response.error_code:
            raise exception_of(response.error_code)
        return response

    async def _sync(self, assignments: Sequence[SyncGroupRequestAssignment]) -> bytes:
        request = SyncGroupRequest(group_id=self._group_id, generation_id=self._generation, member_id=self._member_id)
        request.protocol_type, request.protocol_name = PROTOCOL_TYPE, PROTOCOL
        request.assignments = list(assignments)
        response: SyncGroupResponse = await self._cluster.once(self._coordinator, request)
        if response.error_code:
            raise exception_of(response.error_code)
        return bytes(response.assignment)

    def _take(self, assignment: bytes) -> None:
        try:
            found = json.loads(assignment)
            if found.get("error"):
                logger.error("two registries of group %s have the address %s: nobody writes", self._group_id, self._address.url)
            identity = found.get("master_identity")
            self.leader = read_address(json.dumps(identity).encode()) if identity else None
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            logger.warning("the assignment of group %s cannot be read: %s", self._group_id, problem)
            self.leader = None
        if self.leader is not None:
            logger.info("%s writes for the registries of group %s", self.leader.url, self._group_id)
            self.changed.set()

    async def _leave(self) -> None:
        if not self._member_id or self._coordinator < 0:
            return
        try:
            async with asyncio.timeout(RETRY_S):
                request = LeaveGroupRequest(group_id=self._group_id, members=[MemberIdentity(member_id=self._member_id)])
                await self._cluster.once(self._coordinator, request)
        except (KafkaError, TimeoutError, asyncio.CancelledError):
            pass  # the group forgets it when its session ends
