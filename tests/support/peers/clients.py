"""One interface to all client libraries: records to send, their results, records read. One module per library implements it.

    CLIENTS["aiokafka"]().produce(bootstrap, "orders", [Outgoing(b"value", key=b"k")], acks="all")

Every call creates a client, uses it and closes it, so that tests do not affect each other. Error codes are Kafka's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol

Headers = tuple[tuple[str, bytes | None], ...]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CREATE_TIME, LOG_APPEND_TIME = 0, 1


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to send."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """The partition and offset of a sent record. With acks=0 the offset is unknown: -1."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a record was not appended: Kafka's error code, or the library's own error."""

    code: int
    text: str = field(compare=False, default="")


@dataclass(frozen=True, slots=True)
class Incoming:
    """A record as it was read."""

    partition: int
    offset: int
    value: bytes | None
    key: bytes | None
    timestamp_ms: int
    timestamp_type: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """How to send. `batch_bytes` and `linger_ms` decide how many records share a batch."""

    acks: int | str = "all"
    idempotent: bool = False
    codec: str = "none"
    linger_ms: int = 5
    batch_bytes: int = 16384
    request_bytes_max: int = 1 << 20
    partitioner: str = ""
    timeout_s: float = 60


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """How to read."""

    isolation: str = "read_uncommitted"
    wait_ms_max: int = 500
    bytes_min: int = 1
    bytes_max: int = 50 << 20
    partition_bytes_max: int = 1 << 20
    timeout_s: float = 60


class ClientLibrary(Protocol):
    """One library. `start` is an offset, or -2 for the beginning and -1 for the end, as in Kafka's protocol."""

    name: str

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Outgoing], options: ProducerOptions
    ) -> list[Receipt | Refused]:
        """Send all records and wait for all; returns the result of each."""
        ...

    def consume(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: int, count: int, options: ConsumerOptions
    ) -> list[Incoming]:
        """Assign the partitions and read `count` records in all; returns fewer (or none) after `timeout_s`."""
        ...

    def offsets_for_time(self, bootstrap: str, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """The first offset at or after a time; None if there is none."""
        ...

    def ends(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        """The log start offset, and the log end offset."""
        ...


_MODULES = {
    "confluent": ("tests.support.peers.clients_confluent", "Confluent"),
    "kafka-python": ("tests.support.peers.clients_kafka_python", "KafkaPython"),
    "aiokafka": ("tests.support.peers.clients_aiokafka", "AioKafka"),
}


def _maker(module: str, name: str) -> Callable[[], ClientLibrary]:
    def make() -> ClientLibrary:
        made: ClientLibrary = getattr(import_module(module), name)()
        return made

    return make


CLIENTS: dict[str, Callable[[], ClientLibrary]] = {name: _maker(*where) for name, where in _MODULES.items()}
"""The libraries by name; each is imported when it is first used."""
