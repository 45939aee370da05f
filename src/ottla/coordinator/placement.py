"""Maps a group or a transactional id to its partition of an internal topic: the absolute value of Java's string hash."""

from functools import lru_cache

KEYS_REMEMBERED = 4096
REMEMBERED_SIZE_MAX = 256
"""Longer keys are not cached. The cache is there because hashing a key costs as much as the work that follows."""


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: a signed 32-bit number, computed over UTF-16 units."""
    result = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        result = (31 * result + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return result - (1 << 32) if result >= 1 << 31 else result


def partition_for(key: str, partition_count: int) -> int:
    """The partition of `key`. The hash -2**31 has no positive counterpart in 32 bits, and counts as 0."""
    return _remembered(key, partition_count) if len(key) <= REMEMBERED_SIZE_MAX else _partition_for(key, partition_count)


def _partition_for(key: str, partition_count: int) -> int:
    number = java_hash(key)
    return (0 if number == -(1 << 31) else abs(number)) % partition_count


_remembered = lru_cache(KEYS_REMEMBERED)(_partition_for)
