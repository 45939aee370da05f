"""Requests about groups to a broker, in their newest versions, with shortened responses."""

import time
from collections.abc import Callable
from typing import Any

from tests.support.peers.raw_client import RawClient
from tests.support.servers.kafka_server import HANG_S

from ottla.wire.base import Message
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

COORDINATOR_LOAD_IN_PROGRESS = 14
Offsets = dict[tuple[str, int], int]


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition` holds: brokers complete some requests after they have answered."""
    end_s = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end_s, f"{what} does not come"


class GroupRequests:
    """One connection to a broker that coordinates all groups."""

    def __init__(self, bootstrap: str) -> None:
        self._client = RawClient.to(bootstrap)
        find = FindCoordinatorRequest(coordinator_keys=["g"])
        until(lambda: self.ask(find, 4).coordinators[0].error_code == 0, "a coordinator")
        fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        until(lambda: self.ask(fetch, 9).groups[0].error_code == 0, "an answer of it")
        until(lambda: self.ask(ListGroupsRequest(), 5).error_code == 0, "what it has to load")

    def __enter__(self) -> "GroupRequests":
        return self

    def __exit__(self, *raised: object) -> None:
        self._client.close()

    def ask(self, request: Message, version: int) -> Any:
        return self._client.request(request, version)

    def commit(self, group_id: str, offsets: Offsets, metadata: str = "") -> list[int]:
        """Commit one offset per partition; returns the error codes in order."""
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (name, index), offset in offsets.items():
            part = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
            topics.setdefault(name, OffsetCommitRequestTopic(name=name)).partitions.append(part)
        answer = self.ask(OffsetCommitRequest(group_id=group_id, topics=list(topics.values())), 9)
        return [each.error_code for topic in answer.topics for each in topic.partitions]

    def fetch(self, *group_ids: str, require_stable: bool = False) -> dict[str, Offsets]:
        """All offsets of the groups."""
        groups = [OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in group_ids]
        found = self.ask(OffsetFetchRequest(groups=groups, require_stable=require_stable), 9).groups
        assert all(group.error_code == 0 for group in found), found
        return {
            group.group_id: {
                (topic.name, each.partition_index): each.committed_offset for topic in group.topics for each in topic.partitions
            }
            for group in found
        }

    def listed(self) -> list[str]:
        answer = self.ask(ListGroupsRequest(), 5)
        assert answer.error_code == 0
        return sorted(group.group_id for group in answer.groups)

    def delete(self, *group_ids: str) -> list[int]:
        answer = self.ask(DeleteGroupsRequest(groups_names=list(group_ids)), 2)
        return [result.error_code for result in answer.results]
