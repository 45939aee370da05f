"""Which partition of an internal topic keeps a group or a transactional id: Java's hash of the text, without its sign."""

from functools import lru_cache

KEYS_REMEMBERED = 4096
REMEMBERED_SIZE_MAX = 256
"""The same groups and transactional ids come again and again, and their hash takes as long as what is then done with them."""


def java_hash(text: str) -> int:
    """`String.hashCode` of Java, which counts in UTF-16 units: a signed number of 32 bits."""
    result = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        result = (31 * result + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return result - (1 << 32) if result >= 1 << 31 else result


def partition_for(key: str, partition_count: int) -> int:
    """The partition that keeps `key`. The smallest number has no positive twin, and counts as 0."""
    return _remembered(key, partition_count) if len(key) <= REMEMBERED_SIZE_MAX else _partition_for(key, partition_count)


def _partition_for(key: str, partition_count: int) -> int:
    number = java_hash(key)
    return (0 if number == -(1 << 31) else abs(number)) % partition_count


_remembered = lru_cache(KEYS_REMEMBERED)(_partition_for)
