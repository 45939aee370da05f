"""A segment: append and index, read by offset, roll, truncate, wrong indexes, files."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples
from tests.support.logs.batches import T0, make_batch, sized_batch, values_of

from ottla.config.topic import LogConfig
from ottla.env import OpenMode
from ottla.errors import CorruptFile
from ottla.log.segments.scan import BatchPlace
from ottla.log.segments.segment import Segment
from ottla.log.segments.time_lookup import find_by_time, find_max_timestamp
from ottla.records.batch import BatchView
from ottla.sim.disk import MemoryDisk

BASE = 50
CONFIG = LogConfig(segment_bytes=1 << 20, index_interval_bytes=4096)


def new_segment(disk: MemoryDisk, config: LogConfig = CONFIG) -> Segment:
    return Segment.create(disk, "", BASE, config, now_ms=T0)


def open_segment(disk: MemoryDisk, config: LogConfig = CONFIG) -> Segment:
    return Segment(disk, "", BASE, config, now_ms=T0)


def append(segment: Segment, batch: bytearray) -> None:
    view = BatchView(batch)
    segment.append(batch, view.base_offset, view.last_offset, view.max_timestamp)


def filled(disk: MemoryDisk, sizes: list[int], config: LogConfig = CONFIG) -> Segment:
    """Batches of two records each; offsets leave a gap of one after every batch."""
    segment = new_segment(disk, config)
    for number, size in enumerate(sizes):
        append(segment, sized_batch(size, base_offset=BASE + 3 * number, timestamp=T0 + 10 * number, count=2))
    return segment


@settings(max_examples=examples(50), deadline=None)
@given(sizes=st.lists(st.integers(90, 20_000), max_size=40), interval=st.sampled_from([0, 1, 500, 4096]), reopen=st.booleans())
def test_every_offset_is_found_in_its_batch(sizes: list[int], interval: int, reopen: bool) -> None:
    config = LogConfig(index_interval_bytes=interval)
    disk = MemoryDisk()
    segment = filled(disk, sizes, config)
    if reopen:
        segment.close()
        segment = open_segment(disk, config)
    for number in range(len(sizes)):
        for offset in (BASE + 3 * number - 1, BASE + 3 * number, BASE + 3 * number + 1):
            place = segment.find(offset)
            assert place is not None
            assert (place.base_offset, place.last_offset) == (BASE + 3 * number, BASE + 3 * number + 1)
    assert segment.find(BASE + 3 * len(sizes)) is None
    assert segment.next_offset() == BASE + max(0, 3 * len(sizes) - 1)
    for number in range(len(sizes)):
        found = find_by_time(segment, T0 + 10 * number + 1, BASE)
        assert found is not None
        assert (found.timestamp, found.offset) == (T0 + 10 * number + 1, BASE + 3 * number + 1)


def test_a_large_batch_with_an_index_entry_is_found_with_one_read() -> None:
    segment = filled(MemoryDisk(), [15_000] * 8)
    reads: list[int] = []
    file = segment.file

    class Counted:
        size = file.size

        def read(self, position: int, length: int) -> bytes:
            reads.append(position)
            return file.read(position, length)

    segment.file = Counted()  # type: ignore[assignment]
    size = file.size // 8
    place = BatchPlace(BASE + 12, BASE + 13, 4 * size, size)
    assert segment.find(BASE + 12) == place
    assert segment.find(BASE + 13) == place
    assert reads == [4 * size, 4 * size]
    assert segment.find(BASE + 11) == place, "the offset is between two batches"


def test_small_batches_before_a_large_one_are_found() -> None:
    segment = filled(MemoryDisk(), [5000, 5000, 300, 300, 300, 15_000, 5000])
    for number in range(7):
        place = segment.find(BASE + 3 * number)
        assert place is not None
        assert place.base_offset == BASE + 3 * number


def test_a_next_entry_that_is_wrong_is_not_believed() -> None:
    segment = filled(MemoryDisk(), [15_000] * 8)
    right = segment.find(BASE + 12)
    index = segment.offset_index
    number = next(number for number in range(index.count) if index.entry(number)[0] == 13)
    size = segment.size // 8
    for wrong in (5 * size, 4 * size + 1):
        index._values[number] = wrong
        assert segment.find(BASE + 12) == right


def test_entries_name_the_last_offset_of_the_batch_they_point_to() -> None:
    disk = MemoryDisk()
    segment = filled(disk, [3000] * 10)
    index = segment.offset_index
    assert index.count > 2
    for number in range(index.count):
        relative, position = index.entry(number)
        assert BatchView(segment.file.read(position, 100)).last_offset == BASE + relative


def test_batches_appended_together_are_indexed_one_by_one() -> None:
    disk, other = MemoryDisk(), MemoryDisk()
    batches = [sized_batch(3000, base_offset=BASE + 2 * n, timestamp=T0 + n, count=2) for n in range(8)]
    one = new_segment(disk)
    for batch in batches:
        append(one, batch)
    together = new_segment(other)
    together.append_batches(b"".join(batches), [BatchView(batch) for batch in batches])
    one.close()
    together.close()
    for suffix in ("log", "index", "timeindex"):
        path = f"/{BASE:020d}.{suffix}"
        assert disk.read_file(path) == other.read_file(path)


def test_read_limits() -> None:
    disk = MemoryDisk()
    segment = filled(disk, [1000, 1000, 1000])
    first = segment.find(BASE)
    assert first is not None
    whole = segment.read(BASE, 10_000, segment.size, min_one_batch=False)
    assert whole is not None
    assert whole.range is not None
    assert whole.range.read() == segment.file.read(0, segment.size)
    one = segment.read(BASE, 10, segment.size, min_one_batch=True)
    assert one is not None
    assert one.range is not None
    assert one.range.length == first.size
    assert not one.first_batch_incomplete
    torn = segment.read(BASE, 10, segment.size, min_one_batch=False)
    assert torn is not None
    assert torn.range is not None
    assert torn.range.length == 10
    assert torn.first_batch_incomplete
    limited = segment.read(BASE, 10_000, first.size, min_one_batch=True)
    assert limited is not None
    assert limited.range is not None
    assert limited.range.length == first.size
    assert segment.read(BASE, 0, segment.size, min_one_batch=False).range is None  # type: ignore[union-attr]
    assert segment.read(BASE, 10, None, min_one_batch=True).range is None  # type: ignore[union-attr]
    assert segment.read(BASE + 9, 10, segment.size, min_one_batch=True) is None


def test_a_range_outlives_the_segment() -> None:
    disk = MemoryDisk()
    segment = filled(disk, [1000])
    read = segment.read(BASE, 10_000, segment.size, min_one_batch=True)
    assert read is not None
    assert read.range is not None
    asyncio.run(segment.delete())
    assert disk.list_directory("/") == []
    assert len(values_of(read.range.read())) == 2


def test_should_roll() -> None:
    disk = MemoryDisk()
    config = LogConfig(segment_bytes=5000, segment_ms=1000, segment_index_bytes=40, index_interval_bytes=1)
    segment = new_segment(disk, config)

    def roll(size: int = 100, timestamp: int = T0, offset: int = BASE, now: int = T0) -> bool:
        return segment.should_roll(config, size, timestamp, offset, now)

    assert not roll()
    assert not roll(timestamp=T0 + 10**9, now=T0 + 10**9), "an empty segment is never too old"
    assert roll(size=5001)
    assert roll(offset=BASE + 2**31)
    assert not roll(offset=BASE + 2**31 - 1)
    append(segment, make_batch(base_offset=BASE))
    assert not roll(timestamp=T0 + 1000, now=T0 + 10**9), "what counts is the time of the records"
    assert roll(timestamp=T0 + 1001)
    segment.roll_jitter_ms = 500
    assert roll(timestamp=T0 + 501)
    assert not roll(timestamp=T0 + 500)
    assert not roll(size=5000 - segment.size)
    assert roll(size=5001 - segment.size)
    for number in range(1, 3):
        assert not roll()
        append(segment, make_batch(base_offset=BASE + number, timestamp=T0 + number))
    assert roll(), "the time index has room for three entries, and one is reserved for the roll"


def test_records_without_timestamps_roll_by_the_age_of_the_segment() -> None:
    disk = MemoryDisk()
    config = LogConfig(segment_ms=1000)
    segment = new_segment(disk, config)
    append(segment, make_batch(base_offset=BASE, timestamp=-1))
    assert not segment.should_roll(config, 100, -1, BASE + 1, T0 + 1000)
    assert segment.should_roll(config, 100, -1, BASE + 1, T0 + 1001)


def test_truncation_cuts_records_and_entries() -> None:
    disk = MemoryDisk()
    segment = filled(disk, [3000] * 10)
    size = segment.size
    assert segment.truncate_to(BASE + 15, T0) > 0
    assert segment.size == size // 2
    assert segment.next_offset() == BASE + 14
    assert segment.max_timestamp == T0 + 41
    assert segment.truncate_to(BASE + 14, T0) == 0
    append(segment, sized_batch(3000, base_offset=BASE + 20, timestamp=T0 + 5, count=2))
    segment.close()
    again = open_segment(disk)
    assert again.max_timestamp == T0 + 41
    assert again.next_offset() == BASE + 22
    assert again.truncate_to(BASE, T0) == again.size + len(sized_batch(3000, count=2)) * 6
    assert again.max_timestamp == -1


def test_truncating_inside_a_batch_takes_the_whole_batch() -> None:
    disk = MemoryDisk()
    segment = filled(disk, [1000] * 3)
    segment.truncate_to(BASE + 4, T0)
    assert segment.next_offset() == BASE + 2


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("damage", ["flip", "cut", "garbage", "empty"])
def test_wrong_indexes_are_rebuilt(suffix: str, damage: str) -> None:
    disk = MemoryDisk()
    segment = filled(disk, [700] * 60)
    segment.close()
    path = f"/{BASE:020d}.{suffix}"
    honest = disk.read_file(path)
    assert len(honest) > 60
    for at in range(0, len(honest), 5):
        data = bytearray(honest)
        if damage == "flip":
            data[at] ^= 0x11
        elif damage == "cut":
            del data[at:]
        elif damage == "garbage":
            data[at : at + 8] = b"\x13\x37\xaa\x55" * 2
        else:
            data.clear()
        file = disk.open(path, OpenMode.CREATE)
        file.truncate(0)
        file.append(bytes(data))
        again = open_segment(disk)
        for number in range(0, 60, 7):
            place = again.find(BASE + 3 * number)
            assert place is not None
            assert place.base_offset == BASE + 3 * number
            found = find_by_time(again, T0 + 10 * number, BASE)
            assert found is not None
            assert found.offset == BASE + 3 * number
        again.abandon()


def test_reading_a_damaged_log_file_names_its_position() -> None:
    disk = MemoryDisk()
    segment = filled(disk, [700] * 20)
    segment.close()
    file = disk.open(f"/{BASE:020d}.log", OpenMode.WRITE)
    cut = file.size - 100
    file.truncate(cut)
    again = open_segment(disk)
    with pytest.raises(CorruptFile, match=r"\.log at byte \d+"):
        again.find(BASE + 3 * 19)
    assert again.find(BASE) is not None


def test_max_timestamp_is_the_first_record_that_has_it() -> None:
    disk = MemoryDisk()
    segment = new_segment(disk)
    append(segment, make_batch(b"a", b"b", base_offset=BASE, timestamp=T0))
    append(segment, make_batch(b"c", b"d", b"e", base_offset=BASE + 2, timestamp=T0 + 100))
    append(segment, make_batch(b"f", base_offset=BASE + 5, timestamp=T0 + 7))
    found = find_max_timestamp(segment)
    assert found is not None
    assert (found.timestamp, found.offset) == (T0 + 102, BASE + 4)
    assert find_by_time(segment, T0 + 103, BASE) is None
    late = find_by_time(segment, T0 + 1, BASE + 2)
    assert late is not None
    assert late.offset == BASE + 2


def test_names_change_together() -> None:
    disk = MemoryDisk()
    segment = filled(disk, [700] * 20)
    segment.close()
    again = open_segment(disk)
    asyncio.run(again.change_state(".deleted"))
    assert disk.list_directory("/") == [f"{BASE:020d}.{suffix}.deleted" for suffix in ("index", "log", "timeindex")]
    assert again.find(BASE + 30) is not None
    asyncio.run(again.delete())
    assert disk.list_directory("/") == []


def test_retention_uses_the_file_time_if_records_have_none() -> None:
    disk = MemoryDisk()
    segment = new_segment(disk)
    append(segment, make_batch(base_offset=BASE, timestamp=-1))
    disk.set_modified_ms(f"/{BASE:020d}.log", 12345)
    assert segment.largest_timestamp == 12345
