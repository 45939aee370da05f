"""The overview of lag: sums by group, the largest first, patterns."""

import json

from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla
from tests.unit.cli.groups.conftest import END, fetch_offsets

from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponsePartitions


def fetch_different_offsets(request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
    """Group idle has read one record more than the others."""
    groups = []
    for asked in request.groups:
        (group,) = fetch_offsets(OffsetFetchRequest(groups=[asked]), version).groups
        if asked.group_id == "idle":
            group.topics[0].partitions[0] = OffsetFetchResponsePartitions(partition_index=0, committed_offset=5)
        groups.append(group)
    return OffsetFetchResponse(groups=groups)


def test_lag_is_summed_and_the_largest_comes_first(ottla: RunOttla, coordinator: FakeNode) -> None:
    coordinator.handlers[OffsetFetchRequest] = fetch_different_offsets
    found = json.loads(ottla("groups", "lag", "--json").out)
    lags = [each["lag"] for each in found]
    assert lags == sorted(lags, reverse=True)
    assert found[-1]["group"] == "idle"
    assert (lags[0], lags[-1]) == (END - 4, END - 5)
    assert found[0]["partitions"] == 2, "a partition of a deleted topic counts, but has no lag"


def test_patterns_choose_groups(ottla: RunOttla, coordinator: FakeNode) -> None:
    lines = ottla("groups", "lag", "id*").lines
    assert lines[0].split() == ["GROUP", "STATE", "TOPICS", "PARTITIONS", "LAG"]
    assert [line.split()[0] for line in lines[1:]] == ["idle"]
    assert "no group matches 'absent-.*'" in ottla("groups", "lag", "absent-.*").err
