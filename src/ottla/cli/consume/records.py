"""Records of one partition in groups that share what formatters print once: the kind of timestamp and the leader epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ottla.client.consumer.record import ConsumerRecord
    from ottla.records.kernels import Record

    Shown = Record | ConsumerRecord[bytes | None, bytes | None]

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_SHARED = attrgetter("timestamp_type", "leader_epoch")


class Consumed(NamedTuple):
    """Records in order, and what they share."""

    records: Sequence[Shown]
    timestamp_type: str
    leader_epoch: int


def group_records(records: Sequence[ConsumerRecord[bytes | None, bytes | None]]) -> Iterator[Consumed]:
    """Records of one partition, cut where the kind of timestamp or the leader epoch changes."""
    epoch = records[0].leader_epoch
    # Epochs never go down within a partition, so the last record is enough for them.
    if records[-1].leader_epoch == epoch and len({record.timestamp_type for record in records}) == 1:
        yield Consumed(records, TIMESTAMP_TYPES[records[0].timestamp_type], epoch)
        return
    for (timestamp_type, each), group in groupby(records, _SHARED):
        yield Consumed(list(group), TIMESTAMP_TYPES[timestamp_type], each)
