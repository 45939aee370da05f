"""Tables that fit a terminal: numbers stay whole, ids and hosts are shortened or left out first."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.common.tables import lay_out, shorten, wrap

MEMBER = "consumer-billing-1-5f0c1c5e-8f2e-4b0e-9d0a-3f6f6f1f2a3b"
HEADINGS = ("Topic", "#Partition", "#Current offset", "#Log end offset", "#Lag", "~Consumer id", "~Host", "~Client id")
ROW = ("orders", "0", "1597551", "1597561", "10", MEMBER, "/192.168.100.100", "billing-client")


def test_columns_are_as_wide_as_their_cells_where_there_is_room() -> None:
    table = lay_out(HEADINGS, [ROW], 200)
    assert table.headings == [
        f"Topic   Partition  Current offset  Log end offset  Lag  {'Consumer id':{len(MEMBER)}}  Host              Client id"
    ]
    assert table.rows == [f"orders          0         1597551         1597561   10  {MEMBER}  /192.168.100.100  billing-client"]
    assert table.left_out == []


def test_ids_and_hosts_are_shortened_before_numbers_lose_anything() -> None:
    table = lay_out(HEADINGS, [ROW], 80)
    assert table.headings == [
        "                   Current  Log end",
        "Topic   Partition   offset   offset  Lag  Consumer id  Host         Client id",
    ]
    assert table.rows == ["orders          0  1597551  1597561   10  consu…f2a3b  /192.…0.100  billin…lient"]


def test_ids_and_hosts_are_left_out_where_shortening_is_not_enough() -> None:
    table = lay_out(HEADINGS, [ROW], 60)
    assert table.left_out == ["Client id"]
    assert table.rows == ["orders          0  1597551  1597561   10  cons…a3b  /192…100"]


def test_names_are_shortened_when_nothing_else_is_left() -> None:
    table = lay_out(HEADINGS, [("x" * 200, *ROW[1:])], 60)
    assert table.left_out == ["Consumer id", "Host", "Client id"]
    (row,) = table.rows
    assert len(row) == 60
    assert row.split() == [shorten("x" * 200, len(row.split()[0])), "0", "1597551", "1597561", "10"]


def test_a_table_that_cannot_fit_becomes_a_block_per_row() -> None:
    offsets = [str(2**63 - 1)] * 4
    table = lay_out(("Topic", "#A", "#B", "#C", "#D", "~Host"), [("t", *offsets, "h"), ("u", *offsets, "h")], 60)
    assert table.headings == []
    block = [f"A      {2**63 - 1}", f"B      {2**63 - 1}", f"C      {2**63 - 1}", f"D      {2**63 - 1}", "Host   h"]
    assert table.rows == ["Topic  t", *block, "", "Topic  u", *block]


def test_lists_are_broken_after_commas() -> None:
    table = lay_out(("#Partition", "=Replicas"), [("0", ",".join(str(1000 + each) for each in range(12)))], 40)
    assert table.rows == [
        "        0  1000,1001,1002,1003,1004,",
        "           1005,1006,1007,1008,1009,",
        "           1010,1011",
    ]


def test_unlimited_width_keeps_each_row_on_one_line() -> None:
    table = lay_out(("Name", "=Meaning", "~Host"), [("x" * 500, "a b, c " * 100, "h" * 500)], None)
    assert len(table.rows) == 1
    assert "…" not in table.rows[0]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, [""]),
        ("one two", 5, ["one", "two"]),
        ("log.retention.ms", 10, ["log.", "retention.", "ms"]),
        ("0.5 is half", 7, ["0.5 is", "half"]),
        ("/data/kafka/orders-0", 13, ["/data/kafka/", "orders-0"]),
        ("abcdefgh12345", 10, ["abcdefgh", "12345"]),
        ("1234567890123", 10, ["1234567890", "123"]),
        ("日本語日本語", 6, ["日本語", "日本語"]),
    ],
)
def test_text_is_broken_between_words_and_never_within_a_number(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width, in_lists=True) == lines


def test_commas_within_numbers_do_not_break_prose() -> None:
    assert wrap("of 270,553,174,016 bytes", 15) == ["of", "270,553,174,016", "bytes"]


NUMBERS = st.integers(min_value=0, max_value=2**63 - 1).map(str)
NAMES = st.text(alphabet="abc-.x日 ", max_size=120)
MARKED = st.sampled_from(["#Offset", "#Log end offset", "Topic", "~Host", "~Client id", "=Partitions"])


@given(st.lists(MARKED, min_size=1, max_size=8), st.data(), st.integers(min_value=60, max_value=120))
def test_no_line_is_too_long_and_no_number_broken(headings: list[str], data: st.DataObject, width: int) -> None:
    numbers: list[str] = []

    def cell(heading: str) -> str:
        if heading.startswith("#"):
            numbers.append(data.draw(NUMBERS))
            return numbers[-1]
        if heading.startswith("="):
            several = data.draw(st.lists(NUMBERS, max_size=5))
            numbers.extend(several)
            return ",".join(several)
        return data.draw(NAMES)

    rows = [[cell(heading) for heading in headings] for _ in range(data.draw(st.integers(0, 3)))]
    table = lay_out(headings, rows, width)
    from rich.cells import cell_len

    assert all(cell_len(line) <= width for line in (*table.headings, *table.rows))
    assert sorted(re.findall(r"\d+", " ".join(table.rows))) == sorted(numbers)
