"""What is shipped to workers."""

from __future__ import annotations

import os
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ottla
from ottla.spark.shipping import (
    CannotShip,
    Part,
    Shipment,
    Wishes,
    WorkerFacts,
    WorkersUnfit,
    check_facts,
    check_workers,
    failure,
    formats_named,
    look,
    pack,
    parts_to_ship,
)


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


GOOD = WorkerFacts("h", "/usr/bin/python3", "26.0", ottla.__version__, "", None)


def test_workers_of_this_machine_say_what_they_have(spark: Any) -> None:
    for worker in look(spark, 2):
        assert worker.executable == sys.executable
        assert worker.ottla == ottla.__version__
        assert worker.pyarrow
        assert worker.problem == ""


def test_sound_workers_say_nothing() -> None:
    assert check_facts([GOOD, replace(GOOD, installed=ottla.__version__)]) == []


def test_worker_without_pyarrow_is_refused() -> None:
    with pytest.raises(WorkersUnfit, match=r"a worker \(/usr/bin/python3 on h\) has no pyarrow.*PYSPARK_PYTHON"):
        check_facts([GOOD, replace(GOOD, pyarrow=None)])


def test_worker_of_another_platform_is_refused() -> None:
    with pytest.raises(WorkersUnfit, match=r"cannot load ottla \(ImportError: cramjam\).*pip install 'ottla\[spark\]=="):
        check_facts([replace(GOOD, ottla=None, problem="ImportError: cramjam")])


def test_server_without_ottla_is_told_that_nothing_is_shipped() -> None:
    with pytest.raises(WorkersUnfit, match=r"the Spark Connect server .*cannot load ottla.*pip install 'ottla\[spark\]=="):
        check_facts([replace(GOOD, ottla=None, problem="ModuleNotFoundError: ottla")], is_remote=True)


def test_worker_with_another_version_is_refused_or_told() -> None:
    with pytest.raises(WorkersUnfit, match=r"has ottla 0\.0\.1 and this one has .*: they must be the same"):
        check_facts([replace(GOOD, ottla="0.0.1")])
    (notice,) = check_facts([replace(GOOD, installed="0.0.1")])
    assert notice.endswith(f"has ottla 0.0.1; this run ships and uses {ottla.__version__}.")


def test_pages_of_spark_become_a_sentence() -> None:
    mismatch = "Traceback\n[X] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run"
    assert failure(Exception(mismatch)).startswith(
        "the workers have Python 3.12 and this is Python 3.11: they must be the same"
    )
    missing = 'Task 2 failed: java.io.IOException: Cannot run program "python3.99": error=2, No such file\n\tat java.lang'
    assert failure(Exception(missing)).startswith("the workers have no python3.99: install Python 3.")
    broken = "An error occurred\n: org.X: Job aborted\nError from python worker:\n  python3.10: command not found\nPYTHONPATH:"
    assert failure(Exception(broken)) == "the workers do not start: python3.10: command not found"
    assert failure(Exception("Something else\n\tat java.lang")) == "the workers do not start: Something else"


def test_job_that_fails_is_one_sentence() -> None:
    class Broken:
        def range(self, *numbers: int) -> Any:
            raise RuntimeError('Cannot run program "python3.99": error=2')

    with pytest.raises(WorkersUnfit, match=r"the workers have no python3\.99"):
        check_workers(Broken(), is_remote=True)
