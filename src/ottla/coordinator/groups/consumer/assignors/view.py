"""The input and output of an assignor, without records or epochs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.ids import Uuid

Assignment = Mapping[Uuid, tuple[int, ...]]
"""Topic → partitions, in order."""


class AssignedMember(NamedTuple):
    """A member as an assignor sees it."""

    instance_id: str | None
    topics: frozenset[Uuid]
    """The existing topics that it reads."""
    before: Assignment
    """Its previous target."""


class GroupView(NamedTuple):
    """A group as an assignor sees it."""

    members: Mapping[str, AssignedMember]
    is_homogeneous: bool
    """All members read the same topics."""
    partition_counts: Mapping[Uuid, int]
    """Topic → number of partitions, for every topic that a member reads."""


Assignor = Callable[[GroupView], dict[str, Assignment]]
"""Returns member id → target, for every member."""
