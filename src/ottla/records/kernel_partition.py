# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""The partition of a key by its hash, in one source for two variants.

The rules are those of `kernel.py`. The hash itself is `fields.murmur2`, which other kernels inline from there.
"""

from ottla.records import kernel_fields as fields

_MASK31 = 0x7FFFFFFF


def murmur2(key: bytes) -> int:
    """The 32-bit hash without a sign by which Kafka's clients spread keys."""
    raw = key
    return fields.murmur2(raw, 0, len(key))


def partition_of_key(key: bytes, count: int) -> int:
    """The partition, of `count`, that every record with this key goes to: the hash without its sign bit, modulo `count`."""
    if count < 1:
        raise ValueError(f"a topic with {count} partitions has no partition for a key")
    raw = key
    return (fields.murmur2(raw, 0, len(key)) & _MASK31) % count
