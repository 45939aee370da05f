"""Members of consumer groups, of any client library: their assignments, their records, and how they end.

    with Members(java) as members:
        one = members.open("java", bootstrap, MemberOptions("orders", topics=("t",), protocol="consumer"))
        await_shared([one], all_of("t", 6))

Libraries by name: `java` (one process for all members, tests/support/java/GroupMembers.java), `confluent`, `kafka-python` and
`aiokafka` (a thread per member, `group_members_python.py`), `ottla` and `ottla-aio` (`group_members_ottla.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from types import TracebackType
from typing import Any

from tests.support.servers.kafka_server import HANG_S

Partition = tuple[str, int]

HEARTBEAT_MS = 150
SESSION_MS = 6_000
"""The session timeout of classic members; for the consumer protocol the server sets it."""

FAST_GROUPS: dict[str, Any] = {
    "group.min.session.timeout.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 50,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.assignment.interval.ms": 0,
}
"""Settings of a server whose groups settle soon."""


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """Options of a member. `protocol`: `eager` (range), `cooperative` (cooperative-sticky) or `consumer` (KIP-848)."""

    group: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    """A regular expression instead of topics."""
    protocol: str = "eager"
    instance_id: str = ""
    session_ms: int = SESSION_MS
    more: dict[str, str] = field(default_factory=dict)
    """Settings by the names of Kafka's clients, for libraries that use these names."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A record as a member has read it."""

    partition: Partition
    offset: int
    value: str


class Member:
    """One member. Its client's thread writes the fields; tests read them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.assignment: frozenset[Partition] = frozenset()
        self.events: list[tuple[str, frozenset[Partition]]] = []
        """(`assigned`, `revoked` or `lost`, partitions), in order; those without partitions too."""
        self.records: list[Taken] = []
        self.failure: str | None = None
        self.ended = threading.Event()

    def note(self, what: str, partitions: Iterable[Partition]) -> None:
        """Note partitions that the group has assigned or revoked."""
        changed = frozenset(partitions)
        self.events.append((what, changed))
        self.assignment = self.assignment | changed if what == "assigned" else self.assignment - changed

    def fail(self, text: str) -> None:
        self.failure = text
        self.ended.set()

    @property
    def taken_away(self) -> frozenset[Partition]:
        """All partitions that were ever revoked or lost."""
        return frozenset().union(*(changed for what, changed in self.events if what != "assigned"))

    @property
    def values(self) -> list[str]:
        return [record.value for record in self.records]

    def close(self, timeout_s: float = HANG_S) -> None:
        """Leave the group and close the client; returns when that is done."""
        self.begin_close()
        assert self.ended.wait(timeout_s), f"{self.name} was still closing after {timeout_s} s"
        assert self.failure is None, f"{self.name} failed: {self.failure}"

    def begin_close(self) -> None:
        raise NotImplementedError

    def abandon(self) -> None:
        """End without leaving the group, as a crash would. Not every library can."""
        raise NotImplementedError

    def __repr__(self) -> str:
        state = f"failed: {self.failure}" if self.failure else f"has {sorted(self.assignment)}"
        return f"<{self.name} {state}, {len(self.records)} records>"


Open = Callable[[str, str, MemberOptions], Member]
"""(name, bootstrap, options)"""

_LIBRARIES = {
    "confluent": ("group_members_python", "ConfluentMember"),
    "kafka-python": ("group_members_python", "KafkaPythonMember"),
    "aiokafka": ("group_members_python", "AioKafkaMember"),
    "ottla": ("group_members_ottla", "OttlaMember"),
    "ottla-aio": ("group_members_ottla", "OttlaAioMember"),
}


class Members:
    """All members of a test; those still open are closed at its end."""

    def __init__(self, java: Callable[[], Open]) -> None:
        self._java = java
        self._open: list[Member] = []
        self._numbers = count(1)

    def open(self, library: str, bootstrap: str, options: MemberOptions) -> Member:
        """A new member; it joins in the background."""
        name = f"{options.group}-{library}-{next(self._numbers)}"
        if library == "java":
            member = self._java()(name, bootstrap, options)
        else:
            module, kind = _LIBRARIES[library]
            member = getattr(import_module(f"tests.support.peers.{module}"), kind)(name, bootstrap, options)
        self._open.append(member)
        return member

    def close(self) -> None:
        left = [member for member in self._open if not member.ended.is_set()]
        for member in left:
            member.begin_close()
        for member in left:
            member.ended.wait(60)
        self._open.clear()

    def __enter__(self) -> Members:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def all_of(topic: str, partitions: int) -> frozenset[Partition]:
    """Every partition of a topic."""
    return frozenset((topic, index) for index in range(partitions))


def is_shared(members: Sequence[Member], partitions: frozenset[Partition], idle: int = 0) -> bool:
    """Whether the members have all partitions between them, none twice, and all but `idle` of them have some."""
    owned = [each for member in members for each in member.assignment]
    without = sum(not member.assignment for member in members)
    return len(owned) == len(partitions) and set(owned) == partitions and without == idle


def await_shared(members: Sequence[Member], partitions: frozenset[Partition], idle: int = 0, timeout_s: float = HANG_S) -> None:
    """Return when the members share the partitions and no rebalance follows."""

    def settled() -> bool:
        before = [len(member.events) for member in members]
        if not is_shared(members, partitions, idle):
            return False
        time.sleep(2 * HEARTBEAT_MS / 1000)  # a running rebalance shows within two heartbeats
        return before == [len(member.events) for member in members] and is_shared(members, partitions, idle)

    await_members(members, settled, f"{len(partitions)} partitions to be shared", timeout_s)


def await_values(members: Sequence[Member], expected: Iterable[str], timeout_s: float = HANG_S) -> None:
    """Return when every expected value has been read by one of the members."""
    wanted = set(expected)
    await_members(members, lambda: wanted <= {value for member in members for value in member.values}, "records", timeout_s)


def await_members(members: Sequence[Member], condition: Callable[[], bool], what: str, timeout_s: float) -> None:
    """Return when `condition` holds; no member may fail before."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert not any(member.failure for member in members), f"while waiting for {what}: {list(members)}"
        assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}: {list(members)}"
        time.sleep(0.01)
