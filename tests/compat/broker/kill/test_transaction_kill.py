"""A broker killed after a transaction was decided and before its markers were written: a commit and an abort both hold.

The moment in between is too short to hit. So the broker is killed afterwards, and what it wrote in that moment is cut off: the
record that says that the transaction is complete, and the markers.
"""

from pathlib import Path

import pytest
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true, make_topic
from tests.support.peers.transaction_requests import TransactionRequests
from tests.support.servers.ottla_server import StartServer

from ottla.coordinator.contract import Producer
from ottla.records.batch import iterate_batches
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

SETTINGS = {"transaction.state.log.num.partitions": 1, "offsets.topic.num.partitions": 1}
READ_COMMITTED, LATEST = 1, -1


def cut_last_batch(folder: Path, is_control: bool) -> None:
    """Take the last batch off a partition's log, as if it had never been written."""
    path = max(folder.glob("*.log"))
    batches = list(iterate_batches(path.read_bytes()))
    assert batches[-1].is_control == is_control
    with path.open("r+b") as file:
        file.truncate(batches[-1].position)


def last_stable_offset(bootstrap: str, topic: str) -> int:
    part = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    topics = [ListOffsetsTopic(name=topic, partitions=[part])]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=READ_COMMITTED, topics=topics)
    with RawClient.to(bootstrap) as client:
        return int(client.request(request, 7).topics[0].partitions[0].offset)


@pytest.mark.parametrize("commit", [True, False])
def test_markers_are_written_after_the_restart(
    server_kind: str, start_server: StartServer, tmp_path: Path, commit: bool
) -> None:
    done = "CompleteCommit" if commit else "CompleteAbort"
    with start_server(SETTINGS, data_dir=tmp_path) as server:
        make_topic(server.bootstrap, "t")
        raw = TransactionRequests(server.bootstrap)
        raw.find_coordinator("a")
        _, producer = raw.initialise("a")
        assert raw.produce("a", producer, 0, "t", b"one", b"two") == (0, 0)
        assert raw.end("a", producer, commit)[0] == 0
        await_true(lambda: raw.describe("a")[1] == done, "the end of the transaction")
        server.kill()
    cut_last_batch(tmp_path / "__transaction_state-0", is_control=False)
    cut_last_batch(tmp_path / "t-0", is_control=True)
    with start_server(SETTINGS, data_dir=tmp_path) as server:
        raw = TransactionRequests(server.bootstrap)
        raw.find_coordinator("a")
        await_true(lambda: raw.describe("a")[1] == done, "the end of the transaction, after the restart")
        stable = last_stable_offset(server.bootstrap, "t")
        if server_kind == "apache" and stable < 3:
            pytest.xfail("right after a start, Apache's coordinator sometimes takes for done what partitions never heard of")
        assert stable == 3, "two records and their end marker"
        later = Producer(producer.id, producer.epoch + 1)
        assert raw.end("a", producer, commit) == (0, later), "a retry gets the same response"
        assert raw.produce("a", later, 0, "t", b"three") == (0, 3)
        raw.close()
