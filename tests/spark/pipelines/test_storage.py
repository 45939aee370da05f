"""What a pipeline keeps between runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.spark.pipelines.folders import write_pipeline

from ottla.spark.pipelines import storage
from ottla.spark.pipelines.errors import PipelineError


def test_reset_deletes_checkpoints_and_tables_only(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""})
    assert not storage.reset(spec)
    storage.make_folder(storage.checkpoint(spec, "f"))
    storage.make_folder(storage.table(spec, "t"))
    log = storage.begin_log(spec)
    assert storage.reset(spec)
    assert sorted(path.name for path in log.parent.iterdir()) == ["spark.log"]


def test_log_of_the_run_before_is_kept(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""})
    storage.begin_log(spec).write_text("old")
    log = storage.begin_log(spec)
    assert (log.read_text(), log.with_name("spark.log.1").read_text()) == ("", "old")


def test_second_run_is_refused_while_the_first_lasts(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""})
    refused = pytest.raises(PipelineError, match=r"shop is already being run by process \d+: stop it first")
    with storage.locked(spec), refused, storage.locked(spec):
        pass
    with storage.locked(spec):
        pass


def test_storage_elsewhere_is_not_reset_by_us(tmp_path: Path) -> None:
    spec = replace(write_pipeline(tmp_path, {"a.py": ""}), storage="s3a://bucket")
    with pytest.raises(PipelineError, match="--reset cannot delete s3a://bucket/ottla"):
        storage.reset(spec)
    assert storage.log_file(spec) == tmp_path / ".ottla" / "spark.log"
    with storage.locked(spec):
        storage.make_folder(storage.table(spec, "t"))
    assert not (tmp_path / "s3a:").exists()


@pytest.mark.parametrize(
    ("written", "planned", "words"),
    [
        ((), (), None),
        ((), ("0",), None),
        (("0", "9.compact", ".9.compact.crc"), ("9", "10"), None),
        (("9.compact", "10"), ("9",), "has batches up to 10, and the flow f up to 9"),
        (("0",), (), "has batches up to 0, and the flow f none"),
    ],
)
def test_table_with_more_batches_than_its_flow_is_refused(
    tmp_path: Path, written: tuple[str, ...], planned: tuple[str, ...], words: str | None
) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""})
    for folder, names in (
        (f"{storage.table(spec, 't')}/_spark_metadata", written),
        (f"{storage.checkpoint(spec, 'f')}/offsets", planned),
    ):
        storage.make_folder(folder)
        for name in names:
            (Path(folder) / name).touch()
    if words is None:
        storage.check_batches(spec, "f", "t")
        return
    with pytest.raises(PipelineError, match=words):
        storage.check_batches(spec, "f", "t")
