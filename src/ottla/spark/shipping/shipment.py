"""`Shipment`: the parts for Python workers as files that Spark distributes, in a temporary folder that ends with this process.

A folder becomes an archive `NAME.zip#NAME`, which Spark unpacks as NAME. The settings `spark.archives` and `spark.files` name
them all; standalone clusters, YARN and Kubernetes have both.

A Spark Connect session could send the same files as its artifacts, but Spark 4.3 gives those to batch queries only: the workers
of a streaming query do not see them. So a Spark Connect server must have Ottla installed.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ottla.spark.shipping.packages import Part

ARCHIVES, FILES = "spark.archives", "spark.files"
DATA_SOURCES = {
    "ottla.spark.datasource": "OttlaDataSource",
    "ottla.spark.tables.delta.datasource": "DeltaDataSource",
    "ottla.spark.tables.iceberg.datasource": "IcebergDataSource",
    "ottla.spark.tables.postgres.datasource": "PostgresDataSource",
}
_LEFT_OUT = {"__pycache__", ".mypy_cache", ".pytest_cache"}


@dataclass(frozen=True)
class Shipment:
    """What is sent to workers."""

    archives: tuple[str, ...]
    """`PATH#NAME`: an archive and the name of the folder that it is unpacked to."""
    files: tuple[str, ...]

    def settings(self, given: Mapping[str, str]) -> dict[str, str]:
        """The settings of a session on a cluster, with what the user ships in addition."""
        wanted = {ARCHIVES: self.archives, FILES: self.files}
        return {key: ",".join([*paths, *filter(None, [given.get(key)])]) for key, paths in wanted.items() if paths}


def pack(parts: Iterable[Part]) -> Shipment:
    """Write the archives."""
    folder = temporary_folder()
    archives, files = [], []
    for part in parts:
        if part.path.is_dir():
            archive = folder / f"{part.name}.zip"
            _write(archive, part.path)
            archives.append(f"{archive}#{part.name}")
        else:
            files.append(str(part.path))
    return Shipment(tuple(archives), tuple(files))


def temporary_folder() -> Path:
    """A folder that is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-shipped-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def register_data_sources(spark: Any) -> None:
    """Make our formats known to a session: its driver may be another Python, which cannot find them by itself."""
    from importlib import import_module

    for module, name in DATA_SOURCES.items():
        spark.dataSource.register(getattr(import_module(module), name))


def _write(archive: Path, folder: Path) -> None:
    # Fast rather than small: compiled modules are most of it, and it is sent once for each worker.
    # Archives have no times before 1980, and some installers set all files to 1970.
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1, strict_timestamps=False) as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and _LEFT_OUT.isdisjoint(path.relative_to(folder).parts):
                file.write(path, path.relative_to(folder))
