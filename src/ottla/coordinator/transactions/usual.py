"""Records of transactions replayed from their bytes, while a shard is loaded.

Read here without making messages of them, which is several times as fast; whatever is not as written below, also anything
damaged, is left to `TransactionTable.replay`, which says what a record means; a test holds the two to the same state.

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
from ottla.coordinator.transactions.states import TransactionState
from ottla.coordinator.transactions.transaction import NO_ID, Transaction
from ottla.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.coordinator.transactions.table import TransactionTable
    from ottla.records.kernels import Record

_key_head = Struct(">hh").unpack_from
_value_head = Struct(">hqhibB").unpack_from
_times_in = Struct(">qq").unpack_from
_TYPE = 0
_KEY_HEAD_SIZE = 4
_VERSION = 1
_PARTITIONS_AT = 17
_TIMES_SIZE = 16
_STATES = tuple(TransactionState)
_TAG_SIZES = (8, 8, 2, 2)
"""The producer ids before and after, the client's version, the epoch after, which nobody here asks for."""
_ONE_BYTE_MAX = 127
"""The largest size that is written as one byte."""
_NOWHERE: frozenset[TopicPartition] = frozenset()
_TAGS_UNSAID = (NO_ID, NO_ID, 0)

_new: Any = tuple.__new__


class UsualTransactions:
    """Puts usual records of transactions into their table."""

    __slots__ = ("_table",)

    def __init__(self, table: TransactionTable) -> None:
        self._table = table

    def replay(self, records: Sequence[Record], at: int, producer: Producer | None) -> int:
        """See the contract of `UsualRecords`."""
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
                known = None if value is None else _transaction_in(value, transactional_id)
            except (error, IndexError, UnicodeDecodeError):
                return index
            if known is not None:
                table.by_id[transactional_id] = known
            elif value is None:
                table.remove(transactional_id)
            else:
                return index
        return len(records)


def _transaction_in(value: bytes, transactional_id: str) -> Transaction | None:
    """What a value says; None, or an error of whatever reads beyond its end, if it is not a usual one."""
    version, producer_id, epoch, timeout_ms, state, count = _value_head(value)
    if version != _VERSION or not 0 <= state < len(_STATES):
        return None
    partitions, position = _NOWHERE, _PARTITIONS_AT + 1
    if count > 1:
        read = _partitions_in(value, count - 1, position)
        if read is None:
            return None
        partitions, position = read
    update_ms, start_ms = _times_in(value, position)
    position += _TIMES_SIZE
    previous_id, next_id, client_version = _TAGS_UNSAID
    last_tag = -1
    for _ in range(value[position]):
        tag, size = value[position + 1], value[position + 2]
        if not last_tag < tag < len(_TAG_SIZES) or size != _TAG_SIZES[tag]:
            return None
        number = int.from_bytes(value[position + 3 : position + 3 + size], "big", signed=True)
        position += 2 + size
        last_tag = tag
        if tag == 0:
            previous_id = number
        elif tag == 1:
            next_id = number
        elif tag == 2:
            client_version = number
    if position + 1 != len(value):
        return None
    told = (transactional_id, producer_id, epoch, _STATES[state], timeout_ms, partitions, start_ms, update_ms)
    known: Transaction = _new(Transaction, (*told, previous_id, next_id, client_version))
    return known


def _partitions_in(value: bytes, count: int, position: int) -> tuple[frozenset[TopicPartition], int] | None:
    """The partitions of `count` topics, and where they end; None, or an error, if they are not written as usual."""
    if count >= _ONE_BYTE_MAX:
        return None
    found: list[TopicPartition] = []
    for _ in range(count):
        name_end = position + value[position]
        indexes_at = name_end + 1
        index_count = value[name_end] - 1
        if not 1 <= value[position] <= _ONE_BYTE_MAX or not 0 <= index_count < _ONE_BYTE_MAX:
            return None
        name = value[position + 1 : name_end].decode()
        indexes = unpack_from(f">{index_count}i", value, indexes_at)
        found += [_new(TopicPartition, (name, index)) for index in indexes]
        position = indexes_at + 4 * index_count
        if value[position] != 0:
            return None
        position += 1
    return frozenset(found), position
