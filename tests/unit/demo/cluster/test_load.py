"""The producer of the demo counts what it sends; the comparison finds what is lost, doubled or out of order."""

from tests.support.peers.topics import await_true
from tools.demo.cluster.load import Load, compare, read_all

from ottla.testing import Broker


def test_comparison() -> None:
    assert compare(4, [[0, 2], [1, 3]]) == (4, [], [], True)
    assert compare(4, [[0, 2, 2], [1]]) == (4, [3], [2], True)
    assert not compare(4, [[2, 0], [1, 3]]).is_in_order


def test_every_record_is_acknowledged_and_read() -> None:
    with Broker() as broker:
        broker.create_topic("orders", partitions=2)
        load = Load(broker.bootstrap_servers, "orders", 2)
        load.start()
        await_true(lambda: load.acknowledged >= 20, "records to be acknowledged")
        load.stop()
        assert (load.acknowledged, load.failures) == (load.sent, [])
        assert load.longest_wait_s > 0
        assert compare(load.sent, read_all(broker.bootstrap_servers, "orders", 2)) == (load.sent, [], [], True)


def test_failed_sends_are_kept() -> None:
    with Broker() as broker:
        broker.create_topic("orders", partitions=1, config={"max.message.bytes": 10})
        load = Load(broker.bootstrap_servers, "orders", 1)
        load.start()
        await_true(lambda: bool(load.failures), "a failed send")
        load.stop()
        assert load.acknowledged == 0
