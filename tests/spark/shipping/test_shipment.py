"""Shipments as archives and settings."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from ottla.spark.shipping import Part, Shipment, pack


@pytest.fixture
def parts(tmp_path: Path) -> list[Part]:
    for name in ("rules/__init__.py", "rules/deep/tax.py", "rules/__pycache__/x.pyc", "pricing.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return [Part("rules", tmp_path / "rules"), Part("pricing.py", tmp_path / "pricing.py")]


def test_folder_becomes_an_archive_that_is_unpacked_under_its_name(parts: list[Part]) -> None:
    made = pack(parts)
    (archive,) = made.archives
    path, _, name = archive.partition("#")
    assert name == "rules"
    with zipfile.ZipFile(path) as file:
        assert sorted(file.namelist()) == ["__init__.py", "deep/tax.py"]
        assert file.read("deep/tax.py") == b"rules/deep/tax.py"
    assert made.files == (str(parts[1].path),)


def test_files_of_1970_are_packed(parts: list[Part]) -> None:
    """Nix and other installers set the times of all files to 1970, which made zipfile raise."""
    os.utime(parts[0].path / "__init__.py", (0, 0))
    (archive,) = pack(parts).archives
    with zipfile.ZipFile(archive.partition("#")[0]) as file:
        assert file.read("__init__.py") == b"rules/__init__.py"


def test_settings_of_a_cluster_keep_what_the_user_ships() -> None:
    made = Shipment(("/t/ottla.zip#ottla", "/t/crc32c.zip#crc32c"), ("/f/pricing.py",))
    assert made.settings({"spark.archives": "env.tar.gz#env"}) == {
        "spark.archives": "/t/ottla.zip#ottla,/t/crc32c.zip#crc32c,env.tar.gz#env",
        "spark.files": "/f/pricing.py",
    }
    assert Shipment((), ()).settings({"spark.files": "x"}) == {}
