"""A batch that the fast path declines is not checked again: its CRC is computed once on the whole way into the log."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual

from ottla.broker.handlers.data import produce
from ottla.broker.requests.context import ConnectionInfo
from ottla.broker.requests.pipeline import RequestPipeline
from ottla.errors.codes import ErrorCode
from ottla.records import batch as batch_module
from ottla.records import kernel_batch, kernels
from ottla.records.compression import Codec
from ottla.records.layout import CRC_AT
from ottla.wire.codec import decode_all
from ottla.wire.headers import encode_request
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

INFO = ConnectionInfo(1, "PLAINTEXT", ("peer.example", 5123))
VERSION = 12


def damaged() -> bytearray:
    batch = make_batch(b"value")
    batch[CRC_AT] ^= 1
    return batch


CASES: dict[str, tuple[dict[str, object], Callable[[], list[bytearray]], list[int]]] = {
    "compressed, to a compacted topic": (
        {"cleanup.policy": "compact"},
        lambda: [make_batch(b"value", key=b"k", codec=Codec.GZIP)],
        [0],
    ),
    "without a key, to a compacted topic": (
        {"cleanup.policy": "compact"},
        lambda: [make_batch(b"value")],
        [ErrorCode.INVALID_RECORD],
    ),
    "to a topic with another codec": ({"compression.type": "gzip"}, lambda: [make_batch(b"value")], [0]),
    "damaged": ({}, lambda: [damaged()], [ErrorCode.CORRUPT_MESSAGE]),
    "the first of its producer": ({}, lambda: [make_batch(b"value", producer=(7, 0, 0))], [0]),
    "to be flushed": ({"flush.messages": 1}, lambda: [make_batch(b"value")], [0]),
    "good ones and a damaged one": (
        {},
        lambda: [make_batch(b"first"), make_batch(b"second"), damaged()],
        [0, 0, ErrorCode.CORRUPT_MESSAGE],
    ),
}


@pytest.fixture
def checksums(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what CRCs are computed of."""
    sizes: list[int] = []
    real = kernel_batch.crc32c

    def counted(covered: memoryview) -> int:
        sizes.append(len(covered))
        return real(covered)

    check: Any = kernels.BatchLimits.check
    monkeypatch.setitem(getattr(check, "__globals__", vars(kernel_batch)), "crc32c", counted)
    monkeypatch.setattr(batch_module, "crc32c", counted)
    return sizes


async def produced(
    config: dict[str, object], batches: list[bytearray], checksums: list[int], indexes: Sequence[int] = (0, 1, 2)
) -> list[int]:
    """The error codes of a request with these batches, one for each of the partitions `indexes`."""
    held = await HeldPartitions.open()
    await held.make_topic("t", 3, config)
    pipeline = RequestPipeline(held.services)
    assert pipeline.route_of(INFO, 0) is not None
    data = [PartitionProduceData(index=index, records=bytes(batch)) for index, batch in zip(indexes, batches, strict=False)]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)])
    checksums.clear()
    frame = b"".join(bytes(part) for part in encode_request(request, VERSION, 1, None))  # type: ignore[arg-type]
    reply = pipeline.handle(INFO, bytearray(frame[4:]))
    computed = list(checksums)
    if not isinstance(reply, list):
        return [0] if len(computed) == 1 else computed  # parked until the flush
    response = decode_all(ProduceResponse, VERSION, b"".join(bytes(part) for part in reply)[9:])  # type: ignore[arg-type]
    checksums[:] = computed
    return [answer.error_code for answer in response.responses[0].partition_responses]


@pytest.mark.parametrize("case", CASES)
def test_crc_of_a_declined_batch_is_computed_once(case: str, checksums: list[int]) -> None:
    config, make, codes = CASES[case]
    batches = make()
    assert virtual(produced(config, batches, checksums)) == codes
    assert len(checksums) == len(batches)


def test_checks_are_not_taken_for_another_batch_of_the_same_partition(checksums: list[int]) -> None:
    batches = [make_batch(b"good"), damaged(), damaged()]
    codes = virtual(produced({}, batches, checksums, indexes=(0, 1, 0)))
    assert codes == [ErrorCode.CORRUPT_MESSAGE] * 2, "the last batch of a partition counts"


@pytest.mark.parametrize(
    ("config", "codes"),
    [
        ({}, [0]),
        ({"confluent.value.subject.name.strategy": "RecordNameStrategy"}, [0]),
        ({"confluent.value.schema.validation": True}, [ErrorCode.INVALID_CONFIG]),
        ({"confluent.key.schema.validation": True}, [ErrorCode.INVALID_CONFIG]),
    ],
)
def test_only_topics_that_check_schema_ids_leave_the_fast_path(
    config: dict[str, object], codes: list[int], checksums: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow: list[object] = []
    real = produce._append_each
    monkeypatch.setattr(produce, "_append_each", lambda *given: (slow.append(given), real(*given))[1])
    assert virtual(produced(config, [make_batch(b"value")], checksums)) == codes
    assert bool(slow) == (codes != [0])
