"""What a node that waits for its quorum says."""

from types import SimpleNamespace
from typing import Any

from ottla.broker.runtime.quorum_peers import QuorumPeers
from ottla.errors.codes import ErrorCode
from ottla.link import ConnectFailed, RequestTimedOut
from ottla.raft.effects import Destination
from ottla.raft.voters import VoterSet, static_voters

VOTERS = static_voters(((1, "h1", 9093), (2, "h2", 9093), (3, "h3", 9093)), "CONTROLLER")
BOOTSTRAP = (("h1", 9093), ("h2", 9093), ("h3", 9093))


def to(node: int) -> Destination:
    return Destination(node, f"h{node}", 9093)


def answer(code: int = 0) -> Any:
    return SimpleNamespace(error_code=code)


def peers() -> QuorumPeers:
    return QuorumPeers("my-cluster")


def test_missing_voters_are_named_with_their_addresses() -> None:
    known = peers()
    known.failed(to(2), ConnectFailed("h2:9093", "refused"))
    known.failed(to(3), RequestTimedOut("h3:9093", "too late"))
    assert known.missing(VOTERS, 1, BOOTSTRAP) == (
        "the metadata quorum has 3 voters and needs 2 of them to elect a controller. Missing: node 2 at h2:9093 (accepts no "
        "connections), node 3 at h3:9093 (does not answer). Start them, or correct controller.quorum.voters"
    )


def test_nothing_is_missing_while_a_majority_answers() -> None:
    known = peers()
    known.failed(to(2), ConnectFailed("h2:9093", "refused"))
    known.answered(to(3), answer())
    assert known.missing(VOTERS, 1, BOOTSTRAP) is None


def test_an_answer_ends_the_failure_and_a_failure_the_answer() -> None:
    known = peers()
    known.answered(to(2), answer())
    known.failed(to(2), OSError("broken"))
    assert "node 2 at h2:9093 (broken)" in (known.missing(VOTERS, 1, BOOTSTRAP) or "")
    assert known.down == {2}
    known.answered(to(2), answer())
    assert known.down == set()
    assert known.missing(VOTERS, 1, BOOTSTRAP) is None


def test_a_node_that_knows_no_voters_names_its_bootstrap_servers() -> None:
    known = peers()
    for node in (1, 2, 3):
        known.failed(to(node), ConnectFailed(f"h{node}:9093", "refused"))
    said = known.missing(VoterSet(()), 9, BOOTSTRAP) or ""
    assert said.startswith("no controller can be reached: h1:9093 (accepts no connections), h2:9093")
    assert said.endswith("controller.quorum.bootstrap.servers")
    known.answered(to(3), answer())
    assert known.missing(VoterSet(()), 9, BOOTSTRAP) is None


def test_most_voters_in_another_cluster_is_final_and_one_is_not() -> None:
    known = peers()
    known.answered(to(2), answer(ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert known.wrong_cluster(VOTERS, BOOTSTRAP) is None
    assert "node 2 at h2:9093 (belongs to another cluster)" in (known.missing(VOTERS, 1, BOOTSTRAP) or "")
    known.answered(to(3), answer(ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert known.wrong_cluster(VOTERS, BOOTSTRAP) == (
        "the controllers at h2:9093, h3:9093 belong to another cluster: this node's directories are of cluster "
        "my-cluster. Correct log.dirs or the controller.quorum settings, or format the directories for theirs"
    )
