"""The header of a record batch, magic 2, as a cheap view over bytes that the caller owns. `layout.py` has the format.

The CRC-32C covers everything from `attributes` to the end. Attributes: bits 0-2 codec, 3 append time, 4 transactional,
5 control, 6 delete horizon (baseTimestamp is then the time from which compaction may drop tombstones and markers; record
timestamps are still baseTimestamp + delta, the deltas having been written against the horizon).

Rules: a view copies the header's numbers once and never looks at them again; it keeps the buffer alive. Making a view only
needs `HEADER_SIZE` bytes to be there: `check()` is what says that the batch is whole and undamaged.
"""

from collections.abc import Iterator

from ottla.errors import CorruptRecords
from ottla.records.checksum import crc32c
from ottla.records.compression import Codec
from ottla.records.layout import (
    APPEND_TIME,
    BATCH_LENGTH_MIN,
    CODEC_MASK,
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL,
)

Buffer = bytes | bytearray | memoryview

CODECS: tuple[Codec, ...] = tuple(Codec)


def sequence_after(sequence: int, steps: int) -> int:
    """The producer sequence `steps` after `sequence`: past 2^31 - 1 it starts again at 0."""
    return (sequence + steps) & 0x7FFFFFFF


class BatchView:
    """The header of the batch at `position` of `buffer`."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "batch_length",
        "buffer",
        "count",
        "crc",
        "last_offset_delta",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "position",
        "producer_epoch",
        "producer_id",
    )

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        self.buffer = buffer
        self.position = position
        if position < 0 or len(buffer) - position < HEADER_SIZE:
            raise CorruptRecords(
                f"a record batch needs a header of {HEADER_SIZE} bytes, but only {max(0, len(buffer) - position)} are left at "
                f"byte {position}: the batch is cut short",
                position,
            )
        (
            self.base_offset,
            self.batch_length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = HEADER.unpack_from(buffer, position)

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, or `NO_SEQUENCE`."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return sequence_after(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> Codec:
        number = self.attributes & CODEC_MASK
        if number >= len(CODECS):
            raise CorruptRecords(
                f"the batch at byte {self.position} is compressed with codec {number}, which Kafka does not define",
                self.position,
            )
        return CODECS[number]

    @property
    def is_compressed(self) -> bool:
        return self.attributes & CODEC_MASK != 0

    @property
    def is_append_time(self) -> bool:
        return self.attributes & APPEND_TIME != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop this batch's tombstones and markers, if compaction has set that."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def data(self) -> memoryview:
        """The whole batch, without a copy."""
        return memoryview(self.buffer)[self.position : self.position + self.size]

    @property
    def payload(self) -> memoryview:
        """What follows the header, without a copy: the records, compressed if the codec says so."""
        return memoryview(self.buffer)[self.position + HEADER_SIZE : self.position + self.size]

    def check_size(self) -> None:
        """`CorruptRecords` unless the batch is of magic 2 and lies whole in its buffer."""
        position = self.position
        if self.magic != MAGIC:
            raise CorruptRecords(
                f"the batch at byte {position} has magic {self.magic}; Kafka 4 knows only magic {MAGIC}. Convert logs of older "
                "formats with a Kafka 3 broker first",
                position,
            )
        if self.batch_length < BATCH_LENGTH_MIN:
            raise CorruptRecords(
                f"the batch at byte {position} says it is {self.batch_length} bytes long, less than its own header "
                f"({BATCH_LENGTH_MIN})",
                position,
            )
        if self.batch_length > len(self.buffer) - position - LOG_OVERHEAD:
            raise CorruptRecords(
                f"the batch at byte {position} says it is {self.size} bytes long, but only {len(self.buffer) - position} bytes "
                "are there: it is cut short, or its length is damaged",
                position,
            )

    def computed_crc(self) -> int:
        """The CRC-32C that the bytes really have."""
        position = self.position
        covered = memoryview(self.buffer)[position + CRC_START : position + LOG_OVERHEAD + self.batch_length]
        return crc32c(covered)

    def check(self) -> None:
        """`CorruptRecords` unless the batch is whole, of magic 2, and has the CRC it says it has."""
        self.check_size()
        self.check_crc()

    def check_crc(self) -> None:
        """`CorruptRecords` unless the batch, whose size was checked, has the CRC it says it has."""
        crc = self.computed_crc()
        if crc != self.crc:
            raise CorruptRecords(
                f"the batch at byte {self.position} (base offset {self.base_offset}) has CRC {crc:#010x}, but its header says "
                f"{self.crc:#010x}: its bytes are damaged",
                self.position,
            )

    def __repr__(self) -> str:
        return (
            f"BatchView(base_offset={self.base_offset}, last_offset_delta={self.last_offset_delta}, count={self.count}, "
            f"attributes={self.attributes:#x}, leader_epoch={self.leader_epoch}, producer_id={self.producer_id}, "
            f"producer_epoch={self.producer_epoch}, base_sequence={self.base_sequence}, size={self.size})"
        )


def iterate_batches(buffer: Buffer, position: int = 0, *, allow_cut_end: bool = False) -> Iterator[BatchView]:
    """Every batch of `buffer` from `position` on, in order. Sizes are checked, CRCs are not; damage is `CorruptRecords`.

    A last batch that is cut short is damage too. With `allow_cut_end` it is left out: reads and fetches end at a number of
    bytes, and the next one begins with that batch.
    """
    end = len(buffer)
    while position < end:
        if allow_cut_end and end - position < HEADER_SIZE:
            return
        view = BatchView(buffer, position)
        is_cut = view.batch_length > end - position - LOG_OVERHEAD
        if is_cut or view.batch_length < BATCH_LENGTH_MIN or view.magic != MAGIC:
            if allow_cut_end and is_cut and view.magic == MAGIC:
                return
            view.check_size()  # raises what is wrong
        yield view
        position += LOG_OVERHEAD + view.batch_length
