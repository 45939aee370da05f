"""A node from the environment of a container: variables, files and defaults, and the entry point run in this file system."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.servers.kafka_server import HANG_S, free_ports
from tests.support.servers.ottla_server import OTTLA

from ottla import Consumer, Producer
from ottla.cli.kafka_scripts import SAME_OPTIONS, SENTENCES, write_scripts
from ottla.cli.node.container import DATA, check_writable, complete, read_container, setting_name, settings_of
from ottla.config.broker import BrokerConfig
from ottla.config.java_properties import parse_properties
from ottla.errors import OttlaError

READY = ("Transitioning from RECOVERY to RUNNING", "[KafkaServer id=1] started", "Kafka Server started")
"""What testcontainers wait for."""


def settings_from(variables: Mapping[str, str], in_file: Mapping[str, str] | None = None) -> dict[str, str]:
    settings = read_container(variables, in_file or {}, "box").settings
    BrokerConfig.from_settings(settings)
    return settings


# -- names


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LOG_RETENTION_HOURS", "log.retention.hours"),
        (
            "KAFKA_LISTENER_NAME_SASL__SSL_SCRAM___SHA___256_SASL_JAAS_CONFIG",
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
        ),
        ("KAFKA_KAFKA_X", "kafka.x"),
    ],
)
def test_variable_names_a_setting(variable: str, name: str) -> None:
    assert setting_name(variable) == name
    assert settings_of({variable: "a=b"}) == {name: "a=b"}


def test_variables_that_are_no_settings() -> None:
    jvm = ("VERSION", "HEAP_OPTS", "LOG4J_OPTS", "OPTS", "JMX_OPTS", "JVM_PERFORMANCE_OPTS", "GC_LOG_OPTS", "JMX_HOSTNAME")
    logs = ("LOG4J_ROOT_LOGLEVEL", "LOG4J_LOGGERS", "TOOLS_LOG4J_LOGLEVEL")
    assert settings_of({f"KAFKA_{name}": "x" for name in jvm + logs}) == {}
    of_kubernetes = {
        "KAFKA_SERVICE_HOST": "10.0.0.1",
        "KAFKA_SERVICE_PORT_CLIENTS": "9092",
        "KAFKA_PORT": "tcp://10.0.0.1:9092",
        "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
        "KAFKA_0_PORT": "tcp://10.0.0.1:9092",
        "OTTLA_SERVICE_HOST": "10.0.0.1",
        "OTTLA_CONSOLE_PORT": "tcp://10.0.0.1:8080",  # beside a service called ottla-console
    }
    assert settings_of(of_kubernetes) == {}
    assert settings_of({"OTTLA_METRICS_PORT": "1", "OTTLA_PURE": "1", "PATH": "/bin"}) == {"ottla.metrics.port": "1"}


def test_log_levels_of_kafka() -> None:
    container = read_container(
        {"KAFKA_LOG4J_ROOT_LOGLEVEL": "warn", "KAFKA_LOG4J_LOGGERS": "kafka.controller=TRACE, state.change.logger=OFF"},
        {},
        "box",
    )
    assert container.root_level == "WARNING"
    assert container.logger_levels == {"kafka.controller": "TRACE", "state.change.logger": "FATAL"}
    assert read_container({"KAFKA_LOG4J_ROOT_LOGLEVEL": "loud"}, {}, "box").root_level == "INFO"


# -- variables over file over defaults


def test_node_without_any_setting_is_a_cluster_at_localhost() -> None:
    settings = settings_from({})
    assert settings["listeners"] == "PLAINTEXT://0.0.0.0:9092,CONTROLLER://localhost:9093"
    assert settings["advertised.listeners"] == "PLAINTEXT://localhost:9092"
    assert settings["controller.quorum.voters"] == "1@localhost:9093"
    assert settings["log.dirs"] == DATA
    assert (settings["ottla.metrics.host"], settings["ottla.metrics.port"]) == ("0.0.0.0", "9464")


def test_console_and_registry_are_open_to_the_network_when_they_are_asked_for() -> None:
    config = BrokerConfig.from_settings(settings_from({"KAFKA_OTTLA_CONSOLE_PORT": "8080"}))
    assert (config.ottla_console_host, config.ottla_console_port) == ("0.0.0.0", 8080)
    assert (config.ottla_schema_registry_host, config.ottla_schema_registry_port) == ("0.0.0.0", -1)


def test_one_variable_does_not_throw_away_the_defaults() -> None:
    changed = {"num.partitions": "3"}
    assert settings_from({"KAFKA_NUM_PARTITIONS": "3"}) == settings_from({}) | changed


def test_variables_win_over_the_file_and_the_file_over_defaults() -> None:
    in_file = {"num.partitions": "6", "log.dirs": "/data", "node.id": "7"}
    settings = settings_from({"KAFKA_NUM_PARTITIONS": "3"}, in_file)
    assert (settings["num.partitions"], settings["log.dirs"], settings["node.id"]) == ("3", "/data", "7")
    assert settings["controller.quorum.voters"] == "7@localhost:9093"


def test_empty_variable_counts_as_not_set_where_a_node_needs_a_value() -> None:
    assert settings_from({"KAFKA_NODE_ID": "", "KAFKA_LOG_DIRS": " "}) == settings_from({})


# -- listeners


def test_listeners_come_from_the_advertised_ones() -> None:
    settings = settings_from(
        {
            "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:19092,PLAINTEXT_HOST://localhost:9092",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
        }
    )
    assert settings["listeners"] == "PLAINTEXT://0.0.0.0:19092,PLAINTEXT_HOST://0.0.0.0:9092,CONTROLLER://localhost:9093"
    assert settings["listener.security.protocol.map"].endswith(",CONTROLLER:PLAINTEXT")


def test_controller_takes_a_port_that_no_other_listener_has() -> None:
    settings = settings_from({"KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093", "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://h:1"})
    assert settings["listeners"] == "PLAINTEXT://0.0.0.0:9093,CONTROLLER://localhost:9094"


def test_node_of_several_is_found_by_its_name_and_keeps_kafkas_factors() -> None:
    settings = settings_from({"KAFKA_NODE_ID": "2", "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@a:9093,2@b:29093,3@c:9093"})
    assert settings["listeners"] == "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:29093"
    assert settings["advertised.listeners"] == "PLAINTEXT://box:9092"
    assert "offsets.topic.replication.factor" not in settings
    assert settings_from({})["offsets.topic.replication.factor"] == "1"


@pytest.mark.parametrize(
    ("roles", "voters", "listeners"),
    [
        ("controller", "1@a:9093", "CONTROLLER://0.0.0.0:9093"),
        ("broker", "9@b:9093", "PLAINTEXT://0.0.0.0:9092"),
    ],
)
def test_node_with_one_role(roles: str, voters: str, listeners: str) -> None:
    settings = settings_from({"KAFKA_PROCESS_ROLES": roles, "KAFKA_CONTROLLER_QUORUM_VOTERS": voters})
    assert settings["listeners"] == listeners


def test_node_for_zookeeper_becomes_a_cluster_of_its_own_and_says_so() -> None:
    variables = {
        "KAFKA_BROKER_ID": "1",
        "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181",
        "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9093,BROKER://10.0.0.2:9092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    }
    settings = settings_from(variables)
    assert settings["node.id"] == "1"
    assert settings["listeners"].endswith(",CONTROLLER://localhost:9094")
    (notice,) = read_container(variables, {}, "box").notices
    assert notice.startswith("KAFKA_ZOOKEEPER_CONNECT has no effect")


def test_malformed_listeners_are_left_for_the_nodes_own_check() -> None:
    assert complete({"listeners": "PLAINTEXT//x"}, "box")["listeners"] == "PLAINTEXT//x"


# -- the entry point, without an image


IMAGE = Path(__file__).parents[4] / "image" / "root"


@contextmanager
def entry_point(folder: Path, script: str, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A start script of the image with this checkout's `ottla` on its PATH. It is killed at the end if it still runs."""
    binaries = folder / "bin"
    binaries.mkdir(exist_ok=True)
    command = binaries / "ottla"
    command.write_text(f'#!/bin/sh\nexec {" ".join(OTTLA)} "$@"\n')
    command.chmod(0o755)
    environment = {
        "PATH": f"{binaries}:{IMAGE / 'usr/local/bin'}:/usr/bin:/bin",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "KAFKA_LOG_DIRS": str(folder / "data"),
        "KAFKA_LISTENERS": "PLAINTEXT://127.0.0.1:0",
        **variables,
    }
    keeper = {name: value for name, value in os.environ.items() if name.startswith("OTTLA_TESTS")}
    process = subprocess.Popen(
        [str(IMAGE / script), *arguments],
        env=keeper | environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines_until_ready(process: subprocess.Popen[str]) -> list[str]:
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if READY[-1] in line:
            break
    return lines


def health(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_entry_point_formats_starts_and_starts_again(tmp_path: Path) -> None:
    [port] = free_ports(1)
    probe = [str(IMAGE / "usr/local/bin/ottla-health")]
    probe_port = {"PATH": "/usr/bin:/bin", "OTTLA_METRICS_PORT": str(port)}
    for start in ("first", "second"):
        arguments = ("KAFKA_NUM_PARTITIONS=3", "CLUSTER_ID=MkU3OEVBNTcwNTJENDM2Qk")
        with entry_point(tmp_path, "etc/kafka/docker/run", *arguments, OTTLA_METRICS_PORT=str(port)) as process:
            lines = lines_until_ready(process)
            shown = "\n".join(lines)
            for text in READY:
                assert shown.count(text) == 1, shown
            assert ("Formatted metadata directory" in shown) == (start == "first")
            assert "cluster MkU3OEVBNTcwNTJENDM2Qk" in shown
            assert health(port, "/readyz") == (200, "ok\n")
            assert subprocess.run(probe, env=probe_port, check=False).returncode == 0
            server = next(line.rpartition(" ")[2] for line in lines if READY[0] in line)
            if start == "first":
                with Producer(server) as producer:
                    producer.send("orders", b"one coffee").result()
            else:
                with Consumer(server, group_id="readers", auto_offset_reset="earliest") as consumer:
                    consumer.subscribe(["orders"])
                    assert next(iter(consumer)).value == b"one coffee"
            process.send_signal(signal.SIGTERM)
            assert process.wait(HANG_S) == 0
    refused = subprocess.run(probe, env=probe_port, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr) == (1, "")
    assert f"nothing answers on port {port}" in refused.stdout


def test_settings_show_what_a_start_would_take(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=6\nlog.retention.hours=1\n")
    done = subprocess.run(
        [*OTTLA, "server", "settings", str(file)],
        env=os.environ | {"KAFKA_NUM_PARTITIONS": "3"},
        capture_output=True,
        check=True,
    )
    shown = parse_properties(done.stdout)
    assert (shown["num.partitions"], shown["log.retention.hours"], shown["log.dirs"]) == ("3", "1", DATA)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"KAFKA_NODE_ID": "x"}, "the settings of this container (KAFKA_* variables over defaults) are wrong: "),
        ({"KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "a:1,b:1"}, "does not say which controllers a new cluster begins with"),
        ({"KAFKA_LOG_DIRS": "/proc/data"}, "cannot"),
    ],
)
def test_refused_start_is_said_in_one_sentence(tmp_path: Path, variables: dict[str, str], said: str) -> None:
    with entry_point(tmp_path, "etc/kafka/docker/run", OTTLA_METRICS_PORT="-1", **variables) as process:
        output, _ = process.communicate(timeout=HANG_S)
    assert process.returncode in (1, 2)
    assert said in output
    assert "Traceback" not in output


def test_argument_that_is_no_variable_is_refused(tmp_path: Path) -> None:
    with entry_point(tmp_path, "etc/kafka/docker/run", "start") as process:
        output, _ = process.communicate(timeout=HANG_S)
    assert (process.returncode, "start is no variable: write NAME=VALUE" in output) == (2, True)


def test_folder_of_another_user_is_refused_with_the_command_that_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    for group, command in ((0, "chgrp -R 0 FOLDER && chmod -R g+rwX FOLDER"), (100, "chown -R 4711:100 FOLDER")):
        monkeypatch.setattr(os, "getgid", lambda group=group: group)
        with pytest.raises(OttlaError) as refused:
            check_writable(f"{tmp_path}/data")
        assert f"On the host: `{command}`" in str(refused.value)
        assert f"this user (user 4711, group {group}) cannot write to {tmp_path}, which belongs to user" in str(refused.value)


# -- Kafka's names


def test_scripts_with_kafkas_names(tmp_path: Path) -> None:
    write_scripts(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {
        f"{name}{end}" for name in SAME_OPTIONS | SENTENCES for end in ("", ".sh")
    }
    ottla = tmp_path / "ottla"
    ottla.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    ottla.chmod(0o755)

    def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        return subprocess.run([str(tmp_path / name), *arguments], env=path, capture_output=True, text=True, check=False)

    assert run("kafka-consumer-perf-test", "--topic", "a b").stdout == "perf|consume|--topic|a b|"
    assert run("kafka-server-start.sh", "f", "--override", "a=b").stdout == "server|start|f|--override|a=b|"
    assert run("zookeeper-server-start", "zookeeper.properties").returncode == 0
    connect = run("connect-distributed.sh")
    assert (connect.returncode, connect.stdout) == (1, "")
    assert connect.stderr.startswith("there is no connect-distributed here: Ottla has no Connect workers; Apache Kafka's")
