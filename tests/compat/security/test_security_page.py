"""docs/security.md: the ten commands that make a secured cluster, and the examples in Python."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.shell_scripts import ports_for_nodes, running_script

from ottla import Admin, Producer
from ottla.config.java_properties import parse_properties
from ottla.errors import OttlaError, TopicAuthorizationError

PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
(COMMANDS,) = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)


def test_ten_commands_make_a_secured_cluster(tmp_path: Path) -> None:
    port = ports_for_nodes(3)
    text = COMMANDS.replace("--secure", f"--secure --port {port}")
    for node in range(3):
        text = text.replace(f":{19092 + node}", f":{port + 10_000 + node}")
    assert len(text.splitlines()) == 10
    (tmp_path / "alice.password").write_text("wonderland\n")
    before, last, after = re.split(r"(for n in 1 2 3; do ottla server start.*\n)", text)
    with running_script(before + last + "wait\n", tmp_path):
        config = await_file(tmp_path / "admin.properties")
        admin_config = parse_properties(config.read_bytes())
        servers = admin_config.pop("bootstrap.servers")
        admin_config["ssl.truststore.location"] = str(tmp_path / "ottla-certs" / "ca.pem")
        await_cluster(servers, admin_config)
        environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
        done = subprocess.run(["sh", "-ec", after], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        alice = {
            **admin_config,
            "sasl.jaas.config": re.sub(
                'username=".*?" password=".*?"', 'username="alice" password="wonderland"', admin_config["sasl.jaas.config"]
            ),
        }
        with Producer(servers, config=alice) as producer:
            producer.send("orders", b"two coffees").result()
            with pytest.raises(TopicAuthorizationError):
                producer.send("secrets", b"one").result()
        with Admin(servers, config=admin_config) as admin:
            assert [(rule.principal, rule.resource_name) for rule in admin.describe_acls()] == [("User:alice", "orders")] * 3


def await_file(path: Path) -> Path:
    deadline_s = time.monotonic() + HANG_S
    while not path.exists():
        assert time.monotonic() < deadline_s, f"{path} was not written"
        time.sleep(0.05)
    return path


def await_cluster(servers: str, config: dict[str, str]) -> None:
    """Wait until all three brokers are there."""
    deadline_s = time.monotonic() + HANG_S
    seen: object = None
    while time.monotonic() < deadline_s:
        try:
            with Admin(servers, config=config) as admin:
                seen = admin.describe_cluster().nodes
                if len(seen) == 3:
                    return
        except (OttlaError, FileNotFoundError) as error:
            seen = error
        time.sleep(0.1)
    pytest.fail(f"the three brokers are not there: {seen!r}")


@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL))
def test_examples_run(example: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
