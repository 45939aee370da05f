"""A stream that crashes between the sink's commit and Spark's own, for the tests of all tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def berlin(spark: Any) -> Iterator[None]:
    """A session in another time zone than the tables."""
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield
    spark.conf.unset("spark.sql.session.timeZone")


@pytest.fixture
def stream_with_replay(spark: Any, tmp_path: Path, berlin: None) -> Callable[[str, dict[str, str]], None]:
    """Writes the rows 1 to 4 to a table; Spark replays the first batch, with rows 1 to 3, as after a crash.

    Taking a batch out of Spark's commit log leaves the checkpoint as a crash after the sink's commit does.
    """
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()

    def add_rows(name: str, *numbers: int) -> None:
        lines = [f'{{"id": {number}, "city": "c{number % 2}", "at": "2026-01-02T03:04:05Z"}}\n' for number in numbers]
        (source / name).write_text("".join(lines))

    def run(format_name: str, options: dict[str, str]) -> None:
        for name, numbers in (("1.json", (1, 2, 3)), ("2.json", (4,))):
            add_rows(name, *numbers)
            stream = spark.readStream.schema("id long, city string, at timestamp").json(str(source))
            writer = stream.writeStream.format(format_name).options(**options)
            query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
            assert query.awaitTermination(120)
            if name == "1.json":
                (checkpoint / "commits" / "0").unlink()
                (checkpoint / "commits" / ".0.crc").unlink(missing_ok=True)
        assert sorted(each.name for each in (checkpoint / "commits").iterdir() if each.name[0] != ".") == ["0", "1"]

    return run
