"""quorum-state: byte for byte as Apache Kafka 4.3 writes it, and refused when damaged."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptFile
from ottla.ids import ZERO_UUID, Uuid
from ottla.raft.election import ElectionState
from ottla.raft.quorum_state import (
    format_quorum_state,
    parse_quorum_state,
    read_quorum_state,
    write_quorum_state,
)
from ottla.raft.voters import ReplicaKey, VoterSet, static_voters
from ottla.sim.disk import MemoryDisk

VOTERS = static_voters([(1, "h", 1)], "C")

FROM_APACHE = {
    1: b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
    0: b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":0}',
}


@pytest.mark.parametrize("version", [0, 1])
def test_bytes_equal_those_of_apache_kafka(version: int) -> None:
    election = ElectionState(2, 1)
    assert format_quorum_state(election, version, VOTERS) == FROM_APACHE[version]
    assert parse_quorum_state("f", FROM_APACHE[version]) == election


elections = st.builds(
    ElectionState,
    st.integers(0, 2**31 - 1),
    st.integers(-1, 2**31 - 1),
    st.none() | st.builds(ReplicaKey, st.integers(0, 2**31 - 1), st.binary(min_size=16, max_size=16).map(Uuid)),
)


@given(elections)
def test_what_was_written_is_read(election: ElectionState) -> None:
    assert parse_quorum_state("f", format_quorum_state(election, 1, VoterSet())) == election


@given(elections)
def test_a_static_quorum_state_keeps_votes_by_id_alone(election: ElectionState) -> None:
    found = parse_quorum_state("f", format_quorum_state(election, 0, VOTERS))
    assert (found.epoch, found.leader_id) == (election.epoch, election.leader_id)
    assert found.voted == (None if election.voted is None else ReplicaKey(election.voted.id, ZERO_UUID))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"leaderId":1}', "data_version"),
        (b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":7}', "newer release"),
        (b'{"leaderId":true,"leaderEpoch":2,"votedId":-1,"data_version":0}', "leaderId"),
        (b'{"leaderId":1,"leaderEpoch":-2,"votedId":-1,"data_version":0}', "no epoch -2"),
        (b'{"leaderId":1,"leaderEpoch":2,"votedId":3,"votedDirectoryId":"x","data_version":1}', "votedDirectoryId"),
    ],
)
def test_a_damaged_file_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(CorruptFile, match=complaint):
        parse_quorum_state("f", data)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        parse_quorum_state("f", data)
    except CorruptFile:
        pass


def test_what_was_written_survives_a_power_loss() -> None:
    async def run() -> None:
        disk = MemoryDisk()
        disk.make_directory("/d")
        await disk.sync_directory("/")
        assert read_quorum_state(disk, "/d") is None
        await write_quorum_state(disk, "/d", ElectionState(3, 1), 1, VOTERS)
        assert read_quorum_state(disk.crash(power_loss=True), "/d") == ElectionState(3, 1)

    asyncio.run(run())
