"""Committed metadata is never lost or changed: all nodes commit the same batches, and every new leader has all of them.

An active controller decides only after a batch of its epoch is committed, and answers a change only when it is committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Answer, ClusterChecker, Entry, Logged


class CommittedLog(ClusterChecker):
    """The log as the first node to commit a batch has it."""

    def __init__(self) -> None:
        self.end_offset = 0
        self.judged = 0
        self._entries: dict[int, Entry] = {}
        self._committed_in: dict[int, int] = {}
        """Base offset → the epoch in which the first node regarded it as committed."""
        self._epochs: dict[int, None] = {}
        self._watermarks: dict[str, int] = {}

    def started(self, node: str) -> None:
        self._watermarks.pop(node, None)

    def committed(self, node: str, epoch: int, is_leader: bool, offset: int, batches: Sequence[Logged]) -> None:
        if offset < self._watermarks.get(node, 0):
            raise Violation(f"{node} had committed up to {self._watermarks[node]}, and now up to {offset}")
        self._watermarks[node] = offset
        for logged in batches:
            entry = logged.entry
            known = self._entries.get(entry.base_offset)
            if known is None and entry.base_offset < self.end_offset:
                raise Violation(f"{node} commits batch {entry}: no other node has committed a batch that begins there")
            if known is None:
                if entry.base_offset > self.end_offset:
                    raise Violation(f"{node} commits batch {entry}, and nobody has committed those from {self.end_offset} on")
                self._entries[entry.base_offset] = entry
                self._committed_in[entry.base_offset] = epoch
                self._epochs[entry.epoch] = None
                self.end_offset = entry.last_offset + 1
            elif known != entry:
                raise Violation(f"{node} commits batch {entry}, and committed there was batch {known}")
            self.judged += 1
        if is_leader and batches and batches[-1].entry.epoch != epoch:
            raise Violation(f"{node} leads epoch {epoch} and commits up to {offset} without a batch of its own epoch")

    def led(self, node: str, epoch: int, log: Sequence[Logged]) -> None:
        start = log[0].entry.base_offset if log else 0
        mine = {logged.entry.base_offset: logged.entry for logged in log}
        for base_offset, entry in self._entries.items():
            if base_offset < start or self._committed_in[base_offset] >= epoch:
                continue  # a paused candidate may begin to lead an epoch that is over: then it commits nothing
            if mine.get(base_offset) != entry:
                has = mine.get(base_offset, "nothing")
                raise Violation(f"{node} leads epoch {epoch} and has {has} where batch {entry} was committed before")

    def activated(self, node: str, epoch: int) -> None:
        if epoch not in self._epochs:
            raise Violation(f"the controller of {node} is active in epoch {epoch}, and no batch of that epoch is committed")

    def answered(self, node: str, answer: Answer) -> None:
        for entry in answer.entries:
            if self._entries.get(entry.base_offset) != entry:
                name = type(answer.request).__name__.removesuffix("Request")
                raise Violation(f"the controller of {node} has answered {name}, and batch {entry} of it is not committed")
