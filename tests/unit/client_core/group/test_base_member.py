"""What both protocols have in common: `test_classic_member.py` and `test_consumer_member.py` test the rest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ottla.client_core.group.base_member import PATTERN_WAIT_MS, BaseMember
from ottla.client_core.group.membership import LeaveOption


class Wanted:
    """A coordinator that counts how often it is looked for."""

    def __init__(self) -> None:
        self.count = 0

    def want(self) -> None:
        self.count += 1


def member(coordinator: Any = None) -> BaseMember:
    settings: Any = SimpleNamespace(
        group_id="g",
        group_instance_id="i",
        exclude_internal_topics=True,
        retry_backoff_ms=1,
        retry_backoff_max_ms=1,
        max_poll_interval_ms=300,
    )
    metadata: Any = SimpleNamespace(
        full_responses=3, want=lambda names: None, unwant=lambda names: None, want_all=lambda on: None
    )
    return BaseMember(settings, metadata, coordinator, lambda limit: 0, "me")


def test_a_member_is_nobody_before_it_joins() -> None:
    made = member()
    assert (made.group_id, made.group_instance_id, made.member_id) == ("g", "i", "me")
    assert made.assigned == frozenset()
    assert made.take_events() == []
    assert made.subscribed_topics == frozenset()


def test_it_joins_with_the_first_poll_after_a_subscription() -> None:
    coordinator = Wanted()
    made = member(coordinator)
    made._want_to_join()
    assert coordinator.count == 0
    made.subscribe(frozenset({"t"}), 1_000)
    assert made._pattern_until_ms == 1_000 + PATTERN_WAIT_MS
    assert not made._is_wanted
    made._want_to_join()
    made._want_to_join()
    assert (made._is_wanted, coordinator.count) == (True, 1)


def test_leaving_forgets_the_subscription() -> None:
    made = member(Wanted())
    made.subscribe(frozenset({"t"}), 0)
    made._want_to_join()
    made.leave(0, LeaveOption.REMAIN_IN_GROUP)
    assert made._topics.subscription is None
    assert made._leave_as is LeaveOption.REMAIN_IN_GROUP
    assert not made._is_wanted


def test_a_member_without_polls_says_which_setting_to_raise() -> None:
    made = member(Wanted())
    made.subscribe(frozenset({"t"}), 0)
    reason = made._leave_as_unpolled()
    assert "no poll for max.poll.interval.ms=300" in reason
    assert made._leave_as is LeaveOption.DEFAULT
    assert made._topics.subscription is not None  # it joins again at the next poll
