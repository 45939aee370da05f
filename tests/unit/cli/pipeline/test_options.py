"""Flags and sessions that the actions share."""

from pathlib import Path

from tests.support.servers.ottla_cli import run_cli

from ottla.cli.pipeline.options import shown


def test_master_and_remote_exclude_each_other(tmp_path: Path) -> None:
    run_cli("pipeline", "init", tmp_path / "p")
    said = run_cli("pipeline", "describe", "--graph", tmp_path / "p", "--master", "local", "--remote", "sc://h")
    assert said.rc == 2
    assert "--master and --remote exclude each other: give one of them" in said.err


def test_paths_are_shown_relative_to_the_working_directory(tmp_path: Path) -> None:
    assert shown(Path.cwd() / "a" / "b") == "a/b"
    assert shown(tmp_path / "b") == str(tmp_path / "b")
