"""The stories of the sweep of consumer groups. Each runs in its own group, in every version of the heartbeat."""

from typing import Any

from tests.support.sweep.consumer_groups import FOUR, JOIN, TWO, ConsumerGroupSweep

ALL_FOUR = {FOUR: [0, 1, 2, 3]}


def tell_refused(sweep: ConsumerGroupSweep) -> None:
    odd: list[tuple[str, int, Any, dict[str, Any]]] = [
        ("", 0, {}, JOIN | {"group_id": ""}),
        (" ", 0, {}, JOIN),
        ("", 1, None, {}),
        ("", -1, None, {}),
        ("m", 0, {}, JOIN | {"group_id": ""}),
        ("m", 0, {}, JOIN | {"group_id": "  "}),
        ("m", 0, {}, JOIN | {"instance_id": ""}),
        ("m", 0, {}, JOIN | {"rack_id": " "}),
        ("m", 0, {}, JOIN | {"rebalance_timeout_ms": -1}),
        ("m", 0, None, JOIN),
        ("m", 0, {FOUR: [1]}, JOIN),
        ("m", 0, {FOUR: []}, JOIN),
        ("m", 0, {}, {"rebalance_timeout_ms": 1}),
        ("m", 0, {}, JOIN | {"server_assignor": "best"}),
        ("m", 0, {}, JOIN | {"server_assignor": ""}),
        ("m", 1, None, {"server_assignor": "best"}),
        ("m", 1, None, {}),
        ("m", -1, None, {}),
        ("m", -2, None, {}),
        ("m", -2, None, {"instance_id": "i"}),
        ("m", -3, None, {}),
    ]
    for member_id, epoch, owned, fields in odd:
        sweep.beat(member_id, epoch, owned, **fields)
    if sweep.version:
        for regex in ("(", "a(?!b)", "[z-a]", "*"):
            sweep.beat("m", 0, {}, subscribed_topic_regex=regex, rebalance_timeout_ms=1)
    sweep.describe()
    sweep.describe("", sweep.group_id)
    sweep.list_and_describe()


def tell_alone(sweep: ConsumerGroupSweep) -> None:
    sweep.beat("m", 0, {}, **JOIN)
    sweep.describe()
    sweep.beat("m", 2)
    sweep.beat("m", 2, ALL_FOUR)
    sweep.beat("m", 2, ALL_FOUR, **JOIN)
    sweep.beat("m", 0, {}, **JOIN)
    for epoch, owned in ((1, None), (1, ALL_FOUR), (3, None), (0, {})):
        sweep.beat("m", epoch, owned, **(JOIN if not epoch else {}))
    sweep.beat("other", 2)
    sweep.beat("m", 2, rack_id="r", server_assignor="range", rebalance_timeout_ms=1000)
    sweep.describe()
    sweep.beat("m", 2, subscribed_topic_names=[TWO])
    sweep.describe()
    sweep.beat("m", 2, {FOUR: [0]})
    sweep.beat("m", 2, {})
    sweep.describe()
    sweep.beat("m", 3, subscribed_topic_names=[FOUR, TWO, "nowhere"])
    sweep.beat("m", 4, subscribed_topic_names=[])
    sweep.beat("m", 4, {})
    sweep.describe()
    sweep.list_and_describe()
    sweep.delete()
    sweep.beat("m", -1)
    sweep.describe()
    sweep.list_and_describe()
    sweep.beat("m", 0, {}, **JOIN)
    sweep.beat("m", -1)
    sweep.delete()
    sweep.describe()


def tell_without_an_id(sweep: ConsumerGroupSweep) -> None:
    reply = sweep.beat("", 0, {}, **JOIN)
    if not reply.error_code:
        sweep.beat(reply.member_id, reply.member_epoch)
        sweep.beat("", reply.member_epoch)
        sweep.beat(reply.member_id, -1)


def tell_two(sweep: ConsumerGroupSweep) -> None:
    sweep.beat("m1", 0, {}, **JOIN)
    sweep.beat("m2", 0, {}, **JOIN)
    sweep.describe()
    sweep.beat("m2", 3)
    sweep.beat("m1", 2)
    sweep.describe()
    for owned in (None, ALL_FOUR, {FOUR: [0, 1, 3]}):
        sweep.beat("m1", 2, owned)
        sweep.beat("m2", 3)
    sweep.beat("m1", 2, {FOUR: [0, 1]})
    sweep.beat("m1", 2, {FOUR: [0, 1]})
    sweep.beat("m1", 2)
    sweep.beat("m2", 3)
    sweep.beat("m2", 3, {FOUR: [2, 3]})
    sweep.describe()
    sweep.beat("m1", -1)
    sweep.beat("m2", 3)
    sweep.describe()


def tell_ranges(sweep: ConsumerGroupSweep) -> None:
    both = JOIN | {"subscribed_topic_names": [FOUR, TWO], "server_assignor": "range"}
    sweep.beat("m1", 0, {}, **both)
    sweep.beat("m2", 0, {}, **both)
    sweep.beat("m1", 2, {FOUR: [0, 1, 2, 3], TWO: [0, 1]})
    sweep.beat("m1", 2, {FOUR: [0, 1], TWO: [0]})
    sweep.beat("m2", 3)
    sweep.describe()


def tell_different_topics(sweep: ConsumerGroupSweep) -> None:
    sweep.beat("m1", 0, {}, **JOIN)
    sweep.beat("m2", 0, {}, **(JOIN | {"subscribed_topic_names": [TWO]}))
    sweep.beat("m1", 2)
    sweep.describe()


def tell_static(sweep: ConsumerGroupSweep) -> None:
    static = {"instance_id": "i"}
    sweep.beat("m1", 0, {}, **JOIN, **static)
    sweep.beat("m2", 0, {}, **JOIN, **static)
    sweep.beat("m1", 2, **static)
    sweep.beat("m2", 2, **static)
    sweep.beat("m1", 2, instance_id="j")
    sweep.beat("m1", 2)
    sweep.beat("m2", -2, **static)
    sweep.beat("m1", -2, **static)
    sweep.describe()
    sweep.beat("m1", 2, **static)
    sweep.beat("m2", 0, {}, **JOIN, **static)
    sweep.describe()
    sweep.beat("m1", 2, **static)
    sweep.beat("m1", -1, **static)
    sweep.beat("m2", -2, **static)
    sweep.beat("m2", 0, {}, **(JOIN | {"subscribed_topic_names": [TWO]}), **static)
    sweep.describe()
    sweep.beat("m2", -1, **static)
    sweep.describe()


def tell_classic_members(sweep: ConsumerGroupSweep) -> None:
    sweep.beat("m1", 0, {}, **JOIN)
    member_id = sweep.join().member_id
    sweep.join(member_id, protocol_type="connect")
    generation = sweep.join(member_id).generation_id
    sweep.sync(member_id, generation + 1)
    sweep.sync(member_id, generation, protocol_name="sticky")
    sweep.sync(member_id, generation)
    sweep.classic_beat(member_id, generation)
    sweep.classic_beat(member_id, generation - 1)
    sweep.classic_beat("m1", generation)
    sweep.classic_beat("nobody", generation)
    sweep.join("other", protocols=("sticky",))
    sweep.beat("m1", 2)
    sweep.beat("m1", 2, {FOUR: [0, 1]})
    sweep.classic_beat(member_id, generation)
    sweep.join(member_id, owned={})
    sweep.sync(member_id, generation)
    sweep.describe()
    sweep.list_and_describe()
    sweep.beat("m1", 3, subscribed_topic_names=[FOUR, TWO])
    sweep.classic_beat(member_id, generation)
    sweep.sync(member_id, generation)
    sweep.join(member_id, owned={FOUR: [2, 3]})
    sweep.leave(("nobody", None), (member_id, None), ("", "j"))
    sweep.describe()


def tell_upgrade(sweep: ConsumerGroupSweep) -> None:
    member_id = sweep.stable_classic()
    sweep.beat("m1", 1)
    sweep.beat("m1", 0, {}, **JOIN)
    sweep.describe()
    sweep.list_and_describe()
    sweep.classic_beat(member_id, 1)
    sweep.sync(member_id, 1)
    sweep.join(member_id, owned=ALL_FOUR)
    sweep.sync(member_id, 1)
    sweep.classic_beat(member_id, 1)
    sweep.join(member_id, owned={FOUR: [0, 1]})
    sweep.sync(member_id, 2)
    sweep.classic_beat(member_id, 2)
    sweep.beat("m1", 2)
    sweep.describe()


def tell_downgrade(sweep: ConsumerGroupSweep) -> None:
    member_id = sweep.stable_classic()
    sweep.beat("m1", 0, {}, **JOIN)
    sweep.beat("m1", -1)
    sweep.describe()
    sweep.list_and_describe()
    sweep.classic_beat(member_id, 1)
    sweep.join(member_id, owned={FOUR: [0, 1]})
    sweep.list_and_describe()


def tell_static_changes_sides(sweep: ConsumerGroupSweep) -> None:
    static = {"instance_id": "i"}
    sweep.beat("m1", 0, {}, **JOIN, **static)
    joined = sweep.join(group_instance_id="i")
    sweep.list_and_describe()
    sweep.sync(joined.member_id, joined.generation_id, group_instance_id="i")
    sweep.beat("m2", 0, {}, **JOIN, **static)
    sweep.describe()
    sweep.classic_beat(joined.member_id, joined.generation_id, "i")


def tell_empty_groups_change_sides(sweep: ConsumerGroupSweep) -> None:
    sweep.beat("m1", 0, {}, **JOIN)
    sweep.beat("m1", -1)
    member_id = sweep.stable_classic()
    sweep.list_and_describe()
    sweep.leave((member_id, None))
    sweep.beat("m1", 0, {}, **JOIN)
    sweep.list_and_describe()


STORIES = (
    tell_refused,
    tell_alone,
    tell_without_an_id,
    tell_two,
    tell_ranges,
    tell_different_topics,
    tell_static,
    tell_classic_members,
    tell_upgrade,
    tell_downgrade,
    tell_static_changes_sides,
    tell_empty_groups_change_sides,
)
