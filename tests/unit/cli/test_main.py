"""The `ottla` command: format of errors, suggestions for mistyped words, the version."""

import os
import subprocess
import sys

import pytest
from tests.support.servers.ottla_cli import run_cli

from ottla.cli.common.spelling import repeat_flags
from ottla.cli.kafka_scripts import SAME_OPTIONS
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
        (("up", "--prot", "1"), "did you mean --port?"),
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


def test_version_all_names_python_packages_and_kernels() -> None:
    for arguments in (("--version", "--all"), ("--all", "--version"), ("topics", "--version", "--all")):
        lines = run_module(*arguments).splitlines()
        assert lines[0].startswith("ottla ")
        assert any(line.startswith(f"python     {sys.version.split()[0]} (CPython) at ") for line in lines)
    pure = run_module("--version", "--all", OTTLA_PURE="1")
    assert "kernels    0 of 14 compiled: OTTLA_PURE asks for pure Python\n" in pure
    assert "  records.kernel_batch pure\n" in pure
    assert "without OTTLA_PURE the compiled kernels are used" in pure


def test_all_without_version_is_refused() -> None:
    said = run_cli("--all")
    assert said.rc == 2
    assert "--all goes with --version: ottla --version --all" in said.err


def test_version_says_which_kernels_are_in_use() -> None:
    assert "; pure Python kernels)" in run_module("--version", OTTLA_PURE="1")
    expected = "compiled" if is_compiled(kernel) else "pure Python"
    assert f"; {expected} kernels)" in run_module("--version", OTTLA_PURE="")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("kafka-topics.sh", "--list"), "kafka-topics.sh is `ottla topics` here: ottla topics --list"),
        (("bin/kafka-topics.sh", "--topic", "a b"), "bin/kafka-topics.sh is `ottla topics` here: ottla topics --topic 'a b'"),
        (("kafka-console-producer",), "kafka-console-producer is `ottla produce` here: ottla produce"),
        (("kafka-topics.bat",), "is `ottla topics` here"),
        (("zookeeper-server-start", "x"), "there is no zookeeper-server-start here: Kafka 4 has no ZooKeeper"),
        (("kafka-streams-groups.sh", "x"), "`ottla --help` lists the commands"),
        (("kafka-server-start.sh", "server.properties"), "write `ottla server start server.properties`"),
        (("server-start", "server.properties"), "write `ottla server start server.properties`"),
        (("kafka-run-class.sh", "org.example.Other"), "Java classes cannot run here"),
        (("kafka-acls.sh", "--list"), "kafka-acls.sh is `ottla acls` here: ottla acls --list"),
    ],
)
def test_scripts_of_kafka_get_their_spelling(words: tuple[str, ...], sentence: str) -> None:
    said = run_cli(*words)
    assert said.rc == 2
    assert sentence in said.err


def test_commands_that_scripts_stand_for_exist() -> None:
    for command in SAME_OPTIONS.values():
        said = run_cli(*command.split()[: 2 if command.startswith(("perf", "brokers")) else 1], "--help")
        assert said.rc == 0, command


def test_refused_flags_are_not_suggested() -> None:
    said = run_cli("leader-election", "--list")
    assert said.rc == 2
    assert "elect-leaders lists nothing: `ottla topics describe` shows leaders" in said.err
    said = run_cli("elect-leaders", "--lsit")
    assert "--broker-list" not in said.err
    assert "--plain" not in said.err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--producer-props", "a.b=1", "acks=2"], ["--producer-props", "a.b=1", "--producer-props", "acks=2"]),
        (["--command-property", "a=1", "load"], ["--command-property", "a=1", "load"]),
        (["--command-property", "a.b=1", "c=d.txt"], ["--command-property", "a.b=1", "c=d.txt"]),
        (["--command-property", "a=1", "--throughput", "-1"], ["--command-property", "a=1", "--throughput", "-1"]),
        (["--payload-delimiter", "a=b", "c.d=e"], ["--payload-delimiter", "a=b", "c.d=e"]),
        (["x", "--producer-props", "a=1", "load", "b.c=2"], ["x", "--producer-props", "a=1", "load", "b.c=2"]),
        ([], []),
    ],
)
def test_property_flags_take_several_values(given: list[str], meant: list[str]) -> None:
    assert repeat_flags(given) == meant


def test_argument_too_many_names_the_flag_for_settings() -> None:
    said = run_cli("configs", "alter", "broker-logger", "1", "requests=DEBUG")
    assert (said.rc, "one argument too many: write --set requests=DEBUG" in said.err) == (2, True)
    assert "extra is too much: the usage above shows" in run_cli("storage", "random-uuid", "extra").err
