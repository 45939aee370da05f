"""`ottla storage sample`: the files that it writes are those of config/, and nodes start from them as their comments say."""

import re
import time
from pathlib import Path

import pytest
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_cli import run_cli
from tests.support.servers.shell_scripts import ports_for_nodes, running_script

from ottla import Admin
from ottla.config.broker import BrokerConfig
from ottla.config.java_properties import parse_properties
from ottla.config.notices import notices
from ottla.config.samples import one_node, three_nodes

CONFIG = Path(__file__).parents[3] / "config"


def test_files_of_the_checkout_are_those_that_the_command_writes(tmp_path: Path) -> None:
    for options, files, folder in (((), one_node(), CONFIG), (("--nodes", 3), three_nodes(), CONFIG / "three-nodes")):
        said = run_cli("storage", "sample", tmp_path / "new", *options)
        assert (said.rc, len(said.lines)) == (0, len(files)), said.err
        assert {each.name for each in folder.glob("*.properties")} == set(files)
        for name, text in files.items():
            assert (folder / name).read_text() == (tmp_path / "new" / name).read_text() == text
            settings = parse_properties(text.encode())
            assert BrokerConfig.from_settings(settings).node_id == int(settings["node.id"])
            assert notices(settings) == [], "every setting has an effect"


def test_files_that_exist_are_kept(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("mine")
    said = run_cli("storage", "sample", tmp_path)
    assert (said.rc, "server.properties exists already" in said.err) == (1, True)
    assert (tmp_path / "server.properties").read_text() == "mine"
    assert "Choose 1 or 3" in run_cli("storage", "sample", tmp_path, "--nodes", 2).err


@pytest.mark.parametrize("nodes", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_nodes_start_as_the_comments_say(tmp_path: Path, nodes: int) -> None:
    port = ports_for_nodes(nodes)
    assert run_cli("storage", "sample", tmp_path, "--nodes", nodes, "--port", port, "--host", "127.0.0.1").rc == 0
    first = (tmp_path / ("server.properties" if nodes == 1 else "server-1.properties")).read_text()
    lines = re.findall(r"^#   (.*)$", first.partition("process.roles=")[0], flags=re.MULTILINE)
    script = "\n".join(lines) + "\nwait\n"
    with running_script(script, tmp_path), Admin(f"127.0.0.1:{port}") as admin:
        _await_nodes(admin, nodes)
        admin.create_topics({"orders": 3})
        (topic,) = admin.describe_topics(["orders"]).values()
        assert {len(each.replicas) for each in topic.partitions} == {nodes}
    assert len(list((tmp_path / "data").rglob("meta.properties"))) == nodes


def _await_nodes(admin: Admin, count: int) -> None:
    deadline_s = time.monotonic() + HANG_S
    while len(admin.describe_cluster().nodes) < count:
        assert time.monotonic() < deadline_s, "not all nodes are up"
        time.sleep(0.1)
