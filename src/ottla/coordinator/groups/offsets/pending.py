"""PendingOffsets: offsets that were committed in transactions that are still open.

They take effect with the transaction's marker in the same partition: a commit makes them the group's offsets, an abort drops
them. Until then, a fetch of stable offsets gets UNSTABLE_OFFSET_COMMIT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ottla.coordinator.groups.offsets.store import CommittedOffset, OffsetStore, Place, StoredOffset


class PendingOffsets:
    """Pending offsets by producer id: a producer has one transaction at a time."""

    __slots__ = ("_by_producer", "_producers")

    def __init__(self) -> None:
        self._by_producer: dict[int, OffsetStore] = {}
        self._producers: dict[str, dict[Place, dict[int, None]]] = {}
        """The producer ids with an open transaction for a place, by group; in order."""

    def put(self, producer_id: int, place: Place, committed: StoredOffset) -> None:
        store = self._by_producer.get(producer_id)
        if store is None:
            store = self._by_producer[producer_id] = OffsetStore()
        store.put(place, committed)
        self._producers.setdefault(place[0], {}).setdefault(place, {})[producer_id] = None

    def drop(self, place: Place) -> None:
        """Drop all pending offsets of a place that was deleted."""
        of_group = self._producers.get(place[0])
        if of_group is None:
            return
        for producer_id in of_group.pop(place, ()):
            self._by_producer[producer_id].remove(place)
        if not of_group:
            del self._producers[place[0]]

    def end(self, producer_id: int) -> OffsetStore | None:
        """Remove and return the offsets of the producer's transaction; None if there are none."""
        ended = self._by_producer.pop(producer_id, None)
        if ended is None:
            return None
        for group_id, topic, partitions in ended.by_topic():
            of_group = self._producers[group_id]
            for partition in partitions:
                place = (group_id, topic, partition)
                producers = of_group[place]
                del producers[producer_id]
                if not producers:
                    del of_group[place]
            if not of_group:
                del self._producers[group_id]
        return ended

    def has_group(self, group_id: str) -> bool:
        return group_id in self._producers

    def has(self, place: Place) -> bool:
        of_group = self._producers.get(place[0])
        return of_group is not None and place in of_group

    def places_of_group(self, group_id: str) -> Iterator[Place]:
        return iter(self._producers.get(group_id, ()))

    def of_topics(self, names: Mapping[str, object]) -> Iterator[tuple[Place, CommittedOffset]]:
        for store in self._by_producer.values():
            yield from store.of_topics(names)

    def __iter__(self) -> Iterator[tuple[int, Place, CommittedOffset]]:
        for producer_id, store in self._by_producer.items():
            for place, committed in store:
                yield producer_id, place, committed
