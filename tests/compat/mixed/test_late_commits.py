"""A follower hangs and is still in sync: the coordinators of both kinds fail late requests, serve on, and lose nothing."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.peers.leaders import await_in_sync, await_leader, lead, make_replicated
from tests.support.peers.load import QUICK
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla import Admin, Consumer, Producer
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LEADER, FOLLOWER = 1, 2
LATE = ErrorCode.COORDINATOR_NOT_AVAILABLE
SETTINGS: dict[str, object] = {
    "offsets.topic.replication.factor": 2,
    "offsets.topic.num.partitions": 1,
    "offsets.commit.timeout.ms": 2000,
    "transaction.state.log.replication.factor": 2,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.min.isr": 1,
    "request.timeout.ms": 4000,  # how long Ottla's transaction coordinator waits; Apache's takes the transaction's timeout
    "group.initial.rebalance.delay.ms": 0,
    # The follower must stay in the ISR.
    "replica.lag.time.max.ms": 300_000,
    "broker.session.timeout.ms": 300_000,
}


def commit(offset: int) -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
    return OffsetCommitRequest(group_id="simple", topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)])


def commit_code(response: Any) -> int:
    code: int = response.topics[0].partitions[0].error_code
    return code


class Coordinator:
    """Requests to the leader, each kind on a connection of its own: a server answers a connection's requests in order."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._clients: dict[str, RawClient] = {}

    def client(self, name: str) -> RawClient:
        if name not in self._clients:
            self._clients[name] = RawClient(self._port)
        return self._clients[name]

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def join(self) -> str:
        """The id of the one member of group `members`, in generation 1."""
        request = JoinGroupRequest(
            group_id="members",
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="p", metadata=b"")],
        )
        request.member_id = self.client("member").request(request, 5).member_id
        joined = self.client("member").request(request, 5)
        assert (joined.error_code, joined.generation_id) == (0, 1)
        member_id: str = joined.member_id
        assigned = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine")]
        synced = self.client("member").request(
            SyncGroupRequest(group_id="members", generation_id=1, member_id=member_id, assignments=assigned), 3
        )
        assert synced.error_code == 0
        return member_id

    def begin_transaction(self) -> tuple[int, int]:
        """A producer of transaction version 1 with an open transaction."""
        client = self.client("transaction")
        begun = client.request(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=4000), 4)
        assert begun.error_code == 0
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=begun.producer_id,
            v3_and_below_producer_epoch=begun.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
        )
        added = client.request(request, 3)
        assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
        return begun.producer_id, begun.producer_epoch

    def committed(self) -> tuple[int, int]:
        """The error code and the committed offset of group `simple`."""
        request = OffsetFetchRequest(group_id="simple", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])])
        found = self.client("reader").request(request, 7)
        return found.error_code, found.topics[0].partitions[0].committed_offset if found.topics else -1


@pytest.mark.parametrize("maker", ["ottla", "apache"])
def test_coordinator_serves_on_while_a_follower_hangs(maker: str, apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    nodes = {LEADER: Part(maker, "broker,controller"), FOLLOWER: Part("ottla", "broker")}
    with MixedCluster(apache_kafka, tmp_path, nodes, SETTINGS) as cluster:
        cluster.start(LEADER)
        cluster.start(FOLLOWER)
        with Admin(cluster.bootstrap, **QUICK) as admin:
            make_replicated(admin, "t", {0: [LEADER, FOLLOWER]})
            with Consumer(cluster.bootstrap, group_id="first", **QUICK) as consumer:
                consumer.commit({TopicPartition("t", 0): 1})
            with Producer(cluster.bootstrap, transactional_id="first", **QUICK) as producer:
                producer.init_transactions()
            for topic in ("__consumer_offsets", "__transaction_state"):
                await_in_sync(admin, topic)
                lead(admin, topic, 0, LEADER)
                await_leader(admin, topic, 0, LEADER)
        coordinator = Coordinator(cluster.broker_ports[LEADER])
        simple = coordinator.client("simple")
        await_true(lambda: commit_code(simple.request(commit(1), 7)) == 0, "the coordinator to be loaded")
        member_id = coordinator.join()
        producer_id, epoch = coordinator.begin_transaction()
        beat = HeartbeatRequest(group_id="members", generation_id=1, member_id=member_id)
        end = EndTxnRequest(transactional_id="tx", producer_id=producer_id, producer_epoch=epoch, committed=True)
        member, transaction = coordinator.client("member"), coordinator.client("transaction")
        cluster.pause(FOLLOWER)
        try:
            simple.send(commit(2), 7)
            transaction.send(end, 4)
            assert commit_code(simple.receive(8, 7)) == LATE
            assert member.request(beat, 4).error_code == LATE, "it waits behind the commit, for as long as that did"
            assert commit_code(simple.request(commit(3), 7)) == LATE, "the coordinator still decides"
            code, offset = coordinator.committed()
            # Apache Kafka reads what is committed; Ottla has one state, and what that says could still be lost.
            assert (code, offset) == ((0, 1) if maker == "apache" else (LATE, -1))
            assert transaction.receive(26, 4).error_code == LATE
        finally:
            cluster.resume(FOLLOWER)
        await_true(lambda: coordinator.committed() == (0, 3), "the commits that failed to take effect")
        await_true(lambda: member.request(beat, 4).error_code == 0, "the member, in its generation")
        await_true(lambda: transaction.request(end, 4).error_code == 0, "the transaction to be committed")
        coordinator.close()
        log = cluster.running[LEADER].log_text()
        assert "loaded again" not in log
