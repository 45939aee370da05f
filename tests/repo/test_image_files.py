"""The files that make the image, and the compose files: checked by the linters that others use."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

IMAGE = Path(__file__).parents[2] / "image"
SCRIPTS = sorted(path for path in (IMAGE / "root").rglob("*") if path.is_file())
COMPOSE_FILES = sorted((IMAGE / "compose").glob("*.yaml"))


def linter(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: PyPI has none for this machine")
    return found


def check(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_containerfile_has_no_findings() -> None:
    check(linter("hadolint"), IMAGE / "Containerfile")


def test_scripts_have_no_findings() -> None:
    assert SCRIPTS
    check(linter("shellcheck"), "--shell=bash", *SCRIPTS)


def test_script_that_others_source_is_for_every_shell() -> None:
    check(linter("shellcheck"), "--shell=sh", IMAGE / "root" / "etc" / "confluent" / "docker" / "bash-config")


def test_compose_files_are_valid() -> None:
    assert len(COMPOSE_FILES) == 3
    check(linter("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", *COMPOSE_FILES)


def test_scripts_can_be_run() -> None:
    assert [path.name for path in SCRIPTS if not path.stat().st_mode & 0o111] == ["bash-config"]
