"""Which compressed batches of clients are unpacked before they are appended, within a budget of work.

A batch that nobody can unpack would stop every consumer of its partition. Apache Kafka unpacks every batch to find that out;
that would cost more than everything else of a produce request (docs/decisions/0010). So:

- Always: the sizes in the frame (`kernel_frames.py`). Random bytes and cut frames have none that fit, and a frame bounds how
  many records it can hold.
- Within the budget: unpack and walk all records. The budget is in unpacked bytes per millisecond, for the whole node. A node
  with little load inspects every batch, a busy one a sample, in the order of arrival.

What does not pass is not refused here: `validate.py` unpacks it and says what is wrong. One per node, on its event loop.
"""

from ottla.errors import CorruptRecords
from ottla.records.batch import CODECS
from ottla.records.compression import ExpandsTooFar, decompress
from ottla.records.kernels import RecordWalk, plain_bytes_max
from ottla.records.layout import COMPRESSED_COUNT_MAX, RECORD_SIZE_MIN

BYTES_PER_MS = 20_000
"""2% of a core, at 1 GB/s."""
SAVED_BYTES_MAX = 1_000 * BYTES_PER_MS
"""So much is saved up while nothing is inspected: also the most that one request can cost, about 20 ms."""
INSPECTED_BYTES_MAX = 4 << 20
"""A batch that unpacks to more is left alone: it would hold the event loop for too long."""
EXPECTED_EXPANSION = 4
CODEC_PRICES = (0, 4, 1, 1, 1)
"""By codec: how many times as long as with zstd an unpacked byte takes. snappy and lz4 are faster."""
BATCH_PRICE_BYTES = 20_000
"""Beginning to unpack a batch takes as long as so many bytes."""
RECORD_PRICE_BYTES = 16
"""Walking one record takes as long as unpacking so many bytes."""


class Inspection:
    """What may still be unpacked."""

    __slots__ = ("_left", "_now_ms", "_walk", "spent_ms")

    def __init__(self) -> None:
        self._left = SAVED_BYTES_MAX
        self._now_ms = 0
        self.spent_ms = -1
        """When the budget was last found to be used up: the fast check asks again a millisecond later."""
        self._walk = RecordWalk()

    def passes(self, codec: int, payload: memoryview, count: int, base_timestamp: int, max_timestamp: int, now_ms: int) -> bool:
        """False if `payload`, the compressed records of a batch, may be unreadable or not what the batch's header says."""
        size_max = plain_bytes_max(codec, payload, 0, len(payload))
        if count > COMPRESSED_COUNT_MAX or count * RECORD_SIZE_MIN > size_max:
            return False
        if now_ms != self._now_ms:
            if now_ms > self._now_ms:
                self._left = min(SAVED_BYTES_MAX, self._left + (now_ms - self._now_ms) * BYTES_PER_MS)
            self._now_ms = now_ms
        price = CODEC_PRICES[codec]
        fixed = BATCH_PRICE_BYTES + count * RECORD_PRICE_BYTES
        if min(size_max, len(payload) * EXPECTED_EXPANSION) * price + fixed > self._left:
            self.spent_ms = now_ms
            return True
        self._left -= fixed
        try:
            plain = decompress(CODECS[codec], payload, INSPECTED_BYTES_MAX)
        except ExpandsTooFar:
            self._left -= INSPECTED_BYTES_MAX * price
            return True
        except CorruptRecords:
            return False
        self._left -= len(plain) * price
        walk = self._walk
        try:
            walk.walk(plain, 0, len(plain), count, base_timestamp)
        except CorruptRecords:
            return False
        return walk.max_timestamp == max_timestamp and walk.displaced == 0


def cannot_hold(codec: int, payload: memoryview, count: int) -> bool:
    """Whether `payload` has the frame of `codec`, and its sizes rule out that it holds `count` records."""
    size_max = plain_bytes_max(codec, payload, 0, len(payload))
    return size_max >= 0 and (count > COMPRESSED_COUNT_MAX or count * RECORD_SIZE_MIN > size_max)
