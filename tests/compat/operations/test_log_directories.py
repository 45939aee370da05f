"""`ottla reassign` with log directories in the plan: a replica moves to another disk of its broker. Beside Kafka's own tool."""

import json
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_tools import KafkaTools
from tests.support.servers.ottla_cli import run_cli
from tests.support.servers.ottla_server import StartServer

from ottla import Admin, Producer


def test_replica_moves_to_another_directory(
    start_server: StartServer, kafka_tools: KafkaTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = [tmp_path / "one", tmp_path / "two"]
    for disk in disks:
        disk.mkdir()
    with start_server({"log.dirs": ",".join(map(str, disks))}, data_dir=disks[0]) as server, Admin(server.bootstrap) as admin:
        monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVERS", server.bootstrap)
        admin.create_topics({"orders": 1}).raise_first()
        with Producer(server.bootstrap) as producer:
            for number in range(100):
                producer.send("orders", f"order {number}".encode())

        def place() -> str | None:
            (found,) = admin.describe_replica_log_dirs([("orders", 0, 1)]).values()
            return found.path

        await_true(lambda: place() is not None, "the replica")
        before = place()
        (other,) = {str(disk) for disk in disks} - {before}
        plan = tmp_path / "plan.json"
        partition = {"topic": "orders", "partition": 0, "replicas": [1], "log_dirs": [other]}
        plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        executed = run_cli("reassign", "execute", plan, "--replica-alter-log-dirs-throttle", 10_000_000, "--wait")
        assert executed.rc == 0, executed.err
        assert f"Successfully started moving log directory to {other} for replica orders-0 with broker 1" in executed.lines
        await_true(lambda: place() == other, "the move")
        ours = run_cli("reassign", "verify", plan)
        theirs = kafka_tools.run(
            "reassign", "--bootstrap-server", server.bootstrap, "--verify", "--reassignment-json-file", plan
        )
        assert (ours.rc, ours.out) == (0, theirs.stdout)
        assert "Reassignment of replica orders-0-1 completed successfully." in ours.lines
        back = tmp_path / "back.json"
        back.write_text(executed.out)
        theirs = kafka_tools.run(
            "reassign", "--bootstrap-server", server.bootstrap, "--execute", "--reassignment-json-file", back, check=False
        )
        assert theirs.rc == 1, "its own tool takes no text around the plan"
        back.write_text(executed.lines[2])
        kafka_tools.run("reassign", "--bootstrap-server", server.bootstrap, "--execute", "--reassignment-json-file", back)
        await_true(lambda: place() == before, "the way back")
        assert run_cli("reassign", "verify", back).rc == 0
