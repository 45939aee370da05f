"""Ottla's exceptions and Kafka's error codes.

There are three kinds of error (DESIGN.md, "Three kinds of wrong"). A Kafka error code is a value in a response. A peer's
protocol fault closes that peer's connection. A broken invariant stops the node. Damage found in files is a fourth kind; its
error always names the file, the position and what to do next.
"""

from ottla.errors.faults import (
    BrokenInvariant,
    CorruptFile,
    CorruptRecords,
    DecodeError,
    DirectoryInUse,
    KafkaError,
    LogDirectoryFailed,
    OttlaError,
    OutOfDescriptors,
    is_out_of_descriptors,
    remedy_for,
)

__all__ = [
    "BrokenInvariant",
    "CorruptFile",
    "CorruptRecords",
    "DecodeError",
    "DirectoryInUse",
    "KafkaError",
    "LogDirectoryFailed",
    "OttlaError",
    "OutOfDescriptors",
    "is_out_of_descriptors",
    "remedy_for",
]
