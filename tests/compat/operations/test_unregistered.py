"""A broker that is unregistered while it runs comes back by itself."""

from tests.compat.operations.conftest import RunOttla
from tests.support.peers.leaders import make_replicated
from tests.support.peers.topics import await_true

from ottla import Admin
from ottla.testing import Cluster


def test_unregistered_live_broker_registers_again_and_is_in_sync(
    cluster: Cluster, ottla: RunOttla, admin: Admin, topic: str
) -> None:
    only = f"{topic}-only"
    make_replicated(admin, topic, {0: [3, 1, 2]})
    make_replicated(admin, only, {0: [3]})
    for name in (topic, only):
        cluster.produce(name, "before")
    refused = ottla("cluster", "unregister", "3", "--yes")
    assert refused.rc == 1
    assert "broker 3 at" in refused.err
    assert "is alive" in refused.err
    admin.unregister_broker(3)

    def is_back() -> bool:
        found = admin.describe_topics([topic, only])
        in_sync = [sorted(found[name].partitions[0].isr) for name in (topic, only)]
        return 3 in admin.describe_cluster().nodes and in_sync == [[1, 2, 3], [3]]

    await_true(is_back, "broker 3 to be registered and in sync again")
    for name in (topic, only):
        cluster.produce(name, "after")
        assert [each.value for each in cluster.records(name)] == [b"before", b"after"]
