"""Naming replicas by node id."""

import pytest

from ottla.cli.quorum.replicas import directory_of
from ottla.client.admin.quorum import QuorumReplica
from ottla.errors import OttlaError
from ottla.ids import ZERO_UUID, Uuid

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
