"""The kinds of wrong, and Kafka's error codes.

Three kinds are told apart everywhere (DESIGN.md, "Three kinds of wrong"): a Kafka error code is a value that travels in a
response; a peer's protocol fault closes that peer's connection; a broken invariant stops the node. Damage found in files is
a fourth, and always carries the file, the position and what to do next.
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
