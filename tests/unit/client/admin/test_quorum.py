"""The metadata quorum."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.servers.kafka_server import KafkaServer

from ottla.client.admin.quorum import VoterEndpoint
from ottla.errors import DuplicateVoterError, InconsistentClusterIdError, KafkaError, VoterNotFoundError
from ottla.ids import Uuid
from ottla.wire.apis import ApiKey

DIRECTORY = Uuid(b"a-directory's-id")


def test_quorum_is_described(admin: Any, server: KafkaServer) -> None:
    quorum = admin.describe_metadata_quorum()
    assert quorum.leader_id == 1
    assert quorum.leader_epoch >= 1
    assert quorum.high_watermark > 0
    (voter,) = quorum.voters
    assert voter.id == 1
    assert voter.log_end_offset >= quorum.high_watermark
    assert any(voter.directory_id)
    assert quorum.observers == ()
    assert quorum.endpoints == {1: (VoterEndpoint("CONTROLLER", "127.0.0.1", server.controller_port),)}


def test_voters_that_cannot_be_added_or_removed(admin: Any, needs: Callable[..., None]) -> None:
    needs(ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER)
    (voter,) = admin.describe_metadata_quorum().voters
    endpoint = VoterEndpoint("CONTROLLER", "127.0.0.1", 9093)
    with pytest.raises(DuplicateVoterError, match="controller 1 was not added to the voters"):
        admin.add_raft_voter(1, voter.directory_id, [endpoint])
    with pytest.raises(InconsistentClusterIdError):
        admin.add_raft_voter(2, DIRECTORY, [("CONTROLLER", "127.0.0.1", 9093)], cluster_id="another-cluster")
    with pytest.raises(VoterNotFoundError, match="controller 2 was not removed"):
        admin.remove_raft_voter(2, DIRECTORY)
    with pytest.raises(KafkaError):
        admin.remove_raft_voter(1, voter.directory_id)  # the last voter


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda admin: admin.add_raft_voter(-1, DIRECTORY, [("a", "b", 1)]), "voter_id is -1"),
        (lambda admin: admin.add_raft_voter(1, b"short", [("a", "b", 1)]), "directory_id must be 16 bytes"),
        (lambda admin: admin.add_raft_voter(1, DIRECTORY, []), "endpoints must not be empty"),
        (lambda admin: admin.add_raft_voter(1, DIRECTORY, [("a", "b", 0)]), "endpoints: port is 0"),
        (lambda admin: admin.remove_raft_voter(1, "text"), "directory_id must be 16 bytes"),
    ],
)
def test_bad_argument_is_named(scripted: Any, call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call(scripted)
