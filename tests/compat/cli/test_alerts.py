"""`ottla alerts` against a broker: what is wrong now, alerts to a webhook and to Alertmanager, rules that promtool accepts."""

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tests.support.servers.kafka_server import HANG_S, free_ports
from tests.support.servers.ottla_cli import run_cli

from ottla import Consumer, Producer
from ottla.testing import Broker

RULES = """
every: 200ms
rules:
  - {alert: Behind, when: group_lag > 5, for: 300ms, groups: "bill*", summary: a group is behind}
  - {alert: Controller, when: active_controllers != 1}
"""


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker with a group that is ten records behind."""
    with Broker() as broker:
        broker.create_topic("orders")
        settings: dict[str, Any] = {"group_id": "billing", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        with Producer(broker.bootstrap_servers) as producer, Consumer(broker.bootstrap_servers, **settings) as consumer:
            producer.send("orders", b"x").result(60)
            consumer.subscribe("orders")
            assert consumer.poll(60)
            consumer.commit()
            for _ in range(10):
                producer.send("orders", b"x")
        yield broker


def catch_up(broker: Broker) -> None:
    with Consumer(broker.bootstrap_servers, group_id="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe("orders")
        left = 10
        while left:
            left -= len(consumer.poll(60))
        consumer.commit()


class Running:
    """`ottla alerts run` in a process of its own."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "ottla", "alerts", "run", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def until(found: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + HANG_S
    while not (value := found()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)
    return value


def test_check_says_what_is_wrong_now(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES)
    said = run_cli("alerts", "check", "-b", broker.bootstrap_servers, "--rules", file)
    assert (said.rc, said.lines) == (1, ["warning: Behind: group billing: group_lag is 10 (group_lag > 5)"])
    shown = json.loads(run_cli("alerts", "check", "-b", broker.bootstrap_servers, "--rules", file, "--json").out)
    assert [each["labels"]["alertname"] for each in shown["alerts"]] == ["Behind"]
    catch_up(broker)
    said = run_cli("alerts", "check", "-b", broker.bootstrap_servers, "--rules", file)
    assert (said.rc, said.lines) == (0, ["no rule is true"])


def test_cluster_that_is_gone_is_an_alert_of_its_own(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("every: 200ms\nrules:\n  - {alert: Gone, when: cluster_unreachable > 0, for: 200ms}\n")
    with Running("-b", broker.bootstrap_servers, "--rules", file, "--json") as running:
        assert running.process.stdout is not None
        broker.stop()
        while "Gone" not in (line := running.process.stdout.readline()):
            assert running.process.poll() is None
        assert json.loads(line)["status"] == "firing"
        broker.start()
        while '"resolved"' not in running.process.stdout.readline():
            assert running.process.poll() is None
    broker.stop()
    said = run_cli("alerts", "check", "-b", broker.bootstrap_servers)
    assert (said.rc, said.lines[0][:29]) == (1, "critical: ClusterUnreachable:")
    broker.start()


def test_webhook_is_told_of_beginning_and_end(broker: Broker, tmp_path: Path) -> None:
    got: list[Any] = []
    refuses = [True]

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(503 if refuses else 200)
            self.end_headers()
            if refuses:
                refuses.clear()
            else:
                got.append(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    file = tmp_path / "rules.yaml"
    file.write_text(RULES)
    url = f"http://127.0.0.1:{server.server_port}/"
    with Running("-b", broker.bootstrap_servers, "--rules", file, "--webhook", url):
        until(lambda: got, "the alert, after a receiver that refused once")
        catch_up(broker)
        until(lambda: len(got) > 1, "its end")
    server.shutdown()
    assert [each["status"] for each in got] == ["firing", "resolved"]
    assert [each["alerts"][0]["labels"]["group"] for each in got] == ["billing", "billing"]
    assert got[0]["alerts"][0]["fingerprint"] == got[1]["alerts"][0]["fingerprint"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus-alertmanager") is None, reason="Debian's prometheus-alertmanager is not installed")
def test_alertmanager_takes_it(broker: Broker, tmp_path: Path) -> None:
    [port] = free_ports(1)
    config = tmp_path / "alertmanager.yml"
    config.write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    url = f"http://127.0.0.1:{port}/api/v2/alerts"
    command = ["prometheus-alertmanager", f"--config.file={config}", f"--storage.path={tmp_path / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    manager = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def active() -> list[Any] | None:
        try:
            with urlopen(url, timeout=5) as response:
                found: list[Any] = json.load(response)
                return found
        except OSError:
            return None

    try:
        until(lambda: active() is not None, "Alertmanager")
        file = tmp_path / "rules.yaml"
        file.write_text(RULES)
        with Running("-b", broker.bootstrap_servers, "--rules", file, "--webhook", url, "--form", "alertmanager"):
            (alert,) = until(active, "the alert")
            assert alert["labels"] == {"alertname": "Behind", "group": "billing", "severity": "warning"}
            assert alert["status"]["state"] in ("active", "unprocessed")
            catch_up(broker)
            until(lambda: active() == [], "its end")
    finally:
        manager.kill()
        manager.wait()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian's prometheus) is not installed")
def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(run_cli("alerts", "rules", "--prometheus").out)
    checked = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "SUCCESS" in checked.stdout
