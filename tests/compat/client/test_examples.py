"""The examples of docs/clients.md and docs/admin.md run to their end, each against a broker of its own."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.compat.client.clients_page import ADDRESS, EXAMPLES, PAGE, title
from tests.support.servers.certificates import Authority
from tests.support.servers.kafka_server import HANG_S

from ottla.testing import Broker


@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_example_of_the_clients_page(example: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    with Broker() as broker:
        broker.create_topic("orders", partitions=3)
        for number in range(9):
            broker.produce("orders", json.dumps({"table": number}), partition=number % 3)
        if "ca.pem" in example:
            Authority(tmp_path).certificate.rename(tmp_path / "ca.pem")
        script.write_text(example.replace(ADDRESS, f'"{broker.bootstrap_servers}"'), encoding="utf-8")
        command = [sys.executable, "-W", "error", str(script)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "", "an example must not make a client warn"


def test_example_of_the_admin_page() -> None:
    page = (PAGE.parent / "admin.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    with Broker() as broker:
        exec(compile(example.replace(ADDRESS, f'"{broker.bootstrap_servers}"'), "docs/admin.md", "exec"), {})
        assert broker.topics() == {"orders": 3}
