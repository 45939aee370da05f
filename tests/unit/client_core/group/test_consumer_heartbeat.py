"""The fields of ConsumerGroupHeartbeat: everything in the first one, then only what has changed."""

from __future__ import annotations

from typing import Any

from tests.support.shards.group_world import ClientSettings

from ottla.client_core.group.consumer_heartbeat import LEAVE_STATIC_EPOCH, Said, heartbeat_request, leave_heartbeat
from ottla.client_core.group.identity import Identity
from ottla.client_core.machine import Channel
from ottla.ids import Uuid

TOPIC = Uuid(b"t" * 16)
SETTINGS = ClientSettings(client_rack="east", max_poll_interval_ms=30_000, group_remote_assignor="uniform")
NOTHING = Said((), None, {})
HELD = Said(("t",), None, {TOPIC: (0, 2)})


def message(now: Said, before: Said | None, settings: ClientSettings = SETTINGS) -> Any:
    request = heartbeat_request(settings, Identity("g", "i", "m"), 4, now, before, 1)
    assert (request.node, request.channel, request.context) == (1, Channel.GROUP, ("m", -1))
    return request.message


def changes(sent: Any) -> dict[str, Any]:
    """The fields that are not left out."""
    found = {
        "names": sent.subscribed_topic_names,
        "regex": sent.subscribed_topic_regex,
        "held": sent.topic_partitions and {each.topic_id: each.partitions for each in sent.topic_partitions},
        "rack": sent.rack_id,
        "instance": sent.instance_id,
        "assignor": sent.server_assignor,
        "timeout": None if sent.rebalance_timeout_ms == -1 else sent.rebalance_timeout_ms,
    }
    return {name: value for name, value in found.items() if value is not None}


def test_first_heartbeat_says_everything() -> None:
    sent = message(HELD, None)
    assert (sent.group_id, sent.member_id, sent.member_epoch) == ("g", "m", 4)
    assert changes(sent) == {
        "names": ["t"],
        "held": {TOPIC: [0, 2]},
        "rack": "east",
        "instance": "i",
        "assignor": "uniform",
        "timeout": 30_000,
    }


def test_first_heartbeat_says_that_nothing_is_held() -> None:
    assert changes(message(NOTHING, None, ClientSettings()))["held"] == [], "an empty list, not null"
    assert "rack" not in changes(message(NOTHING, None, ClientSettings())), "an empty client.rack is none"


def test_heartbeat_without_changes_says_nothing() -> None:
    assert changes(message(HELD, HELD)) == {}


def test_changed_names_are_sent_alone() -> None:
    assert changes(message(HELD._replace(names=("t", "u")), HELD)) == {"names": ["t", "u"]}


def test_changed_partitions_are_sent_whole() -> None:
    assert changes(message(HELD._replace(held={TOPIC: (0,)}), HELD)) == {"held": {TOPIC: [0]}}
    assert changes(message(HELD._replace(held={}), HELD)) == {"held": []}


def test_pattern_is_sent_once_and_taken_back_with_an_empty_one() -> None:
    pattern = Said((), "t.*", {})
    assert changes(message(pattern, NOTHING)) == {"regex": "t.*"}
    assert changes(message(pattern, pattern)) == {}
    assert changes(message(NOTHING, pattern)) == {"regex": ""}
    assert changes(message(pattern, None))["regex"] == "t.*"


def test_no_pattern_is_left_out_of_the_first_heartbeat() -> None:
    """Version 0 has no field for it, and a broker that speaks no newer one refuses an empty one."""
    assert "regex" not in changes(message(HELD, None))


def test_last_heartbeat_names_the_static_member() -> None:
    request = leave_heartbeat(Identity("g", "i", "m"), LEAVE_STATIC_EPOCH, 1)
    sent: Any = request.message
    assert (sent.group_id, sent.member_id, sent.member_epoch) == ("g", "m", -2)
    assert changes(sent) == {"instance": "i"}
