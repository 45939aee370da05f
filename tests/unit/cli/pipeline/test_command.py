"""The list of actions."""

import subprocess
import sys
from pathlib import Path

from tests.support.servers.ottla_cli import run_cli

from ottla.cli.pipeline.command import ACTIONS, files_of
from ottla.cli.pipeline.options import shown
from ottla.cli.pipeline.test import read_cases
from ottla.spark.pipelines.spec import read_spec


def test_help_names_every_action() -> None:
    said = run_cli("pipeline", "--help")
    assert said.rc == 0
    for name, (*_, text) in ACTIONS.items():
        assert f"  {name} " in said.out
        assert text.split()[0] in said.out
        assert run_cli("pipeline", name, "--help").rc == 0


def test_help_does_not_import_pyspark() -> None:
    script = "import sys\nfrom ottla.cli.main import main\ntry: main(['pipeline', 'run', '--help'])\nexcept SystemExit: pass\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}print('pyspark' in sys.modules)"], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("False\n")


def test_without_pyspark_a_sentence_says_what_to_install(tmp_path: object) -> None:
    script = "import sys\nsys.modules['pyspark'] = None\nfrom ottla.cli.main import main\nmain(sys.argv[1:])"
    command = [sys.executable, "-c", script, "pipeline"]
    subprocess.run([*command, "init", f"{tmp_path}/p"], check=True, capture_output=True)
    validate = [*command, "validate", f"{tmp_path}/p", "--no-cluster"]
    done = subprocess.run(validate, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "ottla: this needs PySpark 4.3, which is not installed: pip install 'ottla[spark]'\n",
    )


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


def test_python_files_compile_and_tests_can_be_read(tmp_path: Path) -> None:
    for name, text in files_of("shop", tmp_path, "h:1").items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix == ".py":
            compile(text, name, "exec")
    (case,) = read_cases(tmp_path)
    assert (list(case.given), list(case.expected)) == (["orders"], ["large-orders", "orders-dead"])


def test_master_and_remote_exclude_each_other(tmp_path: Path) -> None:
    run_cli("pipeline", "init", tmp_path / "p")
    said = run_cli("pipeline", "describe", "--graph", tmp_path / "p", "--master", "local", "--remote", "sc://h")
    assert said.rc == 2
    assert "--master and --remote exclude each other: give one of them" in said.err


def test_paths_are_shown_relative_to_the_working_directory(tmp_path: Path) -> None:
    assert shown(Path.cwd() / "a" / "b") == "a/b"
    assert shown(tmp_path / "b") == str(tmp_path / "b")
