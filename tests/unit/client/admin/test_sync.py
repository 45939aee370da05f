"""What only the synchronous face has: a thread of its own, shared by callers in several threads."""

import threading

import pytest
from tests.support.servers.kafka_server import KafkaServer

from ottla.client.admin.sync import Admin
from ottla.errors import IllegalStateError


def test_threads_share_a_client(server: KafkaServer) -> None:
    found: list[str] = []
    with Admin(server.bootstrap) as admin:
        threads = [threading.Thread(target=lambda: found.append(admin.describe_cluster().cluster_id)) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_close_ends_the_thread() -> None:
    before = threading.active_count()
    admin = Admin("localhost:9092")
    assert threading.active_count() == before + 1
    admin.close()
    assert threading.active_count() == before
    with pytest.raises(IllegalStateError, match="closed, or was made before a fork"):
        admin.list_topics()
