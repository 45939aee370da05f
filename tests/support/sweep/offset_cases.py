"""The cases of the coordinators' sweep about offsets and groups: commit, fetch, delete, list, describe.

The order matters, since cases change what later ones see. Topic: `sweep` with two partitions.
"""

from collections.abc import Callable, Iterator
from typing import Any

from tests.support.sweep.cases import UNKNOWN_ID, every_version
from tests.support.sweep.story import Story
from tests.support.sweep.sweep import Case

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.apis import ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

Make = Callable[[int], Message | None]
IDS_SINCE, MEMBERS_SINCE, GROUPS_SINCE = 10, 9, 8


class OffsetCases:
    """Requests about the topic with this id; `story` sends the requests between them."""

    def __init__(self, topic_id: Uuid, story: Story) -> None:
        self._ids = {"sweep": topic_id}
        self._story = story

    def early(self) -> Iterator[Case]:
        """Cases before the internal topic exists."""
        yield from every_version("commit, too early", ApiKey.OFFSET_COMMIT, lambda v: self.commit(v, "g", {("sweep", 0): 1}))
        yield from every_version("fetch, too early", ApiKey.OFFSET_FETCH, lambda v: self.fetch(v, "g", sweep=[0]))
        yield from every_version("list, too early", ApiKey.LIST_GROUPS, lambda _: ListGroupsRequest())
        yield from every_version("describe, too early", ApiKey.DESCRIBE_GROUPS, lambda _: DescribeGroupsRequest(groups=["g"]))
        yield from every_version("delete, too early", ApiKey.DELETE_GROUPS, lambda _: DeleteGroupsRequest(groups_names=["g"]))
        yield from every_version("delete offsets, too early", ApiKey.OFFSET_DELETE, lambda _: self.delete("g", ("sweep", 0)))

    def simple(self) -> Iterator[Case]:
        """Groups without members."""
        commits: dict[str, Make] = {
            "commit": lambda v: self.commit(v, "g", {("sweep", 0): v, ("sweep", 1): 100 + v}, metadata=f"m{v}"),
            "commit, no metadata": lambda v: self.commit(v, "g", {("sweep", 0): 7}, metadata=None),
            "commit, long metadata": lambda v: self.commit(v, "g", {("sweep", 0): 1}, metadata="x" * 4097),
            "commit, long metadata of few characters": lambda v: self.commit(v, "g", {("sweep", 0): 9}, metadata="𝄞" * 2048),
            "commit, unknown": lambda v: self.commit(v, "g", {("sweep", 0): 8, ("sweep", 5): 1, ("absent", 0): 1}),
            "commit, only unknown": lambda v: self.commit(v, "g", {("absent", 0): 1}, generation=5),
            "commit, in a generation": lambda v: self.commit(v, "g", {("sweep", 0): 1, ("absent", 0): 1}, generation=5),
            "commit, as a member": lambda v: self.commit(v, "g", {("sweep", 0): 2}, member_id="m"),
            "commit to no group in a generation": lambda v: self.commit(v, "n", {("sweep", 0): 1}, generation=5, member_id="m"),
            "commit with an empty name": lambda v: self.commit(v, "", {("sweep", 0): 3}),
            "commit nothing": lambda v: self.commit(v, "g", {}),
            "commit for a time": self.timed,
            "commit as an instance": lambda v: (
                self.commit(v, "g", {("sweep", 0): 3}, group_instance_id="i") if v >= 7 else None
            ),
        }
        for name, make in commits.items():
            yield from every_version(name, ApiKey.OFFSET_COMMIT, make)
        yield from self._fetches()
        yield from self._lists("of simple groups")
        yield from self._describes()
        yield from self._deletes()

    def _fetches(self) -> Iterator[Case]:
        fetches: dict[str, Make] = {
            "fetch": lambda v: self.fetch(v, "g", sweep=[0, 1, 7]),
            "fetch, unknown": lambda v: self.fetch(v, "g", absent=[0, 1], sweep=[0]),
            "fetch of no group": lambda v: self.fetch(v, "no such", sweep=[0]),
            "fetch, no name": lambda v: self.fetch(v, "", sweep=[0]),
            "fetch of a timed commit": lambda v: self.fetch(v, "timed", sweep=[0]),
            "fetch all": lambda v: self.fetch_all(v, "g") if v >= 2 else None,
            "fetch all of no group": lambda v: self.fetch_all(v, "no such") if v >= 2 else None,
            "fetch, stable": lambda v: self.fetch(v, "g", True, sweep=[0]) if v >= 7 else None,
            "fetch of two groups": lambda v: self._fetch_two(v) if v >= GROUPS_SINCE else None,
            "fetch of none": lambda v: OffsetFetchRequest() if v >= GROUPS_SINCE else None,
            "fetch, as a member": lambda v: self._fetch_as(v, "m", 3) if v >= MEMBERS_SINCE else None,
        }
        for name, make in fetches.items():
            yield from every_version(name, ApiKey.OFFSET_FETCH, make)

    def _lists(self, when: str) -> Iterator[Case]:
        def listing(states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> Make:
            def make(version: int) -> Message | None:
                if (states and version < 4) or (types and version < 5):
                    return None
                return ListGroupsRequest(states_filter=list(states), types_filter=list(types))

            return make

        cases = {
            "list": listing(),
            "list empty": listing(("Empty",)),
            "list empty, spelled otherwise": listing((" eMPTY ", "nonsense")),
            "list stable": listing(("Stable",)),
            "list no state": listing(("nonsense",)),
            "list classic": listing((), ("classic",)),
            "list CLASSIC": listing((), ("CLASSIC", "share")),
            "list consumer": listing((), ("Consumer",)),
            "list no type": listing((), ("nonsense",)),
            "list stable classic": listing(("stable",), ("classic",)),
        }
        for name, make in cases.items():
            yield from every_version(f"{name} {when}", ApiKey.LIST_GROUPS, make)

    def _describes(self) -> Iterator[Case]:
        def describing(*groups: str) -> Make:
            return lambda version: DescribeGroupsRequest(groups=list(groups), include_authorized_operations=version >= 3)

        for name, make in {
            "describe": describing("g", "timed"),
            "describe no group": describing("no such"),
            "describe without a name": describing("", "g"),
            "describe twice": describing("g", "g"),
            "describe nothing": describing(),
        }.items():
            yield from every_version(name, ApiKey.DESCRIBE_GROUPS, make)
        yield from every_version(
            "describe, nothing about rights", ApiKey.DESCRIBE_GROUPS, lambda _: DescribeGroupsRequest(groups=["g"])
        )

    def _deletes(self) -> Iterator[Case]:
        deletes: dict[str, Make] = {
            "delete offsets": lambda _: self.delete("g", ("sweep", 1), ("sweep", 1)),
            "delete offsets, unknown": lambda _: self.delete("g", ("sweep", 0), ("sweep", 9), ("absent", 0)),
            "delete offsets, only unknown": lambda _: self.delete("g", ("absent", 0)),
            "delete offsets of no group": lambda _: self.delete("no such", ("sweep", 0)),
            "delete offsets without a name": lambda _: self.delete("", ("sweep", 0)),
            "delete no offsets": lambda _: self.delete("g"),
        }
        for name, make in deletes.items():
            yield from every_version(name, ApiKey.OFFSET_DELETE, make)
        yield from every_version(
            "fetch all after deleting", ApiKey.OFFSET_FETCH, lambda v: self.fetch_all(v, "g") if v >= 2 else None
        )
        names = {
            "delete": ["timed", "no such"],
            "delete twice": ["g", "g"],
            "delete without a name": [""],
            "delete nothing": [],
        }
        for name, groups in names.items():
            yield from every_version(
                name, ApiKey.DELETE_GROUPS, lambda _, groups=groups: DeleteGroupsRequest(groups_names=list(groups))
            )

    def with_members(self) -> Iterator[Case]:
        """The group `members`, with one member, which reads `sweep`."""

        def commit(offset: int, generation: int = 0, member_id: str | None = None, **extra: Any) -> Make:
            return lambda v: self.commit(
                v,
                "members",
                {("sweep", 0): offset, ("absent", 0): 1},
                generation=self._story.generation + generation,
                member_id=self._story.member_id if member_id is None else member_id,
                **extra,
            )

        cases = {
            "commit as the member": commit(1),
            "commit in an old generation": commit(2, -1),
            "commit in a later generation": commit(2, 1),
            "commit as somebody": commit(3, 0, "somebody"),
            "commit as nobody": lambda v: self.commit(v, "members", {("sweep", 0): 4}),
        }
        for name, make in cases.items():
            yield from every_version(name, ApiKey.OFFSET_COMMIT, make)
        yield from every_version(
            "fetch of a group with members", ApiKey.OFFSET_FETCH, lambda v: self.fetch(v, "members", sweep=[0])
        )
        yield from self._lists("of a group with members")
        yield from every_version(
            "describe members", ApiKey.DESCRIBE_GROUPS, lambda _: DescribeGroupsRequest(groups=["members"])
        )
        yield from every_version(
            "delete offsets that are read", ApiKey.OFFSET_DELETE, lambda _: self.delete("members", ("sweep", 0))
        )
        yield from every_version(
            "delete members", ApiKey.DELETE_GROUPS, lambda _: DeleteGroupsRequest(groups_names=["members", "no such"])
        )

    # -- requests

    def _topic_id(self, name: str, version: int) -> Uuid:
        return self._ids.get(name, UNKNOWN_ID) if version >= IDS_SINCE else ZERO_UUID

    def commit(
        self,
        version: int,
        group_id: str,
        offsets: dict[tuple[str, int], int],
        metadata: str | None = "",
        generation: int = -1,
        **extra: Any,
    ) -> OffsetCommitRequest:
        request = OffsetCommitRequest(group_id=group_id, generation_id_or_member_epoch=generation, **extra)
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (name, index), offset in offsets.items():
            part = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
            part.committed_leader_epoch = 0 if version >= 6 else -1
            topic = OffsetCommitRequestTopic(name=name, topic_id=self._topic_id(name, version))
            topics.setdefault(name, topic).partitions.append(part)
        request.topics = list(topics.values())
        return request

    def timed(self, version: int) -> OffsetCommitRequest | None:
        """A commit with a retention time, which only old versions have."""
        return self.commit(version, "timed", {("sweep", 0): 3}, retention_time_ms=10**9) if version < 5 else None

    def fetch(self, version: int, group_id: str, stable: bool = False, **topics: list[int]) -> OffsetFetchRequest:
        if version < GROUPS_SINCE:
            wanted = [OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
            return OffsetFetchRequest(group_id=group_id, topics=wanted, require_stable=stable)
        return OffsetFetchRequest(groups=[self._group(version, group_id, **topics)], require_stable=stable)

    def _group(self, version: int, group_id: str, **topics: list[int]) -> OffsetFetchRequestGroup:
        wanted = [
            OffsetFetchRequestTopics(name=name, topic_id=self._topic_id(name, version), partition_indexes=indexes)
            for name, indexes in topics.items()
        ]
        return OffsetFetchRequestGroup(group_id=group_id, topics=wanted)

    def _fetch_two(self, version: int) -> OffsetFetchRequest:
        everything = OffsetFetchRequestGroup(group_id="timed", topics=None)
        return OffsetFetchRequest(groups=[self._group(version, "g", sweep=[1]), everything])

    def _fetch_as(self, version: int, member_id: str, epoch: int) -> OffsetFetchRequest:
        group = self._group(version, "g", sweep=[0])
        group.member_id, group.member_epoch = member_id, epoch
        return OffsetFetchRequest(groups=[group])

    def fetch_all(self, version: int, group_id: str, stable: bool = False) -> OffsetFetchRequest:
        if version < GROUPS_SINCE:
            return OffsetFetchRequest(group_id=group_id, topics=None, require_stable=stable)
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)], require_stable=stable)

    def delete(self, group_id: str, *partitions: tuple[str, int]) -> OffsetDeleteRequest:
        topics: dict[str, OffsetDeleteRequestTopic] = {}
        for name, index in partitions:
            part = OffsetDeleteRequestPartition(partition_index=index)
            topics.setdefault(name, OffsetDeleteRequestTopic(name=name)).partitions.append(part)
        return OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))
