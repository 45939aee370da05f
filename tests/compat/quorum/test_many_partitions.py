"""Thousands of partitions are created while clients produce: no broker is fenced, and the controller stays."""

import re
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.ottla_cluster import NODES, OttlaCluster

from ottla import Admin, Producer

PARTITIONS = 2000
VALUE = bytes(1000)


class Sending:
    """A thread that produces to a topic until it is stopped; every record must be acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged = 0
        self.failures: list[BaseException] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send, args=(bootstrap, topic))
        self._thread.start()

    def _send(self, bootstrap: str, topic: str) -> None:
        try:
            with Producer(bootstrap) as producer:
                while not self._stopping.is_set():
                    sent = [producer.send(topic, VALUE) for _ in range(200)]
                    for each in sent:
                        each.result(120)
                    self.acknowledged += len(sent)
        except BaseException as failure:
            self.failures.append(failure)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("topics", [1, 20])
def test_partitions_created_under_load_fence_nobody_and_keep_the_controller(topics: int, tmp_path: Path) -> None:
    """Sessions of 3 s: a heartbeat that waits for a decision or a publication of seconds would end one."""
    with (
        OttlaCluster(tmp_path) as cluster,
        ExitStack() as cleanup,
        Admin(cluster.bootstrap, request_timeout_ms=120_000, default_api_timeout_ms=120_000) as admin,
    ):
        await_true(lambda: len(admin.describe_cluster().nodes) == len(NODES), "all brokers are in the cluster")
        admin.create_topics({"load": 6}).raise_first()
        epoch = admin.describe_metadata_quorum().leader_epoch
        sending = Sending(cluster.bootstrap, "load")
        cleanup.callback(sending.stop)
        await_true(lambda: sending.acknowledged > 0 or bool(sending.failures), "records are acknowledged")
        names = [f"many-{number}" for number in range(topics)]
        admin.create_topics(dict.fromkeys(names, PARTITIONS // topics)).raise_first()
        before = sending.acknowledged
        await_true(lambda: sending.acknowledged > before + 400 or bool(sending.failures), "producing goes on")
        sending.stop()
        # The answer waits for the broker that was asked; the others make their logs a moment later.
        await_true(
            lambda: sum(len(list((tmp_path / f"node-{node}").glob("many-*-*"))) for node in NODES) == PARTITIONS,
            "a folder for each partition",
        )
        assert sending.failures == []
        for node in NODES:
            log = cluster.log_text(node)
            assert re.findall(r"broker \d+ is fenced.*", log) == []
            assert re.findall(r"is no longer active.*", log) == []
        assert admin.describe_metadata_quorum().leader_epoch == epoch
        assert len(admin.describe_cluster().nodes) == len(NODES)
