"""What tests say to any client library: records to send, what came of them, records read. One module per library does it.

    CLIENTS["aiokafka"]().produce(bootstrap, "orders", [Outgoing(b"value", key=b"k")], acks="all")

Every call makes a client, uses it and closes it, so that nothing carries over from test to test. Error codes are Kafka's
numbers.
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
    """Where a sent record went. With acks=0 nobody knows: offset -1."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a record did not go anywhere: Kafka's error code, or what the library calls its own."""

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
        """Send all, wait for all; what came of each."""
        ...

    def consume(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: int, count: int, options: ConsumerOptions
    ) -> list[Incoming]:
        """Assign the partitions, read `count` records in all; fewer (or none) once `timeout_s` has passed."""
        ...

    def offsets_for_time(self, bootstrap: str, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """The first offset at or after a time; None where there is none."""
        ...

    def ends(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        """The first offset, and the one after the last."""
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
