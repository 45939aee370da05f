"""kraft.version from 0 to 1: what the leader must know of the voters, and the records."""

from tests.support.raft.memory_log import Entry
from tests.support.raft.quorum import note_controls
from tests.support.raft.replicas import elected, key, replica_of_three

from ottla.raft.roles.leader import Leader
from ottla.raft.voter_history import refuse_upgrade, upgrade_records
from ottla.raft.voters import Voter
from ottla.records.control import ControlType


def test_every_voter_must_be_known_and_support_the_level() -> None:
    replica = elected()
    assert "voter 2, 3 has not told" in str(refuse_upgrade(replica))
    assert isinstance(replica.role, Leader)
    replica.set_role(replica.role.described_by(Voter(key(2), {"C": ("h2", 2)})))
    replica.set_role(replica.role.described_by(Voter(key(3), {"C": ("h3", 3)}, (0, 0))))
    assert "voter 3 does not support it" in str(refuse_upgrade(replica))
    replica.set_role(replica.role.described_by(Voter(key(3), {"C": ("h3", 3)})))
    assert refuse_upgrade(replica) is None
    assert refuse_upgrade(replica_of_three()) is not None, "it does not lead"


def test_the_records_make_the_static_voters_dynamic() -> None:
    replica = elected()
    for node in (2, 3):
        assert isinstance(replica.role, Leader)
        replica.set_role(replica.role.described_by(Voter(key(node), {"C": (f"h{node}", node)})))
    records = upgrade_records(replica)
    assert [each.type for each in records] == [ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]
    note_controls(replica.history, [Entry(1, each) for each in records], replica.log.end_offset)
    assert replica.history.kraft_version == 1
    assert [voter.key for voter in replica.voters] == [key(1), key(2), key(3)]
    assert [dict(voter.endpoints) for voter in replica.voters] == [{"C": (f"h{node}", node)} for node in (1, 2, 3)]
    assert refuse_upgrade(replica) is not None, "once"
