"""The named deadlines of a shard. Setting one again moves it. No real timers: the shard's runtime asks what is due."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush

from ottla.coordinator.contract import Effects, Instant

Action = Callable[[Instant], Effects]
_STALE_MIN = 64


class Timers:
    """Deadlines with their actions. All times are steady milliseconds."""

    __slots__ = ("_actions", "_heap", "_order")

    def __init__(self) -> None:
        self._actions: dict[Hashable, tuple[int, int, Action]] = {}
        self._heap: list[tuple[int, int, Hashable]] = []  # also holds stale entries of moved or cancelled deadlines
        self._order = 0  # equal deadlines are due in the order in which they were set

    def __len__(self) -> int:
        return len(self._actions)

    def __contains__(self, name: Hashable) -> bool:
        return name in self._actions

    def set(self, name: Hashable, deadline_ms: int, action: Action) -> None:
        """Make `action` due at `deadline_ms`. Replaces the deadline set under `name`, if any."""
        self._order += 1
        self._actions[name] = (deadline_ms, self._order, action)
        heappush(self._heap, (deadline_ms, self._order, name))
        if len(self._heap) > 2 * len(self._actions) + _STALE_MIN:
            self._heap = [(deadline, order, known) for known, (deadline, order, _) in self._actions.items()]
            heapify(self._heap)

    def cancel(self, name: Hashable) -> None:
        self._actions.pop(name, None)

    def deadline_of(self, name: Hashable) -> int | None:
        known = self._actions.get(name)
        return None if known is None else known[0]

    @property
    def next_deadline_ms(self) -> int | None:
        heap = self._heap
        while heap:
            deadline_ms, order, name = heap[0]
            known = self._actions.get(name)
            if known is not None and known[1] == order:
                return deadline_ms
            heappop(heap)
        return None

    def pop_due(self, now: Instant) -> Action | None:
        """Remove and return the action that has been due longest; None if none is due."""
        deadline_ms = self.next_deadline_ms
        if deadline_ms is None or deadline_ms > now.steady_ms:
            return None
        _, _, name = heappop(self._heap)
        return self._actions.pop(name)[2]
