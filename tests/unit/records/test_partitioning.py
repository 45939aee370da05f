"""The functions that everything else imports are those of the kernel."""

from ottla.records import kernels, partitioning


def test_functions_are_those_of_the_variant_in_use() -> None:
    assert partitioning.murmur2 is kernels.murmur2
    assert partitioning.partition_of_key(b"user-1", 12) == (partitioning.murmur2(b"user-1") & 0x7FFFFFFF) % 12
