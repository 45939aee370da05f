"""Requests to this node's own controller: decided, or answered by its quorum."""

import asyncio
from types import SimpleNamespace

from tests.support.nodes.deciding_controller import DecidingController

from ottla.broker.doors.own_controller import VOTER_CHANGES, answer_of
from ottla.broker.requests.context import Pending
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.apis import DECISIONS
from ottla.wire.base import Message
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def test_changes_of_voters_go_to_the_quorum_and_all_else_is_decided() -> None:
    asked: list[tuple[Message, int]] = []

    def ask(request: Message, version: int, listener: str) -> Pending:
        asked.append((request, version))
        pending = Pending()
        asyncio.get_running_loop().call_soon(pending.complete, RemoveRaftVoterResponse(error_code=ErrorCode.VOTER_NOT_FOUND))
        return pending

    controller = DecidingController()
    controller.quorum = SimpleNamespace(ask=ask)  # type: ignore[attr-defined]
    removal = RemoveRaftVoterRequest(voter_id=7)
    removed = asyncio.run(answer_of(controller, removal, 0))  # type: ignore[arg-type]
    assert (removed.error_code, asked) == (ErrorCode.VOTER_NOT_FOUND, [(removal, 0)])
    deleted = asyncio.run(answer_of(controller, DeleteTopicsRequest(), 6))  # type: ignore[arg-type]
    assert deleted.responses == []
    assert len(asked) == 1
    assert not VOTER_CHANGES & DECISIONS.keys()
