"""What a pipeline keeps between runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline
from tests.support.servers.ottla_cli import Said, run_cli

from ottla.spark.pipelines import storage
from ottla.spark.pipelines.backfill import ranges_of
from ottla.spark.pipelines.counts import Check
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.spec import read_spec
from ottla.spark.pipelines.storage import Position, position_of
from ottla.spark.source.offsets import Where
from ottla.testing import Broker


def test_reset_deletes_checkpoints_and_tables_only(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""})
    assert not storage.reset(spec)
    storage.make_folder(storage.checkpoint(spec, "f"))
    storage.make_folder(storage.table(spec, "t"))
    log = storage.begin_log(spec)
    assert storage.reset(spec)
    assert sorted(path.name for path in log.parent.iterdir()) == ["spark.log"]


def test_backfill_of_a_range_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    spec = read_spec(write_pipeline(tmp_path, {}).folder)
    with pytest.raises(PipelineError, match="--from is not before --to"):
        ranges_of(spec, Where(time_ms=2000), Where(time_ms=1000))


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


def test_storage_elsewhere_without_a_session_is_said_to_be_unseen(tmp_path: Path) -> None:
    program = (
        "import sys; from dataclasses import replace; from ottla.spark.pipelines import storage\n"
        "from ottla.spark.pipelines.spec import read_spec\n"
        "spec = replace(read_spec(sys.argv[1]), storage='s3a://bucket')\n"
        "assert storage.files_of(spec) is None and 'pyspark' not in sys.modules\n"
        "print(storage.log_file(spec))\n"
        "with storage.locked(spec): storage.make_folder(storage.table(spec, 't'))\n"
        "storage.reset(spec)\n"
    )
    write_pipeline(tmp_path, {"a.py": ""})
    done = subprocess.run([sys.executable, "-c", program, tmp_path], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == f"{tmp_path / '.ottla' / 'spark.log'}\n"
    last = done.stderr.splitlines()[-1]
    assert "--reset cannot delete checkpoints: the storage s3a://bucket/ottla is not on this machine" in last
    assert not (tmp_path / "s3a:").exists()


DECODING = """
from ottla.spark import decode
@dp.append_flow(target="out")
def {name}():
    numbers = decode(spark.readStream.table("orders"), value="int32", mode="drop")
    return numbers.selectExpr("key", "CAST(value AS STRING) AS value")
"""
OTTLA = "sources: {{orders: {{subscribe: {topic}, startingOffsets: earliest}}}}\nsinks: {{out: {{topic: {topic}-out}}}}\n"


@pytest.fixture
def elsewhere(tmp_path: Path, spark: Any) -> Iterator[str]:
    """A storage with another scheme, which only Hadoop knows: a folder that is mounted at viewfs://…/data."""
    (tmp_path / "disk").mkdir()
    # Hadoop keeps file systems by name, with the mounts that they had first.
    name = "".join(letter for letter in tmp_path.name if letter.isalnum())
    spark.conf.set(f"fs.viewfs.mounttable.{name}.link./data", (tmp_path / "disk").as_uri())
    yield f"viewfs://{name}/data"
    spark.conf.unset(f"fs.viewfs.mounttable.{name}.link./data")


def test_files_elsewhere_are_those_of_a_local_folder(tmp_path: Path, spark: Any, elsewhere: str) -> None:
    spec = replace(write_pipeline(tmp_path, {"a.py": ""}), storage=elsewhere)
    files = storage.files_of(spec)
    assert isinstance(files, storage.HadoopFiles)
    offsets = f"{storage.checkpoint(spec, 'old')}/offsets"
    assert files.names(offsets) == []
    assert files.read(f"{offsets}/9.compact") is None
    files.write(f"{offsets}/9.compact", "é")
    assert files.read(f"{offsets}/9.compact") == "é"
    assert (storage.unowned_checkpoints(spec, ["new"]), storage.position_batch(spec, "old")) == (["old"], 9)
    storage.forget(spec, "old")
    assert storage.unowned_checkpoints(spec, ["new"]) == []
    assert storage.unowned_checkpoints(spec, ["old"]) == []  # it came back
    storage.add_counts(spec, "old", "q", 0, [Check("view", "expect", "a", "drop", 10, 3)])
    assert storage.rename_checkpoint(spec, "old", "new", "sink")
    assert [each.bad for each in storage.counts_of(spec, "new")] == [3]
    assert (tmp_path / "disk" / "ottla" / "checkpoints" / "new" / "offsets" / "9.compact").read_text() == "é"
    assert storage.reset_flow(spec, "new")
    assert not storage.reset_flow(spec, "new")
    storage.make_folder(storage.table(spec, "t"))
    with pytest.raises(PipelineError, match=r"other/counts cannot be reached: .* is not within a mount point"):
        files.write(elsewhere.replace("/data", "/other/counts"), "")


@pytest.mark.slow
def test_checkpoints_elsewhere_are_seen_renamed_and_deleted(
    tmp_path: Path, spark: Any, topic: str, shared_broker: Broker, elsewhere: str
) -> None:
    folder, given = tmp_path / "p", OTTLA.format(topic=topic)
    shared_broker.create_topic(f"{topic}-out")
    shared_broker.produce(topic, b"\0\0\0\7", partition=0)
    shared_broker.produce(topic, b"seven", partition=0)

    def command(name: str, *rest: str, text: str = DECODING) -> Said:
        write_pipeline(folder, {"flows.py": text.format(name=name)}, given, shared_broker.bootstrap_servers)
        action, *flags = rest
        return run_cli("pipeline", action, folder, "--set", f"storage={elsewhere}", *flags)

    assert command("first", "run").rc == 0
    assert (tmp_path / "disk" / "ottla" / "checkpoints" / "first").is_dir()
    described = json.loads(command("first", "describe", "--json").out)
    assert described["problems"] == []
    flow = described["flows"][-1]
    assert (flow["position"], flow["lag"]) == (f"{topic}-0: 2, {topic}-1: 0, {topic}-2: 0", 0)
    assert [(each["rows"], each["bad"]) for each in flow["checks"]] == [(2, 1)]
    said = command("second", "run")
    assert said.err.startswith(f"ottla: there is a checkpoint of first, which has read up to {topic}-0: 2"), said.err
    said = command("second", "run", "--renamed", "first=second")
    assert (said.rc, said.out.startswith("No new records")) == (0, True), said.err
    assert [(each.rows, each.bad) for each in storage.counts_of(replace(read_spec(folder), storage=elsewhere), "second")] == [
        (2, 1)
    ]
    assert command("third", "run", "--forget", "second").rc == 0
    assert command("third", "run").rc == 0
    assert len(shared_broker.records(f"{topic}-out")) == 2
    assert "Deleted the checkpoint of third." in command("third", "run", "--reset", "third", "--yes").err
    assert len(shared_broker.records(f"{topic}-out")) == 3
    assert "Deleted the offsets" in command("third", "run", "--reset", "--yes").err
    assert len(shared_broker.records(f"{topic}-out")) == 4
    for _ in range(2):  # the range is kept, and complete
        said = command("third", "backfill", "--from", "earliest", "--to", "latest")
        assert said.rc == 0, said.err
        assert len(shared_broker.records(f"{topic}-out")) == 5
        shared_broker.produce(topic, b"\0\0\0\7", partition=0)
    assert (tmp_path / "disk" / "ottla" / "backfills").is_dir()


def test_storage_that_cannot_be_reached_is_one_sentence(tmp_path: Path, spark: Any) -> None:
    spec = replace(write_pipeline(tmp_path, {"a.py": ""}), storage="nowhere://bucket")
    with pytest.raises(
        PipelineError, match='nowhere://bucket/ottla/forgotten cannot be reached: No FileSystem for scheme "nowhere"'
    ):
        storage.unowned_checkpoints(spec, [])


def test_table_whose_column_changes_its_type_is_refused(tmp_path: Path, spark: Any, topic: str, shared_broker: Broker) -> None:
    shared_broker.create_topic(f"{topic}-out")
    shared_broker.produce(topic, "v")
    given = OTTLA.format(topic=topic)
    text = '@dp.table\ndef rows():\n    return spark.readStream.table("orders").selectExpr("{columns}")\n'

    def run(columns: str) -> Said:
        write_pipeline(tmp_path, {"flows.py": text.replace("{columns}", columns)}, given, shared_broker.bootstrap_servers)
        return run_cli("pipeline", "run", tmp_path)

    assert run("offset AS o").rc == 0
    said = run("CAST(offset AS STRING) AS o")
    assert said.rc == 1
    assert said.err == (
        "ottla: the flow rows cannot continue: the column o of the table rows is bigint, and is string now. Take the change "
        "back, cast it to bigint, or compute the table again with --reset rows\n"
    )
    assert run('offset AS o", "partition AS p').rc == 0


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


def write(folder: str, kind: str, batch: int, text: str = "") -> None:
    path = Path(folder) / kind / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_last_committed_batch_is_the_position(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""})
    assert position_of(spec, "f") is None
    folder = storage.checkpoint(spec, "f")
    write(folder, "offsets", 9, 'v1\n{"batchWatermarkMs": 0}\n{"orders": {"0": 3}}')
    assert position_of(spec, "f") is None
    write(folder, "commits", 9)
    write(folder, "offsets", 10, 'v1\n{"batchWatermarkMs": 0}\n{"orders": {"0": 5, "1": 7}}\n{"logOffset": 2}\n-')
    write(folder, "commits", 10)
    write(folder, "commits", 8)
    assert position_of(spec, "f") == Position(10, ({"orders": {"0": 5, "1": 7}}, {"logOffset": 2}, {}), False)
    write(folder, "offsets", 11)
    found = position_of(spec, "f")
    assert found is not None
    assert found.is_batch_open
    assert found.text() == "orders-0: 5, orders-1: 7"


def test_position_without_partitions_is_its_batch() -> None:
    assert Position(4, ({"logOffset": 2},), False).text() == "batch 4"
