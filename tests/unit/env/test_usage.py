"""The process's resource usage, from the operating system."""

import mmap

from ottla.env.real.own_process import process_usage

BALLAST = 30_000_000


def test_the_numbers_are_this_processs() -> None:
    before = process_usage()
    # A mapping of its own: the allocator may hand out memory that was resident before.
    with mmap.mmap(-1, BALLAST) as ballast, open(__file__, encoding="utf-8"):
        ballast.write(b"x" * BALLAST)
        sum(range(3_000_000))
        after = process_usage()
    assert after.cpu_s > before.cpu_s
    assert after.resident_bytes - before.resident_bytes > BALLAST // 2
    assert after.open_files == before.open_files + 1
