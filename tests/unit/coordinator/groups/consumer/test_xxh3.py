"""Tests of `ottla.coordinator.groups.consumer.xxh3`, against values of the reference implementation."""

import pytest

from ottla.coordinator.groups.consumer.xxh3 import xxh3_64


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, 0x2D06800538D394C2),
        (1, 0xE12EF9D2EB86CEEB),
        (3, 0xA9088DDA485B481C),
        (4, 0x57648C318A7A307E),
        (8, 0xB0FB3E3C3F94990A),
        (9, 0x8ACA5CB309437C2E),
        (16, 0x2BD926D88792965A),
        (17, 0x621F018AAD19B14A),
        (128, 0xE9549AF9A74093E6),
        (129, 0xB54AD1CD8A4C84B9),
        (240, 0x3E136902EC966624),
        (241, 0xBD7D29B6BA966D6A),
        (1024, 0xDC5ACF0B043C445B),
        (1025, 0xC856C953BBDBC807),
        (5000, 0x308F149A673A1625),
    ],
)
def test_hashes_equal_those_of_the_reference(size: int, expected: int) -> None:
    assert xxh3_64(bytes((index * 7 + size) % 256 for index in range(size))) == expected
