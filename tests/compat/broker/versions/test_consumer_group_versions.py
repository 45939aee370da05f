"""ConsumerGroupHeartbeat and ConsumerGroupDescribe in every version: the same stories get the replies of Apache Kafka.

Like `test_versions`, with a separate server and golden file: what a member may send depends on earlier responses.
"""

import os
import re
from typing import Any

import pytest
from tests.support.servers.ottla_server import StartServer
from tests.support.sweep.consumer_groups import SETTINGS, ConsumerGroupSweep
from tests.support.sweep.consumer_stories import STORIES
from tests.support.sweep.sweep import GOLDEN, differences, read_golden, write_golden

CONSUMER_GOLDEN = GOLDEN.with_name("consumer_group_replies.jsonl.gz")
HELD = re.compile(r"DescribeGroups: downgrade \d: step \d+\.groups\[0\]\.members\[0\]\.member_assignment: ")
"""While a downgraded group rebalances, Apache returns the target assignments of its members and Ottla their current ones: the
reason is in `ottla.coordinator.groups.consumer.migration`."""


@pytest.fixture(scope="module")
def replies(start_server: StartServer, server_kind: str) -> dict[str, Any]:
    with start_server(SETTINGS) as server:
        sweep = ConsumerGroupSweep(server.bootstrap)
        found = sweep.run(STORIES)
        sweep.close()
    if server_kind == "apache" and os.environ.get("OTTLA_WRITE_GOLDEN"):
        write_golden(found, CONSUMER_GOLDEN)
    return found


def test_replies_are_as_recorded(replies: dict[str, Any]) -> None:
    golden = read_golden(CONSUMER_GOLDEN)
    assert list(golden) == list(replies), "the sweep has changed: write the golden file again"
    wrong = [f"{name}{line}" for name, reply in replies.items() for line in differences(reply, golden[name])]
    wrong = [line for line in wrong if not HELD.match(line)]
    assert not wrong, "\n".join(wrong)
