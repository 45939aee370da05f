"""`ottla console` as a process: clusters by flags and by a file, and mistakes in them."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.console_server import RunningConsole
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_cli import run_cli

from ottla.testing import Broker, Security


@contextmanager
def console(*arguments: object) -> Iterator[str]:
    """The address of a console with these arguments."""
    command = [sys.executable, "-m", "ottla", "console", "--port", "0", "--json", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()
            assert process.wait(HANG_S) == 128 + signal.SIGTERM


def api(url: str, path: str = "/") -> Any:
    with urllib.request.urlopen(f"{url}/api{path}", timeout=HANG_S) as answer:
        return json.load(answer)


def test_clusters_of_a_file_each_with_its_settings(tmp_path: Path) -> None:
    with Broker() as plain, Broker(security=Security()) as secured:
        lines = (f"{name}={value}".replace("\\", "\\\\") for name, value in secured.client_config().items())
        (tmp_path / "secured.properties").write_text("\n".join(lines))
        (tmp_path / "console.yaml").write_text(
            f"clusters:\n  - {{name: open, bootstrap.servers: '{plain.bootstrap_servers}'}}\n"
            f"  - {{name: secured, bootstrap.servers: '{secured.bootstrap_servers}', command-config: secured.properties}}\n"
            "allow-changes: true\n"
        )
        plain.create_topic("in-open")
        secured.create_topic("in-secured")
        with console("--config", tmp_path / "console.yaml") as url:
            assert [each["name"] for each in api(url, "/topics")["rows"]] == ["in-open"]
            assert [each["name"] for each in api(url, "/clusters/secured/topics")["rows"]] == ["in-secured"]
            with urllib.request.urlopen(f"{url}/topics", timeout=HANG_S) as answer:
                assert b"Create a topic" in answer.read()
        with (
            console("--config", tmp_path / "console.yaml", "--read-only") as url,
            urllib.request.urlopen(f"{url}/topics", timeout=HANG_S) as answer,
        ):
            assert b"Create a topic" not in answer.read()


def test_clusters_of_flags() -> None:
    with Broker() as first, Broker() as second:
        second.create_topic("in-second")
        with console("-b", first.bootstrap_servers, "-b", second.bootstrap_servers) as url:
            assert api(url, "/topics")["rows"] == []
            assert len(api(url, f"/clusters/{second.bootstrap_servers}/topics")["rows"]) == 1


WITH_A_DEAF_JOB = """
import sys
from ottla.cli.main import main
from ottla.console import sql
program = (
    "import os, signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('{\\"pid\\": %d}' % os.getpid(), flush=True); time.sleep(600)"
)
sql.is_installed = lambda: True
sql.Jobs.__init__.__defaults__ = ((sys.executable, "-c", program),)
main(["console", "--port", "0", "--json", "--sql", "-b", sys.argv[1]])
"""


def test_statements_end_with_the_console() -> None:
    with Broker() as broker:
        command = [sys.executable, "-c", WITH_A_DEAF_JOB, broker.bootstrap_servers]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            browser = RunningConsole(json.loads(process.stdout.readline())["url"])
            path = browser.post("/sql", {"text": "SELECT 1"}).place.partition("?")[0]
            deadline_s = time.monotonic() + HANG_S
            while not (cells := browser.api(path)["cells"]):
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
            process.terminate()
            assert process.wait(HANG_S) == 128 + signal.SIGTERM
        with pytest.raises(ProcessLookupError):
            os.kill(int(cells[0][0]), 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cluster", "localhost:9092"), "--cluster localhost:9092: write NAME=HOST:PORT"),
        (("-b", "a:1", "-b", "a:1"), "-b a:1: there are two clusters a:1; give them names with --cluster"),
        (("--config", "none.yaml"), "none.yaml cannot be read: No such file or directory"),
    ],
)
def test_mistakes_in_flags(arguments: tuple[str, ...], said: str) -> None:
    found = run_cli("console", *arguments)
    assert found.rc == 2
    assert said in found.err


def test_mistakes_in_the_file_name_their_line(tmp_path: Path) -> None:
    path = tmp_path / "console.yaml"
    path.write_text("clusters:\n  - name: prod\n    bootstrap.server: a:9092\n")
    found = run_cli("console", "--config", path)
    assert found.rc == 2
    assert f"{path}, line 3: clusters[0].bootstrap.server: there is no such key: did you mean bootstrap.servers?" in found.err
    path.write_text("clusters:\n  - bootstrap.servers: a:9092\n    properties: {sasl.jaas.config: '${env:NO_SUCH_VARIABLE}'}\n")
    found = run_cli("console", "--config", path)
    assert found.rc == 2
    assert "there is no environment variable NO_SUCH_VARIABLE" in found.err
