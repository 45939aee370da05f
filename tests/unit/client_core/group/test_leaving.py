"""LeaveGroup: which members send it, and its form in each version."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client_core.group.identity import Identity
from ottla.client_core.group.leaving import leave_request, sends_leave
from ottla.client_core.group.membership import LeaveOption
from ottla.client_core.machine import Channel
from ottla.wire.codec import encode_bytes


@pytest.mark.parametrize(
    ("option", "instance_id", "is_sent"),
    [
        (LeaveOption.DEFAULT, None, True),
        (LeaveOption.DEFAULT, "i", False),
        (LeaveOption.LEAVE_GROUP, None, True),
        (LeaveOption.LEAVE_GROUP, "i", True),
        (LeaveOption.REMAIN_IN_GROUP, None, False),
        (LeaveOption.REMAIN_IN_GROUP, "i", False),
    ],
)
def test_only_static_members_stay_by_default(option: LeaveOption, instance_id: str | None, is_sent: bool) -> None:
    assert sends_leave(option, instance_id) is is_sent


def message(version: int, reason: str = "closed") -> Any:
    request = leave_request(Identity("g", "i", "m"), 3, reason)
    assert (request.node, request.channel) == (3, Channel.HEARTBEAT)
    assert request.adapt is not None
    return request.adapt(version)


def test_old_version_names_one_member() -> None:
    assert (message(2).group_id, message(2).member_id, message(2).members) == ("g", "m", [])


def test_newer_version_lists_the_member_with_its_instance_id_and_reason() -> None:
    (member,) = message(5).members
    assert (member.member_id, member.group_instance_id, member.reason) == ("m", "i", "closed")


@pytest.mark.parametrize("version", range(6))
def test_every_version_can_be_encoded(version: int) -> None:
    assert b"m" in encode_bytes(message(version), version)


def test_long_reason_is_cut_to_what_brokers_accept() -> None:
    assert len(message(5, "x" * 1_000).members[0].reason) == 255


def test_request_keeps_the_id_that_the_member_had_when_it_left() -> None:
    identity = Identity("g", None, "m")
    request = leave_request(identity, 3, "closed")
    identity.forget()
    assert request.adapt is not None
    left: Any = request.adapt(5)
    assert left.members[0].member_id == "m"
