"""Voter sets: membership, their control records, and the text of --initial-controllers."""

import pytest

from ottla.ids import METADATA_TOPIC_ID, ZERO_UUID, Uuid, uuid_text
from ottla.raft.voters import InvalidVoters, ReplicaKey, Voter, VoterSet, parse_initial_controllers, static_voters
from ottla.wire.codec import decode_all, encode_bytes
from ottla.wire.messages.control_records import VotersRecord

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)


def voter(voter_id: int, directory_id: Uuid = ZERO_UUID, port: int = 9093) -> Voter:
    return Voter(ReplicaKey(voter_id, directory_id), {"CONTROLLER": ("localhost", port)})


def test_static_voters_are_known_by_id_alone() -> None:
    voters = static_voters([(2, "b", 9093), (1, "a", 9092)], "CONTROLLER")
    assert voters.ids == (1, 2)
    assert voters.is_voter(ReplicaKey(1, ONE))
    assert not voters.is_voter(ReplicaKey(3, ONE))
    assert dict(next(iter(voters)).endpoints) == {"CONTROLLER": ("a", 9092)}


def test_dynamic_voters_are_known_by_directory_too() -> None:
    voters = VoterSet([voter(1, ONE)])
    assert voters.is_voter(ReplicaKey(1, ONE))
    assert not voters.is_voter(ReplicaKey(1, TWO))
    assert voters.is_only_voter(ReplicaKey(1, ONE))
    assert not VoterSet([voter(1, ONE), voter(2, TWO)]).is_only_voter(ReplicaKey(1, ONE))


@pytest.mark.parametrize(("count", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(count: int, majority: int) -> None:
    assert VoterSet(voter(number) for number in range(count)).majority == majority


def test_with_voter_replaces_the_voter_with_the_same_id() -> None:
    voters = VoterSet([voter(1, ONE), voter(2, TWO)])
    moved = voters.with_voter(voter(1, ONE, port=1234))
    assert moved.ids == (1, 2)
    assert moved != voters
    assert moved.with_voter(voter(1, ONE)) == voters


def test_voter_set_survives_its_record_round_trip() -> None:
    voters = VoterSet([voter(1, ONE), Voter(ReplicaKey(7, TWO), {"A": ("h", 1), "B": ("::1", 65535)}, (0, 0))])
    data = encode_bytes(voters.to_record(), 0)
    assert VoterSet.from_record(decode_all(VotersRecord, 0, data)) == voters


def test_initial_controllers_are_parsed_with_spaces_and_ipv6_hosts() -> None:
    text = f"0@example.com:8082:{uuid_text(ONE)}, 1@[::1]:8083:{uuid_text(TWO)}"
    voters = parse_initial_controllers(text, "CONTROLLER")
    assert [each.key for each in voters] == [ReplicaKey(0, ONE), ReplicaKey(1, TWO)]
    assert [dict(each.endpoints) for each in voters] == [
        {"CONTROLLER": ("example.com", 8082)},
        {"CONTROLLER": ("::1", 8083)},
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "names no controller"),
        ("1", "not of the form"),
        (f"1@host:{uuid_text(ONE)}", "not of the form"),
        (f"x@host:1:{uuid_text(ONE)}", "not of the form"),
        (f"99999999999@host:1:{uuid_text(ONE)}", "not of the form"),
        (f"1@:1:{uuid_text(ONE)}", "not of the form"),
        (f"1@host:70000:{uuid_text(ONE)}", "not of the form"),
        ("1@host:1:nonsense", "directory id"),
        (f"1@host:1:{uuid_text(ONE)},1@host:2:{uuid_text(TWO)}", "controller 1 twice"),
    ],
)
def test_malformed_initial_controllers_are_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(InvalidVoters, match=complaint):
        parse_initial_controllers(text, "CONTROLLER")


def test_keys_show_their_directory_if_they_have_one() -> None:
    assert str(ReplicaKey(3)) == "3"
    assert str(ReplicaKey(3, METADATA_TOPIC_ID)) == "3 (AAAAAAAAAAAAAAAAAAAAAQ)"
