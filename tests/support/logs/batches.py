"""Small batches for tests of the log: as a producer sends them, or with the offsets they have in a log."""

from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.reader import read_records
from ottla.records.record import Record

T0 = 1_700_000_000_000


def make_batch(
    *values: bytes | None,
    base_offset: int = 0,
    timestamp: int = T0,
    key: bytes | None = None,
    leader_epoch: int = -1,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] | None = None,
    transactional: bool = False,
) -> bytearray:
    """A batch of one record per value. Timestamps rise by one per record; `producer` is (id, epoch, first sequence)."""
    producer_id, producer_epoch, base_sequence = producer or (-1, -1, -1)
    records = [
        Record(base_offset + index, timestamp + index, key, value, ()) for index, value in enumerate(values or (b"value",))
    ]
    return build_batch(
        records,
        leader_epoch=leader_epoch,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )


def sized_batch(size_bytes: int, *, base_offset: int = 0, timestamp: int = T0, count: int = 1) -> bytearray:
    """A batch of about `size_bytes` bytes in `count` records."""
    value = b"x" * max(1, (size_bytes - 61) // count - 10)
    return make_batch(*[value] * count, base_offset=base_offset, timestamp=timestamp)


def values_of(data: bytes) -> list[bytes | None]:
    """The values of all whole batches in `data`."""
    return [record.value for record in records_of(data)]


def records_of(data: bytes) -> list[Record]:
    """The records of all whole batches in `data`; a torn last batch is ignored, as by a consumer."""
    records: list[Record] = []
    position = 0
    while len(data) - position >= 61:
        view = BatchView(data, position)
        if position + view.size > len(data):
            break
        view.check()
        records.extend(read_records(view))
        position += view.size
    return records
