"""Speed of encoding and decoding the most frequent messages, compared with kafka-python's compiled codecs in the same run.

    python -m bench.wire_bench [--json]

Both decode the same bytes. kafka-python's encoders get an equal message from its own decoder.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.timing import per_call_seconds

from ottla.wire import Message, decoder, encode_bytes, encoder
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

RECORDS = bytes(16 * 1024)
TOPIC_ID = bytes(range(16))


@dataclass(frozen=True)
class Case:
    name: str
    message: Message
    version: int


def _produce(partitions: int) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=RECORDS) for index in range(partitions)]
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(topic_id=TOPIC_ID, partition_data=data)])


def _fetch(partitions: int) -> FetchRequest:
    wanted = [
        FetchPartition(partition=index, current_leader_epoch=3, fetch_offset=1000 + index, partition_max_bytes=1 << 20)
        for index in range(partitions)
    ]
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 << 20,
        session_id=7,
        session_epoch=9,
        topics=[FetchTopic(topic_id=TOPIC_ID, partitions=wanted)],
    )


def _metadata_response(topics: int, partitions: int) -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node, host=f"broker-{node}.example.com", port=9092) for node in range(3)],
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name=f"topic-{number}",
                topic_id=TOPIC_ID,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=index, leader_id=1, leader_epoch=4, replica_nodes=[1, 2, 0], isr_nodes=[1, 2, 0]
                    )
                    for index in range(partitions)
                ],
            )
            for number in range(topics)
        ],
    )


CASES = (
    Case("Produce request, 1 partition", _produce(1), 13),
    Case("Produce request, 6 partitions", _produce(6), 13),
    Case("Fetch request, 1 partition", _fetch(1), 17),
    Case("Fetch request, 100 partitions", _fetch(100), 17),
    Case("Metadata request, 3 topics", MetadataRequest(topics=[MetadataRequestTopic(name=f"topic-{n}") for n in range(3)]), 12),
    Case("Metadata response, 20 × 6 partitions", _metadata_response(20, 6), 12),
)


def _peer_calls(case: Case, data: bytes) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """kafka-python's decoding of `data`, and its encoding of the result."""
    from kafka.protocol import consumer, metadata, producer

    cls = next(
        getattr(room, type(case.message).__name__)
        for room in (producer, consumer, metadata)
        if hasattr(room, type(case.message).__name__)
    )
    message = cls.decode(data, version=case.version)
    message._header = None  # its decoder leaves the field unset, and its encoder reads it
    return lambda: cls.decode(data, version=case.version), lambda: message.encode(version=case.version)


def measure(case: Case) -> dict[str, object]:
    data = encode_bytes(case.message, case.version)
    decode, encode = decoder(type(case.message), case.version), encoder(type(case.message), case.version)
    peer_decode, peer_encode = _peer_calls(case, data)
    decoding = per_call_seconds({"ottla": lambda: decode(data), "kafka-python": peer_decode})
    encoding = per_call_seconds({"ottla": lambda: encode(case.message), "kafka-python": peer_encode})
    return {
        "case": f"{case.name} (v{case.version})",
        "decode_us": decoding["ottla"] * 1e6,
        "decode_ratio": decoding["kafka-python"] / decoding["ottla"],
        "encode_us": encoding["ottla"] * 1e6,
        "encode_ratio": encoding["kafka-python"] / encoding["ottla"],
    }


def main() -> None:
    rows = [measure(case) for case in CASES]
    if "--json" in sys.argv[1:]:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'message':<44}{'decode µs':>11}{'× kafka-python':>16}{'encode µs':>11}{'× kafka-python':>16}")
    for row in rows:
        print(
            f"{row['case']:<44}{row['decode_us']:>11.1f}{row['decode_ratio']:>16.1f}{row['encode_us']:>11.1f}{row['encode_ratio']:>16.1f}"
        )


if __name__ == "__main__":
    main()
