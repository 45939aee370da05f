"""Services beside a node whose settings ask for them: `ottla.console.port`, `ottla.schema.registry.port`."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.servers.kafka_server import HANG_S, properties_text
from tests.support.servers.ottla_server import OTTLA, run_ottla

from ottla.broker.solo_settings import solo_settings
from ottla.cli.node.companions import REGISTRY, Companions, registry_settings, services_beside
from ottla.config.broker import BrokerConfig
from ottla.config.values import InvalidConfig
from ottla.errors import OttlaError

BESIDE = {"ottla.console.port": "0", "ottla.schema.registry.port": "0"}
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="x"'


def file_of(folder: Path, changed: Mapping[str, str]) -> Path:
    file = folder / "server.properties"
    file.write_text(properties_text(solo_settings("127.0.0.1", 0, str(folder / "data")) | changed))
    return file


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=HANG_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def secured(folder: Path) -> dict[str, str]:
    """A login with a password at the listener for clients; the services have one too."""
    (folder / "client.properties").write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={LOGIN};\n"
    )
    return {
        "listeners": "CLIENTS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": f'{LOGIN} user_ada="x";',
        "ottla.command.config": str(folder / "client.properties"),
    }


@pytest.mark.parametrize("is_secured", [False, True], ids=["plain", "secured"])
def test_console_and_registry_live_as_long_as_the_node(tmp_path: Path, is_secured: bool) -> None:
    pytest.importorskip("uvicorn")
    pytest.importorskip("fastavro")
    file = file_of(tmp_path, BESIDE | (secured(tmp_path) if is_secured else {}))
    command = [*OTTLA, "server", "start", str(file), "--format-new", "--log-dir", str(tmp_path / "logs")]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if "schema registry: " in line:
                    break
            said = "".join(lines)
            console, registry = (re.search(rf"{name}: (http\S+)", said) for name in ("console", "schema registry"))
            assert console is not None, said
            assert registry is not None, said
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            if sys.platform == "linux":
                assert children.read_text() == ""  # a service that nobody uses costs nothing
            assert get(f"{registry[1]}/subjects") == (200, "[]")
            code, page = get(f"{console[1]}/api/")
            assert code == 200, page
            assert f"cluster {json.loads(page)['cluster_id']} is up" in said
            process.send_signal(signal.SIGTERM)
            assert process.wait(HANG_S) == 0
        finally:
            process.kill()
    for url in (console[1], registry[1]):
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(url, timeout=HANG_S)


def test_port_that_is_taken_refuses_the_start_and_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_ottla("server", "start", file_of(tmp_path, {"ottla.console.port": str(port)}), "--format-new")
    assert done.returncode == 1
    assert f"port {port} of 127.0.0.1 cannot be opened" in done.stderr
    assert "Choose another with ottla.console.port" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_listeners_with_a_login_need_the_settings_of_a_client(tmp_path: Path) -> None:
    settings = secured(tmp_path) | {
        "listeners": "CLIENTS://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "inter.broker.listener.name": "CLIENTS",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    del settings["ottla.command.config"]
    settings = solo_settings("127.0.0.1", 0, str(tmp_path)) | settings | {"ottla.schema.registry.port": "0"}
    with (
        pytest.raises(OttlaError, match=r"have SASL_PLAINTEXT: name a file .* in ottla\.command\.config"),
        services_beside(settings),
    ):
        pass


def test_package_that_is_missing_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.cli.console.missing_packages", lambda: ["jinja2"])
    settings = solo_settings("127.0.0.1", 0, str(tmp_path)) | BESIDE
    needed = r"ottla\.console\.port needs the packages jinja2: pip install 'ottla\[console\]'"
    with pytest.raises(OttlaError, match=needed), services_beside(settings):
        pass


def test_controller_alone_serves_neither() -> None:
    settings = {
        "process.roles": "controller",
        "node.id": "1",
        "listeners": "CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@127.0.0.1:9093",
    }
    with pytest.raises(InvalidConfig, match=r"ottla\.schema\.registry\.port=8081 is for brokers"):
        BrokerConfig.from_settings(settings | {"ottla.schema.registry.port": "8081"})


def test_ottla_up_refuses_what_it_would_not_do(tmp_path: Path) -> None:
    done = run_ottla("up", "--port", "0", "--data", tmp_path / "data", "--set", "ottla.console.port=8080")
    assert done.returncode == 2
    assert "this is for `ottla server start`. `ottla up` serves a console where it says" in done.stderr


def test_the_registry_of_up_is_known_to_its_nodes_before_they_start() -> None:
    pytest.importorskip("starlette")

    async def main() -> None:
        with Companions() as companions:
            settings = registry_settings(companions, "0.0.0.0", {})
            url = settings["confluent.schema.registry.url"]
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
            host, _, port = url.removeprefix("http://").rpartition(":")
            with socket.create_connection((host, int(port)), timeout=HANG_S):
                pass  # taken, though nothing answers yet
            companions.add(REGISTRY, "0.0.0.0", int(port), ("registry",))
            assert [each.url.rpartition(":")[2] for each in companions.services] == [port]
            assert registry_settings(companions, "127.0.0.1", {"confluent.schema.registry.url": "http://other"}) == {}
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((host, int(port)), timeout=HANG_S)

    asyncio.run(main())
