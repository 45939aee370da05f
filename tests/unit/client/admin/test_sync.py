"""What only the synchronous face has: a thread of its own, shared by callers in several threads."""

import threading

import pytest
from tests.support.servers.kafka_server import KafkaServer

from ottla.client.admin.sync import Admin
from ottla.errors import IllegalStateError
from ottla.testing import Broker


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


def test_close_ends_calls_of_other_threads() -> None:
    raised: list[BaseException] = []
    with Broker() as broker:
        admin = Admin(broker.bootstrap_servers)

        def wait() -> None:
            try:
                admin.list_topics()
            except BaseException as error:
                raised.append(error)

        with broker.faults.hang("Metadata") as hung:
            threads = [threading.Thread(target=wait), threading.Thread(target=wait)]
            for each in threads:
                each.start()
            hung.await_hits()
            closers = [threading.Thread(target=admin.close), threading.Thread(target=admin.close)]
            for each in closers:
                each.start()
            for each in (*closers, *threads):
                each.join(60)
    assert [type(each) for each in raised] == [IllegalStateError] * 2
    assert "this Admin is closed" in str(raised[0])
