"""From what users pass to bytes."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.producers.settings import small_settings

from ottla.client.producer.asynchronous import TaskWaiting
from ottla.client.producer.core import ProducerCore
from ottla.client.producer.intake import Intake, PackedHeaders, check_topic_name, checked_partition, checked_timestamp, pack
from ottla.client.world import real_client_world
from ottla.errors import ConfigError, InvalidTopicError, RecordTooLargeError, SerializationError
from ottla.records.kernels import NO_HEADERS


def with_intake(check: Callable[[Intake], object], **settings: Any) -> None:
    async def run() -> None:
        core = ProducerCore(small_settings(**settings), real_client_world(), TaskWaiting())
        try:
            check(Intake(core))
        finally:
            await core.close(0)

    asyncio.run(run())


def test_bytes_need_no_serializer() -> None:
    def check(intake: Intake) -> None:
        assert intake.is_plain()
        assert intake.value_bytes("t", (), bytearray(b"v")) == b"v"
        assert intake.key_bytes("t", (), memoryview(b"k")) == b"k"
        assert intake.key_bytes("t", (), None) is None
        with pytest.raises(SerializationError, match="key"):
            intake.key_bytes("t", (), "text")

    with_intake(check)


def test_serializers_by_name_and_by_path() -> None:
    def check(intake: Intake) -> None:
        assert not intake.is_plain()
        assert intake.key_bytes("t", (), 5) == (5).to_bytes(8, "big")
        assert intake.value_bytes("t", (), [1]) == b"[1]"

    with_intake(check, key_serializer="int64", value_serializer="json")
    with pytest.raises(ConfigError, match=r"value\.serializer"):
        with_intake(lambda intake: None, value_serializer="no_such_module:thing")


def test_keyless_records_avoid_partitions_without_a_leader_with_a_queue_or_of_a_silent_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leaders = [1, -1, 1, 2]

    def check(intake: Intake) -> None:
        core = intake._core
        accumulator = core.accumulator
        accumulator.set_partition_count("t", 4)
        monkeypatch.setattr(
            core.metadata, "leader", lambda topic, partition: None if leaders[partition] < 0 else (leaders[partition], 1)
        )
        assert core.choose_partitions is not None
        assert set(core.choose_partitions("t", 4, 500)) == {0, 2, 3}
        leaders[1] = 1
        core.metadata.version += 1
        assert set(core.choose_partitions("t", 4, 500)) == {0, 1, 2, 3}
        for partition in range(4):
            accumulator.append("t", partition, (0, None, b"v", NO_HEADERS), None, 0)
        for _ in range(9):
            accumulator.append("t", 0, (0, None, b"v" * 100, NO_HEADERS), None, 0)
        accumulator.looked(0)
        chosen = core.choose_partitions("t", 4, 3_000)
        assert 30 <= chosen.count(0) <= 300  # 1 of 28
        assert core.sender.node_tried is not None
        core.sender.node_tried(2, 0, True)
        core.sender.node_tried(2, 51, False)
        accumulator.looked(0)
        assert set(core.choose_partitions("t", 4, 500)) == {0, 1, 2}

    with_intake(check, partitioner_availability_timeout_ms=50)


def test_records_that_can_never_be_sent() -> None:
    def check(intake: Intake) -> None:
        intake.check_size("t", None, b"x" * 400, NO_HEADERS)
        with pytest.raises(RecordTooLargeError, match=r"max\.request\.size is 600"):
            intake.check_size("t", None, b"x" * 600, NO_HEADERS)

    with_intake(check)


def test_headers_timestamps_and_partitions() -> None:
    assert pack(()) == NO_HEADERS
    assert pack({"a": b"1"}) == pack([("a", b"1")])  # type: ignore[arg-type]
    assert checked_timestamp(0) == 0
    assert checked_partition(3, "t") == 3
    for wrong in (True, "1", 1.0):
        with pytest.raises(TypeError):
            checked_timestamp(wrong)
        with pytest.raises(TypeError):
            checked_partition(wrong, "t")


def test_topic_names() -> None:
    check_topic_name("fine-name.1_2")
    with pytest.raises(InvalidTopicError, match="choose another name"):
        check_topic_name("a/b")
    with pytest.raises(TypeError, match="not int"):
        check_topic_name(5)


def test_partition_count_stays_when_the_metadata_forgets_a_topic() -> None:
    """The metadata forgets a topic after metadata.max.idle.ms: a key must not change its partition."""

    def check(intake: Intake) -> None:
        intake._core.accumulator.set_partition_count("t", 3)
        assert intake._core.metadata.topic("t") is None
        assert intake.partition("t", -1, (0, b"k", b"v", NO_HEADERS), (b"k", b"v")) == 2

    with_intake(check, partitioner_class=lambda *arguments: arguments[5][-1])


def test_packed_headers_are_headers_that_are_packed_once() -> None:
    plain = (("a", b"1"), ("b", None))
    headers = PackedHeaders(plain)
    assert headers == plain
    assert pack(headers) == pack(plain)
    assert pack(headers) is pack(headers)
    assert pack(PackedHeaders()) == pack(())
