"""`ottla pipeline test`, as far as it needs no Spark; tests/spark/pipelines/test_commands.py has the rest."""

from pathlib import Path

from tests.support.servers.ottla_cli import run_cli


def test_unknown_test_is_refused(tmp_path: Path) -> None:
    run_cli("pipeline", "init", tmp_path / "p")
    said = run_cli("pipeline", "test", tmp_path / "p", "--only", "absent")
    assert said.rc == 2
    assert f"there is no test absent in {tmp_path}/p/tests" in said.err
