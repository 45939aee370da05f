"""What the process has used, from the operating system."""

from ottla.env.real.usage import process_usage


def test_the_numbers_are_this_processs() -> None:
    before = process_usage()
    ballast = bytearray(b"x") * 30_000_000
    with open(__file__, encoding="utf-8"):
        sum(range(3_000_000))
        after = process_usage()
    assert after.cpu_s > before.cpu_s
    assert after.resident_bytes - before.resident_bytes > len(ballast) // 2
    assert after.open_files == before.open_files + 1
