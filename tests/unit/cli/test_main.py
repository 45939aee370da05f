"""The `ottla` command: format of errors, suggestions for mistyped words, the version."""

import os
import subprocess
import sys

import pytest
from tests.support.servers.ottla_cli import run_cli

from ottla.records import kernel
from ottla.records.kernels import is_compiled


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("topics", "frobnicate"),
        ("topics", "create"),
        ("topics", "create", "x", "--frobnicate"),
        ("topics", "create", "x", "--partitions", "many"),
        ("up", "--set", "num.partitions"),
        ("storage", "format"),
        ("server", "start", "/no/such/file"),
    ],
)
def test_usage_error_has_the_prefix_of_every_error(arguments: tuple[str, ...]) -> None:
    said = run_cli(*arguments)
    assert said.rc == 2
    assert said.out == ""
    usage, _, error = said.err.partition("\n\n")
    assert usage.startswith("Usage: ottla ")
    assert error.startswith("ottla: ")
    assert "Error:" not in said.err


def test_verb_without_action_shows_its_help() -> None:
    said = run_cli("topics")
    assert "ottla topics create orders --partitions 3" in said.out + said.err
    assert "ottla: " not in said.err


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("topcis",), "did you mean topics?"),
        (("console-consumr", "x"), "did you mean console-consumer?"),
        (("topics", "craete", "x"), "did you mean create?"),
        (("topics", "--creat", "--topic", "x"), "did you mean --create?"),
        (("storage", "fromat"), "did you mean format?"),
        (("server", "strat"), "did you mean start?"),
        (("topics", "create", "x", "--partitons", "3"), "did you mean --partitions?"),
        (("up", "--prot", "1"), "did you mean --host or --port?"),
    ],
)
def test_mistyped_word_gets_a_suggestion(arguments: tuple[str, ...], suggestion: str) -> None:
    said = run_cli(*arguments)
    assert said.rc == 2
    assert suggestion in said.err


def test_word_without_a_similar_one_gets_no_suggestion() -> None:
    for arguments in (("xyzzy",), ("topics", "xyzzy"), ("topics", "--topic", "x"), ("up", "--xyzzy")):
        assert "did you mean" not in run_cli(*arguments).err


def run_module(*arguments: str, **environment: str) -> str:
    command = [sys.executable, "-m", "ottla", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | environment).stdout


def test_python_m_ottla_runs_the_command() -> None:
    assert run_module("--help").startswith("Usage: ottla ")


def test_version_says_which_kernels_are_in_use() -> None:
    assert "; pure Python kernels)" in run_module("--version", OTTLA_PURE="1")
    expected = "compiled" if is_compiled(kernel) else "pure Python"
    assert f"; {expected} kernels)" in run_module("--version", OTTLA_PURE="")
