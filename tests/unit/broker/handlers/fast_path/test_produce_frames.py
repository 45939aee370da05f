"""Produce requests answered from frame to frame: byte for byte as on the general path, by either variant."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import HeldPartitions, virtual
from tests.unit.broker.handlers.fast_path.produce_story import CONFIGS, PARTITIONS, Story, tell

from ottla.broker.handlers.fast_path import kernel_produce, produce_frames
from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.throttle import Usage
from ottla.errors.codes import ErrorCode
from ottla.records.kernels import PURE_ASKED, is_compiled, load_variant
from ottla.sim.disk import Fault
from ottla.wire.codec import decode_all
from ottla.wire.headers import encode_request
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

SEEDS = range(5 * len(CONFIGS))


def told(story: Story) -> Any:
    return json.loads(json.dumps(virtual(story.tell())))


@pytest.mark.parametrize("seed", SEEDS)
def test_fast_path_and_general_path_give_the_same_replies(seed: int) -> None:
    assert told(Story(seed)) == told(Story(seed, is_fast=False))


def used(usage: Usage) -> tuple[Any, ...]:
    """What is the same on both paths."""
    return usage.client_id, usage.quota, usage.request_bytes, usage.reply_bytes


@pytest.mark.parametrize("is_replicated", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_denied_parts_and_throttle_times_are_the_same_on_both_paths(seed: int, is_replicated: bool) -> None:
    """Access changes every few requests, and clients are slowed down."""
    fast, general = (Story(seed, is_fast, is_replicated, has_rules=True) for is_fast in (True, False))
    replies = told(fast)
    assert replies == told(general)
    assert replies != told(Story(seed, is_replicated=is_replicated))
    assert fast.info.muted_until_s > 0
    assert Counter(map(used, fast.throttle.used)) == Counter(map(used, general.throttle.used))


@pytest.mark.parametrize("seed", SEEDS)
def test_fast_path_and_general_path_give_the_same_replies_with_a_follower(seed: int) -> None:
    replies = told(Story(seed, is_replicated=True))
    assert replies == told(Story(seed, is_fast=False, is_replicated=True))
    assert "parked" not in replies["replies"]


@pytest.mark.parametrize("seed", SEEDS)
def test_pure_variant_gives_the_same_replies(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pure = load_variant("kernel_produce", pure=True, room="broker.handlers.fast_path")
    assert pure is not None
    expected = told(Story(seed))
    monkeypatch.setattr(produce_frames, "FastProduce", pure.FastProduce)
    assert told(Story(seed)) == expected


@pytest.mark.skipif(not is_compiled(kernel_produce), reason="the kernels are not compiled in this install")
def test_all_pure_variants_together_give_the_same_replies() -> None:
    other = subprocess.run(
        [sys.executable, "-m", "tests.unit.broker.handlers.fast_path.produce_story", str(len(SEEDS))],
        env={**os.environ, "OTTLA_PURE": "0" if PURE_ASKED else "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(other.stdout) == [tell(seed) for seed in SEEDS]


@pytest.mark.parametrize("version", [9, 13])
def test_a_disk_that_fails_amid_a_request(version: int) -> None:
    async def replies(is_fast: bool) -> list[str]:
        story = Story(0, is_fast)
        await story.begin()
        for number in range(3):
            if number == 2:
                story.held.disk.faults.append(Fault("append", "*/one-1/*", 5, times=1))
            data = [PartitionProduceData(index=index, records=bytes(make_batch(b"value"))) for index in range(PARTITIONS)]
            topic = TopicProduceData(name="one", topic_id=story.ids["one"] if version >= 13 else bytes(16), partition_data=data)
            request = ProduceRequest(acks=-1, topic_data=[topic])
            story.send(bytearray(b"".join(encode_request(request, version, number, None)))[4:])  # type: ignore[arg-type]  # buffers
        assert story.fast == (3 if is_fast else 0)
        return story.replies

    fast = virtual(replies(True))
    assert fast == virtual(replies(False))
    _, _, failed = fast
    response = decode_all(ProduceResponse, version, bytes.fromhex(failed)[9:])
    codes = [answer.error_code for answer in response.responses[0].partition_responses]
    assert codes[0] == 0
    assert codes[1] == ErrorCode.KAFKA_STORAGE_ERROR


def test_no_request_is_handled_amid_another_that_finds_its_disk_failed() -> None:
    """All batches are checked before the first is written. A batch written in between is not seen: it would be stored twice."""

    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic("t", 2)
        answers = produce_frames.FrameAnswers(held.services)
        first, second = held.partition("t", 0), held.partition("t", 1)
        assert (first.log.folder, second.log.folder) == ("/a/t-0", "/b/t-1")

        def send(sequence: int, *indexes: int) -> None:
            batch = bytes(make_batch(b"v", producer=(7, 0, sequence)))
            data = [PartitionProduceData(index=index, records=batch) for index in indexes]
            request = ProduceRequest(
                transactional_id=None, acks=-1, topic_data=[TopicProduceData(name="t", partition_data=data)]
            )
            answers.answer(bytearray(b"".join(encode_request(request, 9, 1, None)))[4:], None)  # type: ignore[arg-type]  # buffers

        class Repeating:
            """A parked request. When it is answered, its connection handles the next one: a repeat of the producer's batch."""

            def settle(self, partition: Partition) -> bool:
                send(1, 1)
                return True

        for index in range(2):
            held.produce("t", index, make_batch(b"v", producer=(7, 0, 0)))
        first.ack_waits[Repeating()] = None
        held.disk.faults.append(Fault("append", "/a/t-0/*"))
        send(1, 0, 1)
        assert first.ack_waits
        await asyncio.sleep(0)
        assert not first.ack_waits
        assert second.log.log_end_offset == 2

    virtual(scenario())


@pytest.mark.parametrize("is_replicated", [False, True])
def test_many_requests_take_the_fast_path(is_replicated: bool) -> None:
    stories = [Story(seed, is_replicated=is_replicated) for seed in SEEDS]
    replies = [len(told(story)["replies"]) for story in stories]
    assert sum(story.fast for story in stories) > 0.2 * sum(replies)
