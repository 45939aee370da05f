"""Words for texts that people read."""

import pytest

from ottla.errors.texts import counted, listed, near_words, sized


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 records"), (1, "1 record"), (2, "2 records"), (1_234_567, "1,234,567 records")]
)
def test_counts_have_the_right_plural(count: int, text: str) -> None:
    assert counted(count, "record") == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (1_550_000_000, "1.6 GB"),
        (5_000_000_000_000_000, "5,000.0 TB"),
    ],
)
def test_sizes_have_a_unit(size_bytes: int, text: str) -> None:
    assert sized(size_bytes) == text


def test_plural_may_be_given() -> None:
    assert (counted(1, "entry", "entries"), counted(3, "entry", "entries")) == ("1 entry", "3 entries")


@pytest.mark.parametrize(
    ("names", "text"), [("", ""), ("a", "a"), ("ab", "a and b"), ("abc", "a, b and c"), ("abcdefg", "a, b, c, d, e and 2 more")]
)
def test_long_lists_are_cut(names: str, text: str) -> None:
    assert listed(list(names)) == text


def test_near_words_are_similar_ones_the_most_similar_first() -> None:
    choices = {"linger.ms", "max.block.ms", "acks"}
    assert near_words("linger.sm", choices) == ["linger.ms"]
    assert near_words("zzz", choices) == []
    assert near_words("max.blocks.ms", choices, count=2, cutoff=0.1)[0] == "max.block.ms"
