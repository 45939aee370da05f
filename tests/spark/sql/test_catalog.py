"""The file that remembers declarations."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ottla.spark.sql.catalog import Catalog, default_path
from ottla.spark.sql.declarations import Declaration
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.statements import Column

ORDERS = Declaration("Orders", "stream", "orders", "json", (Column("id", "BIGINT"),), "id")


def test_declarations_are_remembered_and_found_in_any_case(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "c.json"
    Catalog(path).add(ORDERS)
    assert Catalog(path).find("oRDERS") == ORDERS
    assert [each.name for each in path.parent.iterdir()] == ["c.json"]


def test_changes_of_another_process_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    first, second = Catalog(path), Catalog(path)
    first.add(ORDERS)
    assert second.find("orders") == ORDERS
    second.drop("stream", "ORDERS")
    assert first.find("orders") is None


def test_name_that_is_taken_needs_or_replace() -> None:
    catalog = Catalog()
    catalog.add(ORDERS)
    with pytest.raises(SqlError, match="CREATE OR REPLACE STREAM"):
        catalog.add(ORDERS)
    catalog.add(ORDERS, is_replacing=True)


def test_drop_says_what_is_there() -> None:
    catalog = Catalog()
    catalog.add(ORDERS)
    with pytest.raises(SqlError, match="did you mean Orders"):
        catalog.drop("stream", "order")
    with pytest.raises(SqlError, match="DROP STREAM Orders"):
        catalog.drop("table", "orders")
    assert not catalog.drop("table", "users", if_exists=True)
    assert catalog.drop("stream", "orders")


def test_copy_changes_nothing_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    catalog = Catalog(path)
    catalog.add(ORDERS)
    catalog.copy().drop("stream", "orders")
    assert Catalog(path).find("orders") is not None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}', '{"version": 1, "declarations": [{"name": "a"}]}'])
def test_damaged_file_is_named_with_what_to_do(tmp_path: Path, content: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(content)
    with pytest.raises(SqlError, match=r"c\.json cannot be read.*delete it"):
        Catalog(path)


def test_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"version": 2, "declarations": []}')
    with pytest.raises(SqlError, match="is of version 2"):
        Catalog(path)


def test_default_file_is_one_for_each_cluster() -> None:
    one = default_path("Host:9092, other:9092", {"XDG_CONFIG_HOME": "/x"})
    assert one == Path("/x/ottla/sql/host-9092-other-9092.json")
    assert one == default_path("other:9092,host:9092", {"XDG_CONFIG_HOME": "/x"})
    assert default_path("h:1", {"HOME": "/u"}) == Path("/u/.config/ottla/sql/h-1.json")


def test_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SqlError, match="name another file with --catalog"):
        Catalog(tmp_path / "file" / "c.json").add(ORDERS)


def test_shells_that_declare_at_the_same_time_keep_all(tmp_path: Path) -> None:
    """Each wrote what it had read, so one of two declarations was lost."""
    path = tmp_path / "c.json"

    def declare(shell: int) -> None:
        catalog = Catalog(path)
        for number in range(40):
            catalog.add(Declaration(f"s{shell}_{number}", "stream", "t", "raw"))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(declare, range(2)))
    assert len(list(Catalog(path))) == 80
