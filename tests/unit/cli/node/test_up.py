"""`ottla up` and `ottla server start` as users see them: output, refused starts, clean shutdown."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import free_ports
from tests.support.servers.ottla_server import OTTLA, run_ottla

from ottla.broker.solo_settings import solo_settings
from ottla.cli.node.companions import Companions
from ottla.cli.node.up import _tell
from ottla.records.kernels import variant

SETTINGS = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:0
log.dirs={data}
"""


@contextmanager
def up(data: Path, *arguments: str) -> Iterator[tuple["subprocess.Popen[str]", dict[str, str]]]:
    """A node that has reported that it is ready. It is stopped at the end of the block if it still runs."""
    command = [*OTTLA, "up", "--port", "0", "--data", str(data), "--json", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def refused(*arguments: object) -> str:
    """The error message of a command that fails."""
    done = run_ottla(*arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    (sentence,) = [line for line in done.stderr.splitlines() if not re.match(r"\d{4}-\d\d-\d\dT", line)]
    return sentence.replace("ottla: ", "")


def test_single_node_shows_its_state_and_stops_from_elsewhere(tmp_path: Path) -> None:
    with up(tmp_path) as (process, facts):
        (shown,) = json.loads(run_ottla("up", "--data", tmp_path, "status", "--json").stdout)
        assert shown == {
            "node_id": 1,
            "state": "up",
            "bootstrap_servers": facts["bootstrap_servers"],
            "roles": "broker,controller",
            "pid": process.pid,
        }
        assert "it can be shown and stopped" in run_ottla("up", "restart", "1", "--data", tmp_path).stderr
        assert run_ottla("up", "stop", "--data", tmp_path).stdout == "Stopping node 1.\n"
        assert process.wait(30) == 0
    assert not list(tmp_path.glob(".ottla*"))


def test_log_dirs_setting_overrides_the_data_folder(tmp_path: Path) -> None:
    with up(tmp_path / "unused", "--set", f"log.dirs={tmp_path}/used") as (_, facts):
        assert facts["data"] == f"{tmp_path}/used"
    assert [each.name for each in tmp_path.iterdir()] == ["used"]


def test_files_of_a_secure_node_are_its_owners(tmp_path: Path) -> None:
    """Secrets for the owner alone, data for the owner's group too, nothing for others."""
    before = os.umask(0o022)
    try:
        with up(tmp_path / "data", "--secure", "--no-console", "--no-registry"):
            paths = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
            modes = {str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777 for path in paths}
    finally:
        os.umask(before)
    secrets = {name: mode for name, mode in modes.items() if name.startswith("data/security")}
    assert secrets.pop("data/security") == 0o700
    assert secrets.pop("data/security/ca.pem") == 0o644, "everybody may see the certificate of the authority"
    assert secrets
    assert set(secrets.values()) == {0o600}, secrets
    rest = {name: mode for name, mode in modes.items() if not name.startswith("data/security")}
    assert "data/node-1/__cluster_metadata-0/00000000000000000000.log" in rest
    assert not {name: oct(mode) for name, mode in rest.items() if mode & 0o027}, "the group reads, others do nothing"


def test_help_has_an_example_of_a_cluster() -> None:
    assert "ottla up --nodes 3 " in run_ottla("up", "--help").stdout


def test_ipv6_host_needs_no_brackets() -> None:
    assert solo_settings("::1", 9092, "/d")["listeners"] == "PLAINTEXT://[::1]:9092,CONTROLLER://[::1]:0"
    assert solo_settings("[::1]", 9092, "/d") == solo_settings("::1", 9092, "/d")


@pytest.mark.parametrize(
    ("address", "flag"),
    [
        ("127.0.0.1:9092", ""),
        ("10.1.2.3:9092", " --bootstrap-server 10.1.2.3:9092"),
        ("[::1]:7", " --bootstrap-server [::1]:7"),
    ],
)
def test_suggested_commands_name_the_address_if_needed(address: str, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    node: Any = SimpleNamespace(bootstrap_servers=address, cluster_id="c", node_id=1)
    _tell(node, Path("/d"), False, False, Companions())
    assert f"  ottla topics create greetings --partitions 3{flag}\n" in capsys.readouterr().out


@contextmanager
def hangups(disposition: signal.Handlers) -> Iterator[None]:
    """Processes started in this block inherit the disposition of SIGHUP: default, or ignored as under nohup."""
    before = signal.signal(signal.SIGHUP, disposition)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_it_formats_answers_and_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    data = tmp_path / "new" / "data"
    with hangups(signal.SIG_DFL), up(data) as (process, facts):
        assert facts["data"] == str(data)
        assert run_ottla("topics", "create", "orders", "--bootstrap-server", facts["bootstrap_servers"]).returncode == 0
        process.send_signal(number)
        assert process.wait(30) == 0
    assert (data / ".kafka_cleanshutdown").exists()
    with up(data) as (_, again):
        assert again["cluster_id"] == facts["cluster_id"]
        assert run_ottla("topics", "list", "--bootstrap-server", again["bootstrap_servers"]).stdout == "orders\n"


def test_hangup_is_ignored_under_nohup(tmp_path: Path) -> None:
    with hangups(signal.SIG_IGN), up(tmp_path / "data") as (process, facts):
        process.send_signal(signal.SIGHUP)
        assert run_ottla("topics", "list", "--bootstrap-server", facts["bootstrap_servers"]).returncode == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_quiet_node_prints_nothing(tmp_path: Path) -> None:
    data, (port,) = tmp_path / "data", free_ports(1)
    command = [*OTTLA, "up", "--port", str(port), "--data", str(data), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        where = ("--bootstrap-server", f"127.0.0.1:{port}")
        await_true(lambda: run_ottla("topics", "list", *where).returncode == 0, "the node answers")
        process.send_signal(signal.SIGTERM)
        printed, logged = process.communicate(timeout=60)
        busy = "WARNING  loop: the event loop was held"  # what a busy machine is warned of
        assert (printed, [line for line in logged.splitlines() if busy not in line]) == ("", [])
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def test_interrupts_stay_ignored_in_the_background_of_a_script(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    command = [*OTTLA, "up", "--port", "0", "--data", str(tmp_path / "data"), "--json", "--log-dir", str(logs)]
    ignoring = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command]
    process = subprocess.Popen(ignoring, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        facts = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert run_ottla("topics", "list", "--bootstrap-server", facts["bootstrap_servers"]).returncode == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
    log = "".join(each.read_text() for each in logs.iterdir())
    assert "SIGTERM: stopping" in log
    assert "SIGINT" not in log


def test_output_on_a_terminal_names_the_address(tmp_path: Path) -> None:
    command = [*OTTLA, "up", "--port", "0", "--data", str(tmp_path / "data")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "80"}
    )
    assert process.stdout is not None
    said = ""
    while "Ctrl-C" not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) is not None
    assert process.returncode == 0
    (address,) = re.findall(r"Ottla is up at (127\.0\.0\.1:\d+)", said)
    assert f"ottla topics create greetings --partitions 3 --bootstrap-server {address}" in said


def test_failed_starts_are_explained(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data) as (process, facts):
        port = facts["bootstrap_servers"].rpartition(":")[2]
        taken = refused("up", "--port", port, "--data", tmp_path / "other")
        assert taken.startswith(f"cannot listen on 127.0.0.1, port {port}: the port is taken")
        in_use = refused("up", "--port", "0", "--data", data)
        assert in_use.startswith(f"log directory {data} is in use by process {process.pid}")
    meta = data / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=7"))
    assert f"log directory {data} belongs to node 7, but this is node 1" in refused("up", "--port", "0", "--data", data)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("hello")
    assert "holds letter.txt and is no log directory" in refused("up", "--port", "0", "--data", tmp_path / "mine")
    assert "num.partitions='many': must be a whole number" in refused(
        "up", "--port", "0", "--data", data, "--set", "num.partitions=many"
    )
    unknown = run_ottla("up", "--data", tmp_path / "new", "--set", "num.partition=6")
    assert unknown.returncode == 2
    assert "--set: num.partition is no broker setting of Kafka; did you mean num.partitions?" in unknown.stderr
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "other").exists(), "a refused start leaves nothing behind"
    wrong = run_ottla("up", "--set", "num.partitions")
    assert wrong.returncode == 2
    assert "write NAME=VALUE" in wrong.stderr


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() == 0, reason="this user may listen on any port")
def test_a_privileged_port_is_refused(tmp_path: Path) -> None:
    assert "port 80" in refused("up", "--port", "80", "--data", tmp_path / "data")


def test_server_properties_written_for_kafka_starts_a_node(tmp_path: Path) -> None:
    file, logs = tmp_path / "server.properties", tmp_path / "logs"
    file.write_text(
        SETTINGS.format(data=tmp_path / "data") + "zookeeper.connect=localhost:2181\nno.such.setting=1\nnum.io.threads=8\n"
    )
    assert "has no meta.properties: format it first" in refused("server", "start", file, "--log-dir", logs)
    assert list(tmp_path.iterdir()) == [file], "a refused start leaves nothing behind"
    cluster_id = run_ottla("storage", "random-uuid").stdout.strip()
    assert run_ottla("storage", "format", "--standalone", "-t", cluster_id, "-c", file).returncode == 0
    process = subprocess.Popen(
        [*OTTLA, "server", "start", str(file), "--log-dir", str(logs)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = ""
    while "is up at" not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    process.send_signal(signal.SIGTERM)
    said += process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert "zookeeper.connect is a setting of older Kafkas and has no effect: ZooKeeper is gone" in said
    assert "no.such.setting is no broker setting" in said
    assert "accepted, but without effect here: num.io.threads" in said
    assert re.search(rf"node 1 of cluster {cluster_id} is up at 127\.0\.0\.1:\d+ \({variant()} kernels\)\n", said)
    (log,) = logs.iterdir()
    assert "SIGTERM: stopping" in log.read_text()


def test_missing_and_malformed_properties_files_are_refused(tmp_path: Path) -> None:
    missing = run_ottla("server", "start", tmp_path / "none.properties")
    assert missing.returncode == 2
    assert "does not exist" in missing.stderr
