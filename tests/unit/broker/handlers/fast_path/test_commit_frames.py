"""Commits of offsets answered from frame to frame: byte for byte as on the general path, by either variant."""

import json
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from typing import Any

import pytest
from tests.support.nodes.held_partitions import virtual
from tests.unit.broker.handlers.fast_path.commit_story import CONFIGS, Story

from ottla.broker.handlers.fast_path import commit_frames, kernel_commit
from ottla.broker.requests.throttle import Usage
from ottla.records.kernels import PURE_ASKED, is_compiled, load_variant
from ottla.wire.elements import MANY_ELEMENTS
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic

SEEDS = range(2 * len(CONFIGS))
MORE_SEEDS = range(len(SEEDS), 200)


def told(story: Story) -> Any:
    return json.loads(json.dumps(virtual(story.tell())))


@cache
def on_fast_path(seed: int) -> tuple[Any, int]:
    """What became of the story, and how many requests took the fast path."""
    story = Story(seed)
    return told(story), story.fast


@pytest.mark.parametrize("seed", SEEDS)
def test_fast_path_and_general_path_give_the_same_replies(seed: int) -> None:
    assert on_fast_path(seed)[0] == told(Story(seed, is_fast=False))


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
    story = Story(seed, is_replicated=True)
    assert told(story) == told(Story(seed, is_fast=False, is_replicated=True))
    assert story.fast > 0 or seed % len(CONFIGS) >= 4 or seed % 7 == 6, "only some settings of the topic decline all"


@pytest.mark.slow
@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_fast_path_and_general_path_agree_in_many_stories(seed: int) -> None:
    assert told(Story(seed)) == told(Story(seed, is_fast=False))


@pytest.mark.parametrize("seed", SEEDS)
def test_pure_variant_gives_the_same_replies(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = on_fast_path(seed)[0]
    for file, names in (("kernel_commit", ["FastCommit"]), ("kernel_commit_records", ["KnownGroup", "KnownTopic"])):
        pure = load_variant(file, pure=True, room="broker.handlers.fast_path")
        for name in names:
            monkeypatch.setattr(commit_frames, name, getattr(pure, name))
    assert told(Story(seed)) == expected


@pytest.mark.skipif(not is_compiled(kernel_commit), reason="the kernels are not compiled in this install")
def test_all_pure_variants_together_give_the_same_replies() -> None:
    other = subprocess.run(
        [sys.executable, "-m", "tests.unit.broker.handlers.fast_path.commit_story", str(len(SEEDS))],
        env={**os.environ, "OTTLA_PURE": "0" if PURE_ASKED else "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(other.stdout) == [on_fast_path(seed)[0] for seed in SEEDS]


def test_many_requests_take_the_fast_path() -> None:
    stories = [on_fast_path(seed) for seed in SEEDS]
    assert sum(fast for _, fast in stories) > 0.1 * sum(len(story["replies"]) for story, _ in stories)


@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_known_of_groups_is_bounded_and_can_be_found_again(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = on_fast_path(seed)
    monkeypatch.setattr(commit_frames, "KNOWN_GROUPS_MAX", 3)
    monkeypatch.setattr(commit_frames, "KNOWN_TOPICS_MAX", 4)
    story = Story(seed)
    assert (told(story), story.fast) == expected
    assert len(story.host.known) <= 3
    assert sum(len(group.by_id) + len(group.by_name) for group in story.host.known.values()) <= 4


@pytest.mark.parametrize("is_pure", [False, True])
@pytest.mark.parametrize("per_topic", [1, 1000])
def test_commits_of_many_partitions_are_left_to_the_general_path(
    is_pure: bool, per_topic: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading and writing them in one piece would hold the loop: the general path has portions."""
    if is_pure:
        for file, names in (("kernel_commit", ["FastCommit"]), ("kernel_commit_records", ["KnownGroup", "KnownTopic"])):
            pure = load_variant(file, pure=True, room="broker.handlers.fast_path")
            for name in names:
                monkeypatch.setattr(commit_frames, name, getattr(pure, name))

    async def scenario() -> None:
        story = Story(0)
        await story.begin()
        for count, is_fast in ((MANY_ELEMENTS, True), (MANY_ELEMENTS + 1, False)):
            parts = [OffsetCommitRequestPartition(partition_index=0, committed_offset=7) for _ in range(count)]
            topics = [
                OffsetCommitRequestTopic(topic_id=story.ids["one"], partitions=parts[start : start + per_topic])
                for start in range(0, count, per_topic)
            ]
            frame = story.framed(OffsetCommitRequest(group_id="a", topics=topics), 10)
            assert isinstance(story.answers.answer(frame, None), list) is is_fast

    virtual(scenario())
