"""The topics of a subscription: names, patterns, and which metadata they want."""

from __future__ import annotations

import re

import pytest
from tests.support.shards.fake_metadata import FakeMetadata

from ottla.client_core.group.membership import ServerRegex
from ottla.client_core.group.subscribed_topics import SubscribedTopics


@pytest.fixture
def metadata() -> FakeMetadata:
    metadata = FakeMetadata(t=1, u=1)
    metadata.put("__internal", [()], is_internal=True)
    return metadata


def subscribed(metadata: FakeMetadata, *, exclude_internal: bool = True) -> SubscribedTopics:
    return SubscribedTopics(metadata, exclude_internal=exclude_internal)


def test_names_are_taken_as_given_and_wanted(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(["t", "later", "__internal"])
    assert topics.names == metadata.wanted == {"t", "later", "__internal"}
    assert topics.matches("later")
    assert not topics.matches("u")
    assert not metadata.is_all_wanted


def test_changed_names_unwant_those_that_went(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(["t", "u"])
    topics.set(["u", "v"])
    assert metadata.wanted == {"u", "v"}
    topics.set(None)
    assert metadata.wanted == topics.names == frozenset()


def test_pattern_matches_whole_names_and_wants_all_topics(metadata: FakeMetadata) -> None:
    metadata.put("tt", [()])
    topics = subscribed(metadata)
    topics.set(re.compile("t|u"))
    assert topics.names == {"t", "u"}
    assert metadata.is_all_wanted
    assert metadata.wanted == set()


def test_pattern_skips_internal_topics_unless_they_are_asked_for(metadata: FakeMetadata) -> None:
    for exclude_internal, expected in ((True, {"t", "u"}), (False, {"t", "u", "__internal"})):
        topics = subscribed(metadata, exclude_internal=exclude_internal)
        topics.set(re.compile(".*"))
        assert topics.names == expected


def test_name_of_an_internal_topic_is_not_skipped(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(["__internal"])
    assert topics.matches("__internal")


def test_pattern_is_matched_again_with_newer_metadata_only(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(re.compile("t.*"))
    topics.include(["t-new", "other"])
    topics.refresh()
    assert topics.names == {"t", "t-new"}, "the same metadata: what an assignment brought stays"
    metadata.put("t2", [()])
    topics.refresh()
    assert topics.names == {"t", "t2"}


def test_new_pattern_is_matched_with_the_metadata_that_is_there(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(re.compile("t"))
    topics.set(re.compile("u"))
    assert topics.names == {"u"}


def test_pattern_that_ends_no_longer_wants_all(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(re.compile("t"))
    topics.set(["u"])
    assert not metadata.is_all_wanted
    assert metadata.wanted == topics.names == {"u"}


def test_topics_of_other_members_are_wanted_as_well(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(["t"])
    topics.want_also(["u"])
    assert metadata.wanted == {"t", "u"}
    assert topics.names == {"t"}
    topics.want_also(())
    assert metadata.wanted == {"t"}


def test_pattern_of_the_coordinator_has_the_topics_of_the_assignment(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(ServerRegex("t.*"))
    assert topics.names == frozenset()
    assert topics.matches("anything"), "the coordinator decides"
    topics.want_by_id(["t"], is_complete=False)
    assert metadata.is_all_wanted, "a topic known by its id only may have any name"
    topics.want_by_id(["t", "t2"], is_complete=True)
    assert not metadata.is_all_wanted
    assert topics.names == metadata.wanted == {"t", "t2"}


def test_assigned_topics_do_not_change_a_subscription_by_names(metadata: FakeMetadata) -> None:
    topics = subscribed(metadata)
    topics.set(["t"])
    topics.want_by_id(["u"], is_complete=False)
    assert topics.names == metadata.wanted == {"t"}
    assert not metadata.is_all_wanted
