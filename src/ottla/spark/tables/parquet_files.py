"""Parquet files of one task, cut by partition columns, for tables whose log names its files. Runs in executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
PARTITIONS_MAX = 10_000
ROWS_PER_GROUP_MAX = 1_000_000


@dataclass(frozen=True)
class WrittenFile:
    """One data file."""

    path: str
    """Relative to the table's folder."""
    size_bytes: int
    rows: int
    partition: tuple[tuple[str, str | None], ...]
    """The values of the partition columns, as text."""


def write_files(
    folder: str, batches: Iterator[Any], partition_columns: Sequence[str], label: str, filesystem: Any = None
) -> list[WrittenFile]:
    """Write the record batches below a folder, one file for each partition; nothing if there are no rows.

    `label` makes the names of the files unique among all tasks and attempts.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return []

    def all_batches() -> Iterator[Any]:
        yield first
        yield from batches

    found: list[WrittenFile] = []
    root = folder.rstrip("/") + "/"

    def visit(written: Any) -> None:
        relative = written.path[written.path.index(root) + len(root) :]
        found.append(WrittenFile(relative, written.size, written.metadata.num_rows, _partition_of(relative)))

    partitioning = None
    if partition_columns:
        partitioning = ds.partitioning(pa.schema([first.schema.field(name) for name in partition_columns]), flavor="hive")
    ds.write_dataset(
        pa.RecordBatchReader.from_batches(first.schema, all_batches()),
        folder,
        format="parquet",
        filesystem=filesystem,
        partitioning=partitioning,
        basename_template=f"part-{label}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        max_partitions=PARTITIONS_MAX,
        max_rows_per_group=ROWS_PER_GROUP_MAX,
        file_visitor=visit,
        use_threads=False,
    )
    return found


def _partition_of(relative: str) -> tuple[tuple[str, str | None], ...]:
    values: list[tuple[str, str | None]] = []
    for part in relative.split("/")[:-1]:
        name, _, value = part.partition("=")
        values.append((unquote(name), None if value == NULL_PARTITION else unquote(value)))
    return tuple(values)
