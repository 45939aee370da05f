"""The heartbeats of a classic member: due times, the session, and answers of older generations."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.shards.group_world import ClientSettings

from ottla.client_core.group.identity import Identity
from ottla.client_core.group.liveness import Liveness
from ottla.client_core.machine import Channel, Request

NODE = 1
SETTINGS = ClientSettings(heartbeat_interval_ms=3_000, session_timeout_ms=10_000, max_poll_interval_ms=30_000)


@pytest.fixture
def identity() -> Identity:
    identity = Identity("g", "i", "m")
    identity.generation = 5
    return identity


@pytest.fixture
def liveness(identity: Identity) -> Liveness:
    liveness = Liveness(SETTINGS, identity)
    liveness.joined(1_000)
    return liveness


def sent(liveness: Liveness, now_ms: int) -> Request:
    assert liveness.is_due(now_ms)
    return liveness.send(NODE, now_ms)


def test_first_heartbeat_is_due_one_interval_after_the_join(liveness: Liveness) -> None:
    assert liveness.due_ms == 4_000
    assert not liveness.is_due(3_999)
    request = sent(liveness, 4_000)
    message: Any = request.message
    assert (message.group_id, message.generation_id, message.member_id, message.group_instance_id) == ("g", 5, "m", "i")
    assert (request.node, request.channel) == (NODE, Channel.HEARTBEAT)


def test_one_heartbeat_is_out_at_a_time(liveness: Liveness) -> None:
    request = sent(liveness, 4_000)
    assert liveness.is_mine(request)
    assert liveness.due_ms is None
    assert not liveness.is_due(20_000)
    assert liveness.answered(request, keeps_session=True, now_ms=5_000)
    assert not liveness.is_mine(request)
    assert liveness.due_ms == 7_000, "one interval after the last was sent"


def test_good_answer_extends_the_session_and_a_bad_one_does_not(liveness: Liveness) -> None:
    assert liveness.session_ends_ms == 11_000
    assert liveness.answered(sent(liveness, 4_000), keeps_session=True, now_ms=4_500)
    assert liveness.session_ends_ms == 14_500
    assert liveness.answered(sent(liveness, 8_000), keeps_session=False, now_ms=8_500)
    assert liveness.session_ends_ms == 14_500


def test_answer_to_an_older_generation_says_nothing(liveness: Liveness, identity: Identity) -> None:
    request = sent(liveness, 4_000)
    identity.generation = 6
    assert not liveness.answered(request, keeps_session=True, now_ms=4_500)
    assert liveness.session_ends_ms == 11_000
    assert liveness.due_ms == 7_000, "the next may go out"


def test_failed_heartbeat_is_sent_again_after_the_backoff(liveness: Liveness) -> None:
    sent(liveness, 4_000)
    liveness.failed(4_200)
    assert liveness.due_ms == 4_300


def test_heartbeat_that_fails_late_does_not_delay_the_next(liveness: Liveness) -> None:
    sent(liveness, 4_000)
    liveness.failed(6_950)
    assert liveness.due_ms == 7_000


def test_poll_moves_the_deadline_of_polls_only(liveness: Liveness) -> None:
    liveness.polled(2_000)
    assert (liveness.poll_due_ms, liveness.session_ends_ms) == (32_000, 11_000)
