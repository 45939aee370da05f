"""Leftovers of a killed process are recognised by the names of a folder's files; `test_loading.py` has the repairs."""

import pytest

from ottla.log.names import segment_file_name
from ottla.log.recovery.folder_repair import needs_repair

TIDY = [segment_file_name(7, suffix) for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([], False),
        (["partition.metadata", "leader-epoch-checkpoint", segment_file_name(90, ".snapshot")], False),
        ([segment_file_name(3, ".log", ".deleted")], True),
        ([segment_file_name(3, ".log", ".cleaned")], True),
        ([segment_file_name(3, ".index", ".swap")], True),
        (["leader-epoch-checkpoint.tmp"], True),
        ([segment_file_name(3, ".index")], True),
    ],
)
def test_leftovers_are_recognised(more: list[str], expected: bool) -> None:
    assert needs_repair([*TIDY, *more]) is expected
