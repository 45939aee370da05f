"""The picture of who leads what, with colours on a terminal only."""

import click
from tools.demo.cluster.picture import draw

from ottla.client.admin.topic_descriptions import PartitionDescription

PARTITIONS = [
    PartitionDescription(0, 2, 1, (1, 2, 3), (2, 3), ()),
    PartitionDescription(1, None, 1, (1, 3), (1,), ()),
]


def test_leaders_followers_and_replicas_out_of_sync() -> None:
    lines = [click.unstyle(line) for line in draw("orders", PARTITIONS, [1, 2, 3], {2, 3})]
    assert lines == [
        "          orders-0    orders-1",
        "node 1    ✗ out       · in sync   down",
        "node 2    ★ leads                 up",
        "node 3    · in sync   ✗ out       up",
        "          in sync: orders-0: 2 of 3, orders-1: 1 of 2",
    ]


def test_leader_is_green_and_what_is_out_is_red() -> None:
    _, first, second, *_ = draw("orders", PARTITIONS, [1, 2, 3], {2, 3})
    assert click.style("✗ out       ", fg="red") in first
    assert click.style("★ leads     ", fg="green", bold=True) in second
