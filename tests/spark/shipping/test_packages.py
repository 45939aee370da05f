"""What is shipped to workers."""

from __future__ import annotations

from pathlib import Path

import pytest

import ottla
from ottla.spark.shipping import CannotShip, Wishes, formats_named, parts_to_ship


def names(wishes: Wishes) -> list[str]:
    return [part.name for part in parts_to_ship(wishes)]


def test_ottla_goes_with_the_packages_of_its_clients_and_their_metadata() -> None:
    found = parts_to_ship(Wishes())
    assert {part.name: part.path for part in found}["ottla"] == Path(ottla.__file__).parent
    named = [part.name for part in found]
    assert {"ottla", "crc32c", "cramjam", "fastavro"} <= set(named)
    # crc32c reads its own version from its metadata, and cannot be imported without.
    assert any(name.startswith("crc32c-") and name.endswith(".dist-info") for name in named)
    assert not {"pyspark", "pyarrow", "click", "re2"} & set(named)
    assert all(part.path.exists() for part in found)


def test_packages_of_a_format_go_along_where_they_are_used() -> None:
    pytest.importorskip("psycopg")
    assert "psycopg" not in names(Wishes(formats=("ottla_delta",)))
    assert "psycopg" in names(Wishes(formats=("ottla_postgres",)))


def test_package_is_shipped_with_what_it_requires() -> None:
    found = names(Wishes(packages=("pytest",)))
    assert {"_pytest", "pytest", "pluggy"} <= set(found)
    # Requirements of extras stay here.
    assert "hypothesis" not in found


def test_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(CannotShip, match="the package no-such-thing is to be shipped but is not installed here"):
        parts_to_ship(Wishes(packages=("no-such-thing",)))


def test_modules_in_the_folder_of_a_pipeline_are_shipped(tmp_path: Path) -> None:
    for name in ("pricing.py", "rules/__init__.py", "transformations/flows.py", "spark-pipeline.yml", "storage/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = set(names(Wishes(folder=tmp_path))) - set(names(Wishes()))
    assert found == {"pricing.py", "rules"}
    assert names(Wishes(folder=tmp_path, modules_only=True)) == ["pricing.py", "rules"]


def test_formats_are_found_in_texts() -> None:
    texts = ['create_sink("t", "ottla_postgres")', "ottla", "ottla_iceberg"]
    assert formats_named(texts) == ["ottla_iceberg", "ottla_postgres"]
