"""What a leader sends to followers of throttled partitions: Apache Kafka and Ottla leave out the same records.

The follower is pretended (tests/support/peers/pretended_brokers.py): the test fetches in its name.
"""

from pathlib import Path

from tests.support.logs.batches import make_batch
from tests.support.peers.fetching import fetch_of, found, part
from tests.support.peers.pretended_brokers import PretendedBrokers, Seen
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true
from tests.support.servers.ottla_server import StartServer

from ottla import Admin
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

FOLLOWER = 81
LEADER = 1
TOPIC = "throttled"
COUNT = 3


def test_only_listed_partitions_of_followers_out_of_sync_wait(start_server: StartServer, tmp_path: Path) -> None:
    settings = {"broker.session.timeout.ms": 60_000, "replica.lag.time.max.ms": 10_000}
    with (
        start_server(settings, data_dir=tmp_path) as server,
        PretendedBrokers(server) as brokers,
        RawClient.to(server.bootstrap) as client,
        Admin(server.bootstrap) as admin,
    ):

        def fetched() -> list[tuple[bool, int, int]]:
            """Of each partition: whether records came, the error code and the high watermark."""
            parts = [part(index, current_leader_epoch=0) for index in range(2)]
            answered = client.request(fetch_of(TOPIC, *parts, replica_id=FOLLOWER, max_wait_ms=0), 12)
            return [(bool(data.records), data.error_code, data.high_watermark) for data in found(answered)]

        def set_rate(rate: int | None) -> None:
            admin.alter_configs({("broker", ""): {"leader.replication.throttled.rate": rate}}).raise_first()

        brokers.add(FOLLOWER)
        brokers.create(TOPIC, [[LEADER, FOLLOWER]] * 2, leader_replication_throttled_replicas=f"0:{LEADER},1:{FOLLOWER}")
        batch = bytes(make_batch(*(b"x" * 1000 for _ in range(COUNT))))
        for index in range(2):
            produced = [PartitionProduceData(index=index, records=batch)]
            request = ProduceRequest(
                acks=1, timeout_ms=10_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=produced)]
            )
            await_true(
                lambda request=request: client.request(request, 9).responses[0].partition_responses[0].error_code == 0,
                "the leader to lead",
            )
        set_rate(10)
        in_sync = [(True, 0, 0)] * 2
        assert [fetched(), fetched()] == [in_sync, in_sync], "a replica in sync gets all, though the rate is exceeded"

        brokers.await_seen(TOPIC, Seen(LEADER, 0, [LEADER], [], []))
        await_true(lambda: fetched()[1][2] == COUNT, "the leader to know of the smaller ISR")
        fetched()
        assert fetched() == [(False, 0, COUNT), (True, 0, COUNT)], "no error: only the records are left out"
        set_rate(None)
        await_true(lambda: fetched() == [(True, 0, COUNT)] * 2, "the end of the throttle")
