"""Files of a partition folder cut, flipped, overwritten and deleted at random: the log recovers, or refuses with an error.

Every record read afterwards was written, at that offset. Base offset and leader epoch of a batch are not damaged: the format
has no checksum for them.
"""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples
from tests.support.logs.partition_logs import FOLDER, LogOnDisk, run

from ottla.env import OpenMode
from ottla.errors import CorruptFile, CorruptRecords
from ottla.log.names import LOG_SUFFIX
from ottla.records.batch import iterate_batches

UNCHECKED = (*range(8), *range(12, 16))


def filled() -> LogOnDisk:
    env = LogOnDisk()
    env.fill(12, epoch=1)
    env.append(b"t" * 40, producer=(8, 0, 0), transactional=True, epoch=1)
    env.end_transaction(8, commit=False, epoch=1)
    for number in range(6):
        env.append(b"p" * 100, producer=(9, 0, number), epoch=2)
    env.fill(10, epoch=2)
    return env


def unchecked_bytes(data: bytes) -> set[int]:
    return {view.position + at for view in iterate_batches(data) for at in UNCHECKED}


@settings(max_examples=examples(250), deadline=None)
@given(
    clean=st.booleans(),
    damages=st.lists(
        st.tuples(
            st.integers(0, 1000),
            st.sampled_from(["flip", "cut", "delete", "zeros", "garbage"]),
            st.integers(0, 10**6),
            st.integers(1, 255),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_random_damage(clean: bool, damages: list[tuple[int, str, int, int]]) -> None:
    env = filled()
    written = {record.offset: record for record in env.records()}
    if clean:
        env.close()
    for choice, kind, at, bits in damages:
        names = env.files()
        damage(env, names[choice % len(names)], kind, at, bits)
    try:
        if clean:
            env.load(clean=True)
        else:
            env.crash()
        for record in env.records():
            assert written.get(record.offset) == record
        env.log.aborted_transactions(0, env.log.log_end_offset)
        env.log.offset_for_time(written[5].timestamp)
        env.log.max_timestamp_offset()
        end = env.log.log_end_offset
        assert env.append(b"goes on", epoch=7) == end
        refusal = ""
    except (CorruptFile, CorruptRecords) as refused:
        refusal = str(refused)
    assert not refusal or "at byte" in refusal


def damage(env: LogOnDisk, name: str, kind: str, at: int, bits: int) -> None:
    path = f"{FOLDER}/{name}"
    data = bytearray(env.disk.read_file(path))
    if kind == "delete":
        run(env.disk.remove(path))
        return
    place = at % max(1, len(data))
    if kind == "flip" and data:
        if name.endswith(LOG_SUFFIX) and is_unchecked(bytes(data), place):
            return
        data[place] ^= bits
    elif kind == "cut":
        del data[place:]
    elif kind == "zeros":
        data += bytes(at % 5000)
    elif kind == "garbage":
        data += bytes([bits]) * (at % 500)
    file = env.disk.open(path, OpenMode.CREATE)
    file.truncate(0)
    file.append(bytes(data))


def is_unchecked(data: bytes, place: int) -> bool:
    try:
        return place in unchecked_bytes(data)
    except CorruptRecords:
        return True
