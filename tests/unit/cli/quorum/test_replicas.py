"""Naming replicas by node id."""

import pytest

from ottla.cli.quorum import check_may_join, directory_of
from ottla.client.admin.quorum import QuorumInfo, QuorumReplica
from ottla.errors import OttlaError
from ottla.ids import ZERO_UUID, Uuid, uuid_text

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)


def replica(node: int, directory: Uuid) -> QuorumReplica:
    return QuorumReplica(node, directory, 0, None, None)


def test_the_only_one_with_the_id_is_meant() -> None:
    assert directory_of((replica(1, ONE), replica(2, TWO)), 2, "voter", None, "") == TWO


def test_two_with_the_same_id_have_to_be_told_apart() -> None:
    with pytest.raises(OttlaError, match="choose one with --directory-id"):
        directory_of((replica(1, ONE), replica(1, TWO)), 1, "voter", None, "")


def test_fixed_voters_have_no_directory_id() -> None:
    with pytest.raises(OttlaError, match=r"fixed by controller\.quorum\.voters \(kraft\.version 0\)"):
        directory_of((replica(1, ZERO_UUID),), 1, "voter", None, "")


def quorum(voters: dict[int, Uuid], observers: dict[int, Uuid]) -> QuorumInfo:
    return QuorumInfo(1, 1, 0, *(tuple(replica(*each) for each in found.items()) for found in (voters, observers)), {})


def test_voters_of_a_static_quorum_cannot_change() -> None:
    static = quorum({1: ZERO_UUID}, {2: TWO})
    with pytest.raises(OttlaError, match=r"kraft\.version 0.*--initial-controllers.*upgrade --feature kraft\.version=1"):
        check_may_join(static, 0, 2, None)
    check_may_join(static, 1, 2, None)


def test_voter_whose_disk_was_lost_may_join_with_its_new_directory() -> None:
    found = quorum({1: ONE}, {1: TWO})
    check_may_join(found, 1, 1, None)
    with pytest.raises(OttlaError, match="node 1 is a voter already"):
        check_may_join(found, 1, 1, uuid_text(ONE))
