"""Names on disk: formatted, parsed, and refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.ids import TopicPartition, Uuid
from ottla.log import names
from ottla.log.names import InvalidFolderName, SegmentFileName, parse_folder_name, parse_segment_file_name

UNIQUE = Uuid(bytes.fromhex("0123456789abcdef0123456789abcdef"))
TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=249).filter(lambda topic: topic not in (".", ".."))


def test_segment_files() -> None:
    assert names.segment_file_name(42, names.LOG_SUFFIX) == "00000000000000000042.log"
    assert names.segment_file_name(2**63 - 1, names.TIME_INDEX_SUFFIX) == "09223372036854775807.timeindex"
    assert names.segment_file_name(7, names.SNAPSHOT_SUFFIX, names.DELETED_SUFFIX) == "00000000000000000007.snapshot.deleted"


@pytest.mark.parametrize("state", ["", ".deleted", ".cleaned", ".swap", ".swap.deleted"])
@pytest.mark.parametrize("suffix", [*names.SEGMENT_SUFFIXES, names.SNAPSHOT_SUFFIX])
def test_segment_file_names_are_read_back(suffix: str, state: str) -> None:
    assert parse_segment_file_name(names.segment_file_name(9, suffix, state)) == SegmentFileName(9, suffix, state)


@pytest.mark.parametrize(
    "name",
    ["", "1.log.tmp", "x.log", "00000000000000000001.checkpoint", "-1.log", "1.log.", "99999999999999999999.log", "1log"],
)
def test_other_files_are_no_segment_files(name: str) -> None:
    assert parse_segment_file_name(name) is None


@given(TOPICS, st.integers(0, 2**31 - 1))
def test_folder_names_are_read_back(topic: str, number: int) -> None:
    partition = TopicPartition(topic, number)
    assert parse_folder_name(names.folder_name(partition)) == names.FolderName(partition, "")
    future = parse_folder_name(names.future_folder_name(partition, UNIQUE))
    assert (future.partition, future.is_future) == (partition, True)


@given(TOPICS, st.integers(0, 2**31 - 1))
def test_names_of_deleted_folders_fit_any_file_system(topic: str, number: int) -> None:
    partition = TopicPartition(topic, number)
    for name in (names.delete_folder_name(partition, UNIQUE), names.stray_folder_name(partition, UNIQUE)):
        assert len(name) <= 255
        parsed = parse_folder_name(name)
        assert parsed.is_deletion or parsed.is_stray
        assert parsed.partition.partition == number
        assert topic.startswith(parsed.partition.topic)
        assert len(name) == 255 or parsed.partition.topic == topic


def test_deletion_name_is_kafkas() -> None:
    assert names.delete_folder_name(TopicPartition("a.b-c", 3), UNIQUE) == "a.b-c-3.0123456789abcdef0123456789abcdef-delete"
    assert parse_folder_name("a.b-c-3.0123456789abcdef0123456789abcdef-stray").is_stray


@pytest.mark.parametrize(
    "name",
    ["", "topic", "topic-", "-1", "topic-x", "topic-99999999999", "topic-delete", "topic-1-delete", "t-0 .x-future x", "a-٣"],
)
def test_other_folders_are_refused_with_advice(name: str) -> None:
    with pytest.raises(InvalidFolderName, match="move the folder elsewhere"):
        parse_folder_name(name)


def test_segment_bases_of_a_folder() -> None:
    files = ["00000000000000000007.log", "00000000000000000000.log", "00000000000000000003.log.deleted", "x.log", "a-0"]
    assert names.segment_bases(files) == [0, 7]
