"""`ottla pipeline init`."""

from pathlib import Path

from tests.support.servers.ottla_cli import run_cli

from ottla.spark.pipelines.spec import read_spec


def test_folder_is_a_pipeline_that_spark_pipelines_accepts(tmp_path: Path) -> None:
    said = run_cli("pipeline", "init", tmp_path / "shop", "-b", "kafka-1:9092")
    assert said.rc == 0, said.err
    assert said.lines[-3:] == [
        f"  ottla pipeline test {tmp_path}/shop",
        "  ottla topics create orders large-orders orders-dead",
        f"  ottla pipeline run {tmp_path}/shop",
    ]
    spec = read_spec(tmp_path / "shop")
    assert (spec.name, spec.storage) == ("shop", f"{tmp_path}/shop/storage")
    assert spec.configuration == {"kafka.bootstrap.servers": "kafka-1:9092"}
    from pyspark.pipelines.cli import load_pipeline_spec

    theirs = load_pipeline_spec(tmp_path / "shop" / "spark-pipeline.yml")
    assert (theirs.name, theirs.storage) == ("shop", f"file://{tmp_path}/shop/storage")


def test_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    said = run_cli("pipeline", "init", tmp_path)
    assert (said.rc, said.err) == (1, f"ottla: {tmp_path} is not empty: choose another folder, or delete it first\n")
