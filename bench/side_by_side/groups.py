"""The group rows: the time until ten members share the hundred partitions of a topic, in both protocols.

bench/java/GroupStart.java starts several groups, one after the other. The first is a warm-up; the median of the others counts.
"""

import json
import statistics

from bench.side_by_side.admin import create_topic, delete_topic
from bench.side_by_side.figures import Figure, at_most
from bench.side_by_side.sides import HEARTBEAT_MS, Bench, Side

TOPIC, PARTITIONS, MEMBERS = "group-start", 100, 10
GROUPS, GROUPS_QUICK = 9, 3
GOAL = at_most(1.0)
PROTOCOLS = (("classic", "classic protocol"), ("consumer", "consumer protocol"))


def rows(bench: Bench) -> list[Figure]:
    times: dict[str, tuple[list[float], list[float]]] = {protocol: ([], []) for protocol, _ in PROTOCOLS}
    for side in bench.pair:
        create_topic(side.server, TOPIC, PARTITIONS)
    for number in range(1, bench.options.rounds + 1):
        for protocol, _ in PROTOCOLS:
            if not bench.options.wants_part("groups", protocol):
                continue
            for side, kept in zip(bench.pair, times[protocol], strict=True):
                kept.append(measure(bench, side, protocol, f"{protocol}-{number}"))
                text = f"{side.label} {kept[-1]:.0f} ms"
                bench.progress.say(f"start of a group ({protocol}), round {number} of {bench.options.rounds}: {text}")
    for side in bench.pair:
        delete_topic(side.server, TOPIC)
    return [
        Figure(f"groups:{protocol}", f"{MEMBERS} members share {PARTITIONS} partitions, {what}", "ms", *samples, goal=GOAL)
        for protocol, what in PROTOCOLS
        if (samples := times[protocol])[0]
    ]


def measure(bench: Bench, side: Side, protocol: str, name: str) -> float:
    """Milliseconds until all partitions are assigned."""
    groups = bench.options.scaled(GROUPS, GROUPS_QUICK)
    arguments = (side.server.bootstrap, TOPIC, PARTITIONS, MEMBERS, name, protocol, groups, HEARTBEAT_MS)
    result = json.loads(bench.run_class("GroupStart", *arguments))
    return statistics.median(result["ms"][1:])
