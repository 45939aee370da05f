"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup in every version: the same stories get the same replies as from Apache Kafka.

Like `test_versions`, with a separate server and golden file: what a member may send depends on earlier responses.
"""

import os
from typing import Any

import pytest
from tests.support.servers.ottla_server import StartServer
from tests.support.sweep.membership import MEMBERSHIP, MembershipSweep
from tests.support.sweep.sweep import GOLDEN, differences, read_golden, write_golden

from ottla.wire.apis import APIS

MEMBERSHIP_GOLDEN = GOLDEN.with_name("membership_replies.jsonl.gz")


@pytest.fixture(scope="module")
def replies(start_server: StartServer, server_kind: str) -> dict[str, Any]:
    with start_server({"auto.create.topics.enable": "false"}) as server:
        sweep = MembershipSweep(server.bootstrap)
        found = sweep.run()
        sweep.close()
    if server_kind == "apache" and os.environ.get("OTTLA_WRITE_GOLDEN"):
        write_golden(found, MEMBERSHIP_GOLDEN)
    return found


@pytest.mark.parametrize("api_key", sorted(MEMBERSHIP), ids=lambda key: APIS[key].name)
def test_replies_are_as_recorded(api_key: int, replies: dict[str, Any]) -> None:
    golden = read_golden(MEMBERSHIP_GOLDEN)
    assert list(golden) == list(replies), "the sweep has changed: write the golden file again"
    mine = {name: reply for name, reply in replies.items() if f": {APIS[api_key].name} " in name}
    assert mine, "every API is in the sweep"
    wrong = [f"{name}{line}" for name, reply in mine.items() for line in differences(reply, golden[name])]
    assert not wrong, "\n".join(wrong)
