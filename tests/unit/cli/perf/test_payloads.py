"""Values for `ottla perf produce`."""

from pathlib import Path

import click
import pytest
from ottla.cli.perf.payloads import POOL_VALUES_MAX, Counted, Pool, file_payloads, random_payloads


def test_pool_begins_again_after_its_end() -> None:
    pool = Pool([b"a", b"b", b"c"])
    assert [list(pool.take(2)) for _ in range(3)] == [[b"a", b"b"], [b"c"], [b"a", b"b"]]


def test_random_values_are_letters_and_the_same_in_every_run() -> None:
    values = random_payloads(20, 1000).take(1000)
    assert len(set(values)) == 1000
    assert all(len(value) == 20 and value.isalpha() and value.isupper() for value in values)
    assert list(random_payloads(20, 1000).take(1000)) == list(values)


def test_pool_is_bounded_however_many_records_are_sent() -> None:
    assert len(random_payloads(1, 10**9).take(10**9)) == POOL_VALUES_MAX
    assert len(random_payloads(100_000_000, 10**9).take(5)) == 1


def test_counted_values_go_on() -> None:
    numbers = Counted()
    assert [*numbers.take(2), *numbers.take(1)] == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("content", "delimiter", "parts"),
    [
        (b"a\nb\r\n", "\\n", {b"a", b"b\r"}),
        (b"a,b,c,,", ",", {b"a", b"b", b"c"}),
        (b"a1b22c", "[0-9]+", {b"a", b"b", b"c"}),
        (b"\xff\x00\n", "\\n", {b"\xff\x00"}),
    ],
)
def test_file_is_split_by_a_regular_expression(tmp_path: Path, content: bytes, delimiter: str, parts: set[bytes]) -> None:
    path = tmp_path / "payloads"
    path.write_bytes(content)
    pool, count = file_payloads(str(path), delimiter, 1000)
    assert (set(pool.take(1000)), count) == (parts, len(parts))


@pytest.mark.parametrize(
    ("content", "delimiter", "fault"),
    [(None, ",", "cannot be read"), (b"", ",", "is empty"), (b"\n\n", "\\n", "only delimiters"), (b"a", "(", "expression")],
)
def test_file_without_values_is_refused(tmp_path: Path, content: bytes | None, delimiter: str, fault: str) -> None:
    path = tmp_path / "payloads"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(click.UsageError, match=fault):
        file_payloads(str(path), delimiter, 1)
