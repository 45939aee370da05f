"""offsets.topic.compression.codec compresses all batches of __consumer_offsets, transactional ones too, except markers."""

from tests.support.peers.fetching import fetch_of, part
from tests.support.peers.group_requests import GroupRequests, until
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import make_topic
from tests.support.peers.transaction_requests import NOT_NOW, TransactionRequests
from tests.support.servers.ottla_server import StartServer

from ottla.ids import OFFSETS_TOPIC
from ottla.records.batch import iterate_batches
from ottla.records.compression import Codec
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

METADATA = "m" * 1000


def test_commits_are_compressed(start_server: StartServer) -> None:
    settings = {"offsets.topic.compression.codec": int(Codec.GZIP), "offsets.topic.num.partitions": 1}
    with start_server(settings) as server, GroupRequests(server.bootstrap) as groups, RawClient.to(server.bootstrap) as raw:
        make_topic(server.bootstrap, "t")
        assert groups.commit("plain", {("t", 0): 1}, METADATA) == [0]
        transactions = TransactionRequests(server.bootstrap)
        transactions.find_coordinator("x")
        code, producer = transactions.initialise("x")
        assert code == 0
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=2, committed_metadata=METADATA)
        commit = TxnOffsetCommitRequest(
            transactional_id="x", group_id="in a transaction", producer_id=producer.id, producer_epoch=producer.epoch
        )
        commit.topics = [TxnOffsetCommitRequestTopic(name="t", partitions=[partition])]
        codes: list[int] = []

        def is_committed() -> bool:
            codes.append(raw.request(commit, 5).topics[0].partitions[0].error_code)
            return codes[-1] not in NOT_NOW

        until(is_committed, "an answer")
        assert codes[-1] == 0
        transactions.end("x", producer, True)
        until(lambda: groups.fetch("in a transaction") == {"in a transaction": {("t", 0): 2}}, "the end of the transaction")
        transactions.close()
        answer = raw.request(fetch_of(OFFSETS_TOPIC, part(0)), 12).responses[0].partitions[0]
        batches = list(iterate_batches(answer.records))
        assert {batch.codec for batch in batches if not batch.is_control} == {Codec.GZIP}
        assert [batch.size < len(METADATA) for batch in batches if batch.is_transactional] == [True, True]
