"""The broker's checks of produced batches, compared with Apache Kafka's answers. Every difference is named."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.record_data import golden_answers, records

from ottla.config.topic import LogConfig
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.kernels import Record
from ottla.records.layout import COUNT_AT, LAST_OFFSET_DELTA_AT
from ottla.records.patch import set_base_offset_and_epoch, set_crc
from ottla.records.produced import validate as validate_module
from ottla.records.produced.inspection import Inspection
from ottla.records.produced.validate import CHECKED_BYTES_MIN, ERRORS_NAMED_MAX, ValidBatch, validate_produced
from ottla.records.reader import read_records

NOW = 1_700_000_000_000

REFUSED_ONLY_HERE = {"trailing-garbage", "offsets-with-gaps"}
OTHER_CODE = {
    "codec-5": ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    "codec-6": ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    "codec-7": ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    "garbage-gzip": ErrorCode.INVALID_RECORD,
    "garbage-lz4": ErrorCode.INVALID_RECORD,
    "garbage-records": ErrorCode.INVALID_RECORD,
    "garbage-snappy": ErrorCode.INVALID_RECORD,
    "garbage-zstd": ErrorCode.INVALID_RECORD,
    "lz4-linked-blocks": ErrorCode.INVALID_RECORD,
    "offsets-with-gaps-gzip": ErrorCode.INVALID_RECORD,
    "trailing-long-garbage": ErrorCode.INVALID_RECORD,
}


@pytest.fixture(autouse=True)
def chosen(variant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here runs with each variant."""
    monkeypatch.setattr(validate_module, "RecordWalk", variant.columns.RecordWalk)
    monkeypatch.setattr(validate_module, "RecordScan", variant.columns.RecordScan)


def config(settings: dict[str, str]) -> LogConfig:
    values: dict[str, Any] = {}
    for name, text in settings.items():
        field = name.replace(".", "_")
        values[field] = tuple(text.split(",")) if field == "cleanup_policy" else int(text) if text.isdigit() else text
    return LogConfig(**values)


def judged(case: dict[str, Any], settings: dict[str, str] | None = None) -> ValidBatch | KafkaError:
    data = bytearray.fromhex(case["bytes"])
    before = bytes(data)
    try:
        return validate_produced(
            data,
            config(case["settings"] if settings is None else settings),
            now_ms=case["now_ms"],
            partition="topic-0",
            request_version=case["version"],
        )
    except KafkaError as refusal:
        assert data == before, "a refused batch must not be changed"
        return refusal


@pytest.mark.parametrize("name", sorted(golden_answers()))
def test_the_answer_is_that_of_apache_kafka(name: str) -> None:
    case = golden_answers()[name]
    answer = judged(case)
    if name in REFUSED_ONLY_HERE:
        assert isinstance(answer, KafkaError)
        assert (answer.code, case["code"]) == (ErrorCode.INVALID_RECORD, 0)
    elif case["code"] == 0:
        assert isinstance(answer, ValidBatch), answer
        stored_as_by_apache_kafka(answer, case)
    else:
        assert isinstance(answer, KafkaError)
        assert answer.code == OTHER_CODE.get(name, case["code"])
        assert [index for index, _ in answer.record_errors] == [index for index, _ in case["record_errors"]]
        assert all(message for _, message in answer.record_errors)
        assert "topic-0" in str(answer)


def stored_as_by_apache_kafka(answer: ValidBatch, case: dict[str, Any]) -> None:
    set_base_offset_and_epoch(answer.data, 0, 0, 5)
    ours, theirs = BatchView(answer.data), BatchView(bytes.fromhex(case["stored"]))
    ours.check()
    assert (answer.view.count, answer.view.last_offset_delta) == (ours.count, ours.last_offset_delta)
    assert answer.max_timestamp == ours.max_timestamp == theirs.max_timestamp
    assert answer.append_time_ms == (case["now_ms"] if theirs.is_append_time else -1)
    if "compression.type" not in case["settings"]:
        assert answer.data.hex() == case["stored"]
        return
    assert read_records(ours) == read_records(theirs)
    for field in (
        "attributes",
        "base_timestamp",
        "last_offset_delta",
        "count",
        "producer_id",
        "producer_epoch",
        "base_sequence",
    ):
        assert getattr(ours, field) == getattr(theirs, field)


DAMAGED = [
    name for name in golden_answers() if name.startswith(("garbage-", "left-over-byte-", "lz4-two-", "offsets-with-gaps-"))
]


@pytest.mark.parametrize("name", sorted(DAMAGED))
def test_damage_in_compressed_records_is_found_whatever_the_settings(name: str) -> None:
    bounds = {"message.timestamp.before.max.ms": "1000000"}
    append_time = {"message.timestamp.type": "LogAppendTime"}
    for settings in ({}, {"cleanup.policy": "compact"}, bounds, append_time, {"compression.type": "uncompressed"}):
        answer = judged(golden_answers()[name], settings)
        assert isinstance(answer, KafkaError)
        assert answer.code == ErrorCode.INVALID_RECORD


def test_max_timestamp_is_trusted_only_in_compressed_batches_that_are_not_inspected() -> None:
    made = [Record(0, NOW, b"k", b"v"), Record(1, NOW + 10**9, b"k", b"v")]
    busy = Inspection()
    busy._left, busy._now_ms = 0, NOW
    for codec in Codec:
        data = build_batch(made, codec=codec, max_timestamp=NOW)
        with pytest.raises(KafkaError, match=r"1 of 2 records .* because of their timestamps"):
            validate_produced(data, LogConfig(), now_ms=NOW, partition="t-0")
        if codec is not Codec.NONE:
            found = validate_produced(data, LogConfig(), now_ms=NOW, partition="t-0", inspection=busy)
            assert found.max_timestamp == NOW


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_a_count_that_cannot_be_is_refused_also_by_a_busy_node(codec: Codec) -> None:
    busy = Inspection()
    busy._left, busy._now_ms = 0, NOW
    data = build_batch([Record(0, NOW, b"k", b"v")], codec=codec)
    data[LAST_OFFSET_DELTA_AT : LAST_OFFSET_DELTA_AT + 4] = (2**31 - 2).to_bytes(4, "big")
    data[COUNT_AT : COUNT_AT + 4] = (2**31 - 1).to_bytes(4, "big")
    set_crc(data, 0, len(data))
    with pytest.raises(KafkaError, match="compressed bytes cannot hold the 2147483647 records") as refused:
        validate_produced(data, LogConfig(), now_ms=NOW, partition="t-0", inspection=busy)
    assert refused.value.code == ErrorCode.INVALID_RECORD


def test_coordinators_may_write_what_clients_may_not() -> None:
    data = build_batch([Record(7, NOW, b"k", b"v")], producer_id=4, producer_epoch=0, control=True)
    assert validate_produced(bytearray(data), LogConfig(), now_ms=NOW, partition="t-0", from_client=False).view.is_control
    with pytest.raises(KafkaError, match="base offset 7"):
        validate_produced(bytearray(data), LogConfig(), now_ms=NOW, partition="t-0")


def test_control_records_are_not_compressed_for_the_topic() -> None:
    data = build_batch([Record(0, NOW, b"k", b"v")], control=True)
    found = validate_produced(
        bytearray(data), LogConfig(compression_type="zstd"), now_ms=NOW, partition="t-0", from_client=False
    )
    assert found.data == data


def test_the_batch_may_be_part_of_a_larger_frame() -> None:
    batch = build_batch([Record(0, NOW, b"k", b"v")])
    frame = bytearray(b"request") + batch + bytearray(b"more")
    view = memoryview(frame)[7:-4]
    found = validate_produced(view, LogConfig(message_timestamp_type="LogAppendTime"), now_ms=NOW + 5, partition="t-0")
    BatchView(frame, 7).check()
    assert found.data is view
    assert BatchView(frame, 7).max_timestamp == NOW + 5
    assert (frame[:7], frame[-4:]) == (b"request", b"more")


def test_the_topics_codec_may_make_a_batch_too_large() -> None:
    data = build_batch([Record(0, NOW, b"k", bytes(5000))], codec=Codec.GZIP)
    settings = LogConfig(compression_type="uncompressed", max_message_bytes=1000)
    with pytest.raises(KafkaError, match=r"max\.message\.bytes") as caught:
        validate_produced(data, settings, now_ms=NOW, partition="t-0")
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(("max_message_bytes", "allowed"), [(1_000_012, True), (100, False), (2_000_000, True)])
def test_decompression_limit_follows_from_the_settings(max_message_bytes: int, allowed: bool) -> None:
    size = CHECKED_BYTES_MIN - 1000 if max_message_bytes <= 1_000_012 and allowed else CHECKED_BYTES_MIN + 1000
    data = build_batch([Record(0, NOW, b"k", bytes(size))], codec=Codec.ZSTD)
    settings = LogConfig(cleanup_policy=("compact",), max_message_bytes=max(max_message_bytes, len(data)))
    if allowed:
        assert validate_produced(data, settings, now_ms=NOW, partition="t-0").max_timestamp == NOW
    else:
        with pytest.raises(KafkaError, match="bomb"):
            validate_produced(data, settings, now_ms=NOW, partition="t-0")


@pytest.mark.parametrize("first_bad", [0, 150_000])
def test_number_of_named_record_errors_is_limited(first_bad: int) -> None:
    count = 200_000
    records = [Record(number, NOW, b"" if number < first_bad else None, b"") for number in range(count)]
    data = build_batch(records, codec=Codec.ZSTD)
    with pytest.raises(KafkaError) as caught:
        validate_produced(data, LogConfig(cleanup_policy=("compact",)), now_ms=NOW, partition="t-0")
    assert caught.value.code == ErrorCode.INVALID_RECORD
    assert len(caught.value.record_errors) == (ERRORS_NAMED_MAX if first_bad == 0 else 0)
    assert "1000 or more of 200000" in str(caught.value) if first_bad == 0 else "after the first 100000" in str(caught.value)


def test_decompression_is_bounded() -> None:
    data = build_batch([Record(0, NOW, b"k", bytes(5_000_000))], codec=Codec.ZSTD)
    with pytest.raises(KafkaError, match="bomb") as caught:
        validate_produced(
            data, LogConfig(cleanup_policy=("compact",)), now_ms=NOW, partition="t-0", decompressed_bytes_max=1_000_000
        )
    assert caught.value.code == ErrorCode.INVALID_RECORD


@given(
    records(stamps=st.integers(NOW - 10_000, NOW + 10_000) | st.just(-1)),
    st.sampled_from(list(Codec)),
    st.sampled_from(["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]),
    st.booleans(),
    st.integers(0, 20_000),
    st.integers(0, 20_000),
)
def test_what_is_accepted_is_what_the_rules_allow(
    made: list[Record], codec: Codec, target: str, compacted: bool, before: int, after: int
) -> None:
    made = [Record(index, one.timestamp, one.key, one.value, one.headers) for index, one in enumerate(made)]
    settings = LogConfig(
        compression_type=target,
        cleanup_policy=("compact",) if compacted else ("delete",),
        message_timestamp_before_max_ms=before,
        message_timestamp_after_max_ms=after,
    )
    keyless = {index for index, one in enumerate(made) if compacted and one.key is None}
    earliest, latest = NOW - before, NOW + after
    astray = {index for index, one in enumerate(made) if one.timestamp != -1 and not earliest <= one.timestamp <= latest}
    data = build_batch(made, codec=codec)
    if keyless | astray:
        with pytest.raises(KafkaError) as caught:
            validate_produced(data, settings, now_ms=NOW, partition="t-0")
        assert {index for index, _ in caught.value.record_errors} == keyless | astray
        is_time = bool(astray - keyless)
        assert caught.value.code == (ErrorCode.INVALID_TIMESTAMP if is_time else ErrorCode.INVALID_RECORD)
        return
    found = validate_produced(data, settings, now_ms=NOW, partition="t-0")
    found.view.check()
    assert read_records(found.view) == made
    assert found.view.codec.title == {"producer": codec.title, "uncompressed": "none"}.get(target, target)
