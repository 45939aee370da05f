"""`ottla storage`: output, exit codes and wrong usage."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.servers.ottla_cli import run_cli

from ottla.cli.main import ottla
from ottla.errors import OttlaError
from ottla.ids import uuid_parse


def call(*arguments: object) -> Result:
    return CliRunner().invoke(ottla, ["storage", *map(str, arguments)], standalone_mode=False)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n"
        "controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=localhost:9093\n"
        f"log.dirs={tmp_path}/a,{tmp_path}/b\n"
    )
    return path


def test_random_uuids_differ() -> None:
    first, second = (call("random-uuid").output.strip() for _ in range(2))
    assert uuid_parse(first) != uuid_parse(second)


@pytest.mark.parametrize(
    ("config_flag", "cluster_flag", "standalone_flag"), [("-c", "-t", "-s"), ("--config", "--cluster-id", "--standalone")]
)
def test_format_then_info(config: Path, config_flag: str, cluster_flag: str, standalone_flag: str) -> None:
    made = call("format", config_flag, config, cluster_flag, "my-cluster", standalone_flag)
    assert made.exception is None
    assert made.output.splitlines() == [
        f"Formatted dynamic metadata voter directory {config.parent}/a with metadata.version 4.3-IV0.",
        f"Formatted data directory {config.parent}/b with metadata.version 4.3-IV0.",
    ]
    shown = call("info", config_flag, config)
    assert shown.return_value == 0
    assert f"Found log directories:\n  {config.parent}/a\n  {config.parent}/b\n" in shown.output
    assert "Found metadata: {cluster.id=my-cluster, directory.id=" in shown.output
    assert "node.id=1, version=1}" in shown.output


def test_info_for_programs(config: Path) -> None:
    missing = call("info", "-c", config, "--json")
    assert missing.return_value == 1
    assert json.loads(missing.output)["problems"] == [f"{config.parent}/{name} does not exist" for name in "ab"]
    call("format", "-c", config, "-t", "my-cluster", "-s")
    shown = json.loads(call("info", "-c", config, "--json").output)
    assert shown["directories"] == [f"{config.parent}/a", f"{config.parent}/b"]
    assert (shown["metadata"]["cluster.id"], shown["metadata"]["node.id"], shown["problems"]) == ("my-cluster", "1", [])


def test_info_lists_problems(config: Path, tmp_path: Path) -> None:
    shown = call("info", "-c", config)
    assert shown.return_value == 1
    assert shown.output == f"Found problems:\n  {tmp_path}/a does not exist\n  {tmp_path}/b does not exist\n\n"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").write_text("")
    assert call("info", "-c", config).output == (
        f"Found log directory:\n  {tmp_path}/a\n\nFound problems:\n  {tmp_path}/a is not formatted.\n"
        f"  {tmp_path}/b is not a directory\n\n"
    )
    (tmp_path / "b").unlink()
    call("format", "-c", config, "-t", "one", "-s")
    meta = tmp_path / "b" / "meta.properties"
    meta.write_text(meta.read_text().replace("=one", "=two"))
    assert "belongs to cluster two, not to one as the first does." in call("info", "-c", config).output
    meta.write_text(meta.read_text().replace("=two", "=one").replace("node.id=1", "node.id=7"))
    assert "belongs to node 7, not to 1" in call("info", "-c", config).output
    meta.write_text("nonsense")
    shown = call("info", "-c", config)
    assert shown.return_value == 1
    assert "meta.properties" in shown.output


def test_features_and_release_are_passed_on(config: Path, tmp_path: Path) -> None:
    made = call("format", "-c", config, "-t", "x", "-s", "-r", "4.1", "-f", "group.version=0", "-f", "transaction.version=1")
    assert made.exception is None
    assert "metadata.version 4.1-IV1" in made.output
    assert b"group.version" not in (tmp_path / "a" / "bootstrap.checkpoint").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-t", "x", "-s", "-f", "group.version"], "should be a feature and its level"),
        (["-t", "x", "-s", "-f", "group.version=x"], "should be a feature and its level"),
        (["-t", "x", "-s", "-f", "foo=1"], "no feature foo"),
        (["-t", "x"], "--standalone, --initial-controllers or --no-initial-controllers"),
        (["-t", "", "-s"], "cannot be a cluster id"),
        (["-s"], "cluster_id"),
    ],
)
def test_wrong_usage_gets_a_message(config: Path, arguments: list[str], complaint: str) -> None:
    failed = call("format", "-c", config, *arguments)
    assert complaint in str(failed.exception)
    assert not list(config.parent.glob("?/*"))


def test_formatted_directories_are_refused_or_skipped(config: Path) -> None:
    call("format", "-c", config, "-t", "x", "-s")
    again = call("format", "-c", config, "-t", "x", "-s")
    assert isinstance(again.exception, OttlaError)
    assert "already formatted" in str(again.exception)
    assert call("format", "-c", config, "-t", "x", "-s", "-g").output == "All of the log directories are already formatted.\n"


def test_a_missing_or_bad_file_is_named(config: Path, tmp_path: Path) -> None:
    assert "does not exist" in str(call("info", "-c", tmp_path / "none.properties").exception)
    config.write_text("process.roles=broker,controller\n")
    failed = call("info", "-c", config)
    assert str(config) in str(failed.exception)
    assert "node.id" in str(failed.exception)


def test_everything_wrong_with_an_old_file_gets_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("broker.id=0\nport=9092\nzookeeper.connect=localhost:2181\nlog.dirs=/tmp/x\n")
    said = run_cli("storage", "format", "-t", "x", "-c", path)
    assert said.rc == 1
    assert said.err.splitlines()[0].startswith(f"ottla: {path}: the file is written for Kafka with ZooKeeper")
    assert "  replace  broker.id=0 by node.id=0" in said.err.splitlines()


def test_relative_directory_is_relative_to_the_working_directory(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config.write_text(config.read_text().replace(f"{tmp_path}/a,{tmp_path}/b", "near/by"))
    assert call("format", "-c", config, "-t", "x", "-s").exception is None
    assert (tmp_path / "near" / "by" / "meta.properties").exists()
    assert call("info", "-c", config).return_value == 0


def test_version_mapping() -> None:
    assert call("version-mapping", "-r", "4.0").output.splitlines() == [
        "metadata.version=25 (4.0)",
        "kraft.version=1",
        "transaction.version=2",
        "group.version=1",
        "eligible.leader.replicas.version=0",
        "share.version=0",
        "streams.version=0",
    ]
    assert call("version-mapping").output.startswith("metadata.version=30 (4.3-IV0)\n")
    assert "use one of" in str(call("version-mapping", "--release-version", "9.9").exception)


def test_feature_dependencies() -> None:
    shown = call("feature-dependencies", "-f", "eligible.leader.replicas.version=1", "--feature", "metadata.version=20")
    assert shown.output == (
        "eligible.leader.replicas.version=1 requires:\n    metadata.version=23 (4.0-IV1)\n"
        "metadata.version=20 (3.8-IV0) has no dependencies.\n"
    )
    assert "no feature foo" in str(call("feature-dependencies", "-f", "foo=1").exception)
    assert "no level 9" in str(call("feature-dependencies", "-f", "group.version=9").exception)
    assert call("feature-dependencies", "-f", "share.version=1").output == "share.version=1 has no dependencies.\n"


def test_scram_credentials_need_a_metadata_version_with_them(config: Path) -> None:
    login = ("-S", "SCRAM-SHA-256=[name=alice,password=secret]")
    refused = call("format", "-c", config, "-t", "x", "-s", "-r", "3.5-IV1", *login)
    assert isinstance(refused.exception, OttlaError)
    assert "--add-scram needs metadata.version 3.5-IV2" in str(refused.exception)
    assert call("format", "-c", config, "-t", "x", "-s", *login).exception is None
    one, two = ((config.parent / name / "bootstrap.checkpoint").read_bytes() for name in "ab")
    assert b"secret" not in one
    assert one.partition(b"alice")[2][:90] == two.partition(b"alice")[2][:90] != b"", "one salt for all directories"
