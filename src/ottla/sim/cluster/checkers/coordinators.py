"""Which nodes have been the coordinators of groups, by the committed metadata. Checks nothing itself.

A coordinator that cannot reach the other nodes is deposed without knowing it, and answers from what it has. Only the committed
metadata tells such an answer from that of the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.coordinator.placement import partition_for
from ottla.ids import OFFSETS_TOPIC
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import NO_LEADER
from ottla.sim.cluster.checkers.checker import ClusterChecker


class _Term(NamedTuple):
    """A node leads a partition of __consumer_offsets until another does; the first one since the beginning."""

    node: int
    since_s: float


class Coordinators(ClusterChecker):
    """Remembers the last leader of each partition of __consumer_offsets."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._terms: dict[int, _Term] = {}

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        topic = image.topics.by_name.get(OFFSETS_TOPIC)
        if topic is None or topic is before.topics.by_name.get(OFFSETS_TOPIC):
            return
        for number, state in topic.partitions.items():
            known = self._terms.get(number)
            # While there is no leader, nobody commits: the last one still has all that is committed.
            if state.leader != NO_LEADER and (known is None or known.node != state.leader):
                self._terms[number] = _Term(state.leader, 0.0 if known is None else self._now_s())

    def is_coordinator(self, group: str, node: int, since_s: float) -> bool:
        """Whether a node is the coordinator of a group, and no other was since then."""
        term = self._terms[partition_for(group, len(self._terms))]
        return term.node == node and term.since_s <= since_s
