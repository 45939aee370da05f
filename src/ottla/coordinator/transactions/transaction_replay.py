"""The fast path of loading: replays records of transactions from their bytes.

It decodes no messages, which is several times as fast. Records in any other form than below, damaged ones included, are left to
`TransactionTable.replay`, the general path; a test compares the state after both.

    key        int16 0 | int16 size, transactional id
    value      int16 1 | int64 producer | int16 epoch | int32 timeout | int8 state | partitions | times | tags
    partitions uint8 count + 1 (0: null), of each uint8 size + 1, topic | uint8 count + 1, int32 indexes | uint8 0
    times      int64 update | int64 start
    tags       uint8 count, of each uint8 tag | uint8 size | number
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error, unpack_from
from typing import TYPE_CHECKING, Any

from ottla.coordinator.contract import Producer
from ottla.coordinator.transactions.transaction import NO_EPOCH, NO_ID, Transaction, TransactionState
from ottla.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.coordinator.transactions.table import TransactionTable
    from ottla.records.kernels import Record

_key_head = Struct(">hh").unpack_from
_value_head = Struct(">hqhib").unpack_from
_times_in = Struct(">qq").unpack_from
_times_and_tags_in = Struct(">qq3sq2sh").unpack_from
"""The end of most values: times, then two tags, the previous producer id and the client's version."""
_TIMES_AND_TAGS_SIZE = 31
_WRITTEN_TAGS = (b"\x02\x00\x08", b"\x02\x02")
_TYPE = 0
_KEY_HEAD_SIZE = 4
_VERSION = 1
_PARTITIONS_AT = 17
_TIMES_SIZE = 16
_STATES = tuple(TransactionState)
_TAG_SIZES = (8, 8, 2, 2)
"""By tag: previous producer id, next producer id, client's version, next epoch."""
_ONE_BYTE_MAX = 127
"""The largest varint of one byte."""
_REMEMBERED_MAX = 10_000

_new: Any = tuple.__new__
_Tags = tuple[int, int, int, int]
"""Previous producer id, next producer id, client's version, next epoch."""


class FastTransactionReplay:
    """Replays records of transactions into their table. For one load: it caches the partitions that it has read."""

    __slots__ = ("_partitions", "_table")

    def __init__(self, table: TransactionTable) -> None:
        self._table = table
        self._partitions: dict[bytes, frozenset[TopicPartition]] = {}
        """By their bytes. A producer keeps writing to the same partitions, and each of its records lists them."""

    def replay(self, records: Sequence[Record], at: int, producer: Producer | None) -> int:
        """See the contract of `FastReplay`."""
        table = self._table
        for index in range(at, len(records)):
            key, value = records[index].key, records[index].value
            if key is None or len(key) < _KEY_HEAD_SIZE:
                return index
            kind, size = _key_head(key)
            if kind != _TYPE or size != len(key) - _KEY_HEAD_SIZE:
                return index
            try:
                transactional_id = key[_KEY_HEAD_SIZE:].decode()
                known = None if value is None else self._transaction_in(value, transactional_id)
            except (error, IndexError, UnicodeDecodeError):
                return index
            if known is not None:
                table.by_id[transactional_id] = known
            elif value is None:
                table.remove(transactional_id)
            else:
                return index
        return len(records)

    def _transaction_in(self, value: bytes, transactional_id: str) -> Transaction | None:
        """The transaction in a value; None, or an error from reading past its end, if it needs the general path."""
        version, producer_id, epoch, timeout_ms, state = _value_head(value)
        position = _partitions_end(value)
        if version != _VERSION or not 0 <= state < len(_STATES) or position < 0:
            return None
        written = value[_PARTITIONS_AT:position]
        partitions = self._partitions.get(written)
        if partitions is None:
            if len(self._partitions) >= _REMEMBERED_MAX:
                self._partitions.clear()
            partitions = self._partitions[written] = _partitions_in(written)
        next_id, next_epoch, before, between = NO_ID, NO_EPOCH, b"", b""
        if len(value) - position == _TIMES_AND_TAGS_SIZE:
            update_ms, start_ms, before, previous_id, between, client_version = _times_and_tags_in(value, position)
        if (before, between) != _WRITTEN_TAGS:
            update_ms, start_ms = _times_in(value, position)
            tags = _tags_in(value, position + _TIMES_SIZE)
            if tags is None:
                return None
            previous_id, next_id, client_version, next_epoch = tags
        fields = (transactional_id, producer_id, epoch, _STATES[state], timeout_ms, partitions, start_ms, update_ms)
        known: Transaction = _new(Transaction, (*fields, previous_id, next_id, client_version, next_epoch))
        return known


def _partitions_end(value: bytes) -> int:
    """Where the partitions end; negative, or an error from reading past the end, if they need the general path."""
    position = _PARTITIONS_AT + 1
    if value[_PARTITIONS_AT] > _ONE_BYTE_MAX:
        return -1
    for _ in range(value[_PARTITIONS_AT] - 1):
        name_size = value[position]
        position += name_size
        count = value[position]
        if not 1 <= name_size <= _ONE_BYTE_MAX or not 1 <= count <= _ONE_BYTE_MAX:
            return -1
        position += 4 * count - 3
        if value[position] != 0:
            return -1
        position += 1
    return position


def _partitions_in(written: bytes) -> frozenset[TopicPartition]:
    """The partitions in bytes whose sizes have been checked."""
    found: list[TopicPartition] = []
    position = 1
    for _ in range(written[0] - 1):
        name_end = position + written[position]
        name = written[position + 1 : name_end].decode()
        indexes = unpack_from(f">{written[name_end] - 1}i", written, name_end + 1)
        found += [TopicPartition(name, index) for index in indexes]
        position = name_end + 4 * len(indexes) + 2
    return frozenset(found)


def _tags_in(value: bytes, position: int) -> _Tags | None:
    """The tags from `position` to the end; None if they need the general path."""
    values = [NO_ID, NO_ID, 0, NO_EPOCH]
    last_tag = -1
    for _ in range(value[position]):
        tag, size = value[position + 1], value[position + 2]
        if not last_tag < tag < len(_TAG_SIZES) or size != _TAG_SIZES[tag]:
            return None
        values[tag] = int.from_bytes(value[position + 3 : position + 3 + size], "big", signed=True)
        position += 2 + size
        last_tag = tag
    if position + 1 != len(value):
        return None
    previous_id, next_id, client_version, next_epoch = values
    return previous_id, next_id, client_version, next_epoch
