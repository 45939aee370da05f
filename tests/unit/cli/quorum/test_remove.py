"""`ottla quorum remove`."""

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla
from tests.unit.cli.sick_cluster import DIRECTORIES

from ottla.errors.codes import ErrorCode
from ottla.ids import uuid_text
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

SPELLINGS = (
    ("remove", "3"),
    ("remove", "3", "--directory-id", uuid_text(DIRECTORIES[3])),
    ("remove-controller", "--controller-id", "3", "--controller-directory-id", uuid_text(DIRECTORIES[3])),
)


@pytest.mark.parametrize("arguments", SPELLINGS)
def test_a_voter_is_removed(ottla: RunOttla, node: FakeNode, arguments: tuple[str, ...]) -> None:
    said = ottla("quorum", *arguments)
    assert (said.rc, said.lines) == (0, [f"Removed controller 3 with directory id {uuid_text(DIRECTORIES[3])}."])
    assert "names only this controller" in said.err, "nodes may find no other controller"
    (request,) = node.asked_for(RemoveRaftVoterRequest)
    assert (request.voter_id, request.voter_directory_id) == (3, DIRECTORIES[3])


def test_a_node_without_a_vote_is_named(ottla: RunOttla, node: FakeNode) -> None:
    said = ottla("quorum", "remove", "4")
    assert said.rc == 1
    assert said.err.startswith("ottla: node 4 is not among the voters of the quorum, which are 1, 2, 3.")
    assert not node.asked_for(RemoveRaftVoterRequest)


def test_a_refusal_is_one_sentence(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[RemoveRaftVoterRequest] = lambda request, version: RemoveRaftVoterResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, error_message="kraft.version 0"
    )
    said = ottla("quorum", "remove", "3")
    assert said.rc == 1
    warning, refusal = said.err.splitlines()
    assert "names only this controller" in warning
    assert refusal.startswith("ottla: controller 3 was not removed from the voters: kraft.version 0")


def test_the_node_must_be_named(ottla: RunOttla) -> None:
    assert ottla("quorum", "remove").rc == 2
