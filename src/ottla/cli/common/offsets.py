"""Offsets of partitions by place (earliest, latest, …) or by timestamp, as one number for both."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.admin import offsets
from ottla.client.admin.offsets import FoundOffset, IsolationLevel, OffsetSpec
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError
from ottla.ids import TopicPartition

EARLIEST: int = OffsetSpec.EARLIEST
LATEST: int = OffsetSpec.LATEST
PLACES = {place.name.lower().replace("_", "-"): place for place in OffsetSpec}
"""Places by name. The negative number takes the place of a timestamp in ListOffsets."""


async def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], read_committed: bool = False
) -> dict[TopicPartition, FoundOffset | KafkaError]:
    """The offset of each partition at its timestamp or place, or the error that its leader answered."""
    places: dict[TopicPartition | tuple[str, int], OffsetSpec | str | int] = {
        each: OffsetSpec(number) if number < 0 else number for each, number in sorted(wanted.items())
    }
    results = await offsets.list_offsets(cluster, places, isolation_level=IsolationLevel(read_committed))
    errors = results.errors
    return {each: errors[each] if each in errors else results[each] for each in results}
