"""Our assignors against Apache Kafka's: the same bytes for generated groups (tools/golden_clients/make_assignors.py)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ottla.client_core.group.assignors import Assignor, RangeAssignor, RoundRobinAssignor
from ottla.client_core.group.classic_rebalance import read_members, run_assignor
from ottla.client_core.group.sticky import CooperativeStickyAssignor, StickyAssignor
from ottla.wire.messages.join_group import JoinGroupResponseMember

GOLDEN = Path(__file__).parents[4] / "golden" / "clients" / "assignors"
ASSIGNORS: list[type[Assignor]] = [RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor]


def assigned(kind: type[Assignor], case: dict[str, Any]) -> dict[str, str]:
    """What the assignor gives each member of a case, as bytes in hex."""
    members = read_members(
        JoinGroupResponseMember(
            member_id=member["id"], group_instance_id=member["instance"], metadata=bytes.fromhex(member["metadata"])
        )
        for member in case["members"]
    )
    racks = case["racks"]
    topics = {
        name: [frozenset(rack for node in replicas if (rack := racks[node]) is not None) for replicas in partitions]
        for name, partitions in case["topics"].items()
    }
    return {each.member_id: each.assignment.hex() for each in run_assignor(kind(), members, topics)}


@pytest.mark.parametrize("kind", ASSIGNORS)
def test_assignments_are_apaches(kind: type[Assignor]) -> None:
    lines = gzip.decompress((GOLDEN / f"{kind.name}.jsonl.gz").read_bytes()).splitlines()
    assert len(lines) > 300
    different = [case for case in map(json.loads, lines) if assigned(kind, case) != case["assigned"]]
    assert not different, f"{len(different)} of {len(lines)} differ, such as {min(different, key=lambda each: len(str(each)))}"
