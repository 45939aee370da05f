"""`FormerIds`: the ids that topics had before they were deleted and created again.

A broker that lags behind still answers with a topic's former id. Topic ids are never used twice, so an id that another one has
replaced is old news: a consumer that took it would reset its positions, and again at the next answer of a current broker.

A client can also meet the ids in the wrong order: the current one first, then the former one from a broker that lags, which
looks like a topic that was created again. So a replaced id is ignored only for `IGNORED_MS_MAX`, counted from its first answer
in a row. An answer with the id that is known ends the row.

Memory is bounded: `IDS_MAX` ids of a topic, and those of the `TOPICS_MAX` topics that were forgotten last.
"""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid

IDS_MAX = 3
TOPICS_MAX = 1_000
IGNORED_MS_MAX = 5_000


class _Former:
    """The former ids of one topic."""

    __slots__ = ("ids", "ignored_since_ms")

    def __init__(self) -> None:
        self.ids: list[Uuid] = []
        """Oldest first. While the topic is not known, the last one is the id that it had until then."""
        self.ignored_since_ms: int | None = None


class FormerIds:
    """The former ids of all topics, by name."""

    def __init__(self) -> None:
        self._topics: dict[str, _Former] = {}

    def forgotten(self, name: str, topic_id: Uuid) -> None:
        """The topic with this id is gone, or another id replaces it."""
        if topic_id == ZERO_UUID:
            return
        former = self._topics.pop(name, None) or _Former()
        former.ids = [*former.ids, topic_id][-IDS_MAX:]
        self._topics[name] = former
        if len(self._topics) > TOPICS_MAX:
            del self._topics[next(iter(self._topics))]

    def takes(self, name: str, topic_id: Uuid, known: Uuid | None, now_ms: int) -> bool:
        """Whether an answer with this id counts. `known`: the topic's id until now; None if the topic is not known."""
        former = self._topics.get(name)
        if former is None:
            return True
        # Brokers without topic ids send zeros: they say nothing about the id.
        current = former.ids[-1] if known is None or known == ZERO_UUID else known
        if topic_id != current and topic_id in former.ids:
            if former.ignored_since_ms is None:
                former.ignored_since_ms = now_ms
            if now_ms - former.ignored_since_ms < IGNORED_MS_MAX:
                return False
        former.ignored_since_ms = None
        former.ids = [each for each in former.ids if each != topic_id]
        if not former.ids:
            del self._topics[name]
        return True

    def __len__(self) -> int:
        return len(self._topics)
