"""`Waits`: which requests of a cluster have no answer yet, since when, and why. For commands that tell a person. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from ottla.client_core.machine import ANY_NODE, CONTROLLER
from ottla.errors import KafkaError
from ottla.wire.api_table import ApiKey
from ottla.wire.apis import APIS

_LOOKING: Final = frozenset({ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER})
"""Asked between two attempts: their answers do not end a wait."""
_NO_API: Final = -1
_PAUSE_S_MAX: Final = 2.5
"""Attempts that are further apart do not belong together. The backoff between them is at most a second by default."""


class Wait(NamedTuple):
    """A request without an answer, or (`api` is empty) with answers that make it be asked again."""

    node_id: int
    key: int
    since_s: float
    reason: KafkaError | None
    """Why the last attempt failed; None while the first one lasts."""

    @property
    def is_for_controller(self) -> bool:
        """Whether the controller answers it: through the broker that was asked."""
        return self.node_id == CONTROLLER or self.key == ApiKey.DESCRIBE_QUORUM

    @property
    def api(self) -> str:
        return "" if self.key == _NO_API else APIS[self.key].name


class Waits:
    """The requests that are under way, and those that failed and may be asked again."""

    def __init__(self) -> None:
        self._waits: dict[tuple[int, int], Wait] = {}
        self._under_way: dict[tuple[int, int], int] = {}
        self._repeated: Wait | None = None
        self._repeated_s = 0.0

    @contextmanager
    def asking(self, node_id: int, key: int, now_s: float) -> Iterator[None]:
        """A request is under way."""
        place = (node_id, key)
        self._waits.setdefault(place, Wait(node_id, key, now_s, None))
        self._under_way[place] = self._under_way.get(place, 0) + 1
        try:
            yield
        except KafkaError as error:
            self._left(place)
            if error.is_retriable and place in self._waits:
                self._waits[place] = self._waits[place]._replace(reason=error)
            else:
                self._waits.pop(place, None)
            raise
        except BaseException:
            self._left(place)
            self._waits.pop(place, None)
            raise
        self._left(place)
        self._waits.pop(place, None)
        if key not in _LOOKING:  # what failed and is not under way may have been answered by another node
            self._waits = {each: wait for each, wait in self._waits.items() if each in self._under_way}

    def _left(self, place: tuple[int, int]) -> None:
        self._under_way[place] -= 1
        if not self._under_way[place]:
            del self._under_way[place]

    def repeated(self, error: KafkaError, now_s: float) -> None:
        """An attempt is repeated because of an error."""
        is_same = self._repeated is not None and now_s - self._repeated_s < _PAUSE_S_MAX
        since_s = self._repeated.since_s if is_same and self._repeated is not None else now_s
        self._repeated, self._repeated_s = Wait(ANY_NODE, _NO_API, since_s, error), now_s

    def oldest(self, now_s: float) -> Wait | None:
        """The request that has waited longest; of those that began together, one whose node is known."""
        waits = list(self._waits.values())
        if self._repeated is not None and now_s - self._repeated_s < _PAUSE_S_MAX:
            waits.append(self._repeated)
        return min(waits, key=lambda each: each.since_s, default=None)
