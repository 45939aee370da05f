"""ProducerSnapshot. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class ProducerEntry(Struct):
    __slots__ = ("producer_id", "epoch", "last_sequence", "last_offset", "offset_delta", "timestamp", "coordinator_epoch", "current_txn_first_offset")

    def __init__(
        self,
        *,
        producer_id: int = 0,
        epoch: int = 0,
        last_sequence: int = 0,
        last_offset: int = 0,
        offset_delta: int = 0,
        timestamp: int = 0,
        coordinator_epoch: int = 0,
        current_txn_first_offset: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.last_sequence = last_sequence
        self.last_offset = last_offset
        self.offset_delta = offset_delta
        self.timestamp = timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = current_txn_first_offset
        self.unknown_tags = None


class ProducerSnapshot(Message):
    __slots__ = ("crc", "producer_entries")

    def __init__(
        self,
        *,
        crc: int = 0,
        producer_entries: list[ProducerEntry] = EMPTY,
    ) -> None:
        self.crc = crc
        self.producer_entries = [] if producer_entries is EMPTY else producer_entries
        self.unknown_tags = None

    SCHEMA = """\
ProducerSnapshot type=data versions=1 flexible=none
  Crc uint32 1
  ProducerEntries []ProducerEntry 1
    ProducerId int64 1
    Epoch int16 1
    LastSequence int32 1
    LastOffset int64 1
    OffsetDelta int32 1
    Timestamp int64 1
    CoordinatorEpoch int32 1
    CurrentTxnFirstOffset int64 1
"""
    STRUCTS = (ProducerEntry,)
