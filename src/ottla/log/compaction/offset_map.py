"""A map from key to last offset, in a fixed amount of memory.

Every key takes 24 bytes: a fingerprint of 16 and an offset of 8, as in Apache Kafka, so that log.cleaner.dedupe.buffer.size
holds the same number of keys. A dictionary would take five times that (measured: docs/decisions/0004).

The fingerprint of a key of up to 15 bytes is the key itself, padded, with its length as the last byte: no hash, and exact. For
a longer key it is 15 bytes of BLAKE2b and 0x80, a last byte that no length has; among a billion keys the chance that two share
one is about 1 in 10^18. Keys with equal fingerprints are taken as equal.

Fingerprints are in buckets of 32, filled from the front. A bucket is searched with one `bytearray.find`, in C; a full one
overflows into the next.
"""

from hashlib import blake2b

FINGERPRINT_BYTES = 16
OFFSET_BYTES = 8
SLOT_BYTES = FINGERPRINT_BYTES + OFFSET_BYTES
BUCKET_SLOTS = 32
BUCKET_BYTES = BUCKET_SLOTS * FINGERPRINT_BYTES

SHORT_KEY_MAX = FINGERPRINT_BYTES - 1
LENGTH_BYTE = [bytes([length]) for length in range(FINGERPRINT_BYTES)]
HASHED = b"\x80"

NOT_FOUND = -1


def memory_for(keys: int, load_factor: float) -> int:
    """How many bytes a map needs for `keys` different keys."""
    return SLOT_BYTES * (int(keys / load_factor) + 2)


def fingerprint(key: bytes) -> bytes:
    """The 16 bytes that represent `key`."""
    if len(key) <= SHORT_KEY_MAX:
        return key.ljust(SHORT_KEY_MAX, b"\0") + LENGTH_BYTE[len(key)]
    return blake2b(key, digest_size=SHORT_KEY_MAX).digest() + HASHED


class OffsetMap:
    """Key → last offset, for as many keys as `memory_bytes` hold at `load_factor`.

    `latest_offset` is the offset up to which the log has been put into the map; -1 for none.
    """

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        slots = memory_bytes // SLOT_BYTES
        self.capacity = int(slots * load_factor)
        """How many different keys fit."""
        if self.capacity < 1:
            raise ValueError(f"{memory_bytes} bytes hold no key: a map needs {SLOT_BYTES} bytes for each, and room to spare")
        self._buckets = -(-slots // BUCKET_SLOTS)
        self._fingerprints = bytearray(self._buckets * BUCKET_BYTES)
        self._offsets = memoryview(bytearray(self._buckets * BUCKET_SLOTS * OFFSET_BYTES)).cast("q")
        self._filled = bytearray(self._buckets)
        self.count = 0
        self.latest_offset = -1

    @property
    def is_full(self) -> bool:
        return self.count >= self.capacity

    @property
    def utilization(self) -> float:
        return self.count / self.capacity

    def put(self, key: bytes, offset: int) -> None:
        """Store `offset` for `key`. The caller checks `is_full` first; a full map takes nothing more, not even a known key."""
        mark = fingerprint(key)
        bucket = hash(mark) % self._buckets
        while True:
            filled = self._filled[bucket]
            start = bucket * BUCKET_BYTES
            end = start + filled * FINGERPRINT_BYTES
            position = self._fingerprints.find(mark, start, end)
            while position % FINGERPRINT_BYTES and position >= 0:  # a match across two fingerprints
                position = self._fingerprints.find(mark, position + 1, end)
            if position >= 0:
                break
            if filled < BUCKET_SLOTS:
                position = end
                self._fingerprints[end : end + FINGERPRINT_BYTES] = mark
                self._filled[bucket] = filled + 1
                self.count += 1
                break
            bucket = (bucket + 1) % self._buckets
        self._offsets[position // FINGERPRINT_BYTES] = offset
        self.latest_offset = offset

    def get(self, key: bytes) -> int:
        """The last offset put for `key`; `NOT_FOUND` if there was none."""
        mark = fingerprint(key)
        bucket = hash(mark) % self._buckets
        while True:
            filled = self._filled[bucket]
            start = bucket * BUCKET_BYTES
            end = start + filled * FINGERPRINT_BYTES
            position = self._fingerprints.find(mark, start, end)
            while position % FINGERPRINT_BYTES and position >= 0:
                position = self._fingerprints.find(mark, position + 1, end)
            if position >= 0:
                return self._offsets[position // FINGERPRINT_BYTES]
            if filled < BUCKET_SLOTS:
                return NOT_FOUND
            bucket = (bucket + 1) % self._buckets
