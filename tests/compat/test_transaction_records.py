"""Both servers write the same records to __transaction_state for the same requests, at every transaction version."""

import re
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true, make_topic
from tests.support.peers.transaction_requests import TransactionRequests
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer, default_properties, free_ports
from tests.support.servers.ottla_server import StartServer, format_ottla, start_ottla

from ottla.records.batch import iterate_batches
from ottla.records.reader import read_records
from ottla.wire.log_records import InternalLog, decode_coordinator_key, decode_coordinator_value

pytestmark = pytest.mark.slow

EPOCH_BUMP_SINCE = 2


def act(server: KafkaServer, transaction_version: int) -> None:
    """Commit and abort a transaction as a producer of that version does."""
    make_topic(server.bootstrap, "t", 2)
    raw = TransactionRequests(server.bootstrap)
    raw.find_coordinator("a")
    _, producer = raw.initialise("a")
    if transaction_version >= EPOCH_BUMP_SINCE:
        assert raw.produce("a", producer, 0, "t", b"x") == (0, 0)
        _, producer = raw.end("a", producer, True)
        assert raw.end("a", producer, False)[0] == 0
        await_true(lambda: raw.describe("a")[1] == "CompleteAbort", "the abort")
    else:
        assert raw.add("a", producer, "t", 0, 1) == [0, 0]
        assert raw.end("a", producer, True, version=4)[0] == 0
        assert raw.add("a", producer, "t", 1) == [0]
        assert raw.initialise("a")[0] == 0, "the open transaction is aborted, then the epoch is bumped"
    raw.close()


def written(data_dir: Path) -> list[str]:
    """The records with their versions, without times and ids, and with partitions sorted: Java keeps them in a set."""
    found = []
    for path in sorted(data_dir.glob("__transaction_state-*/*.log")):
        for record in (record for batch in iterate_batches(path.read_bytes()) for record in read_records(batch)):
            assert record.key is not None
            assert record.value is not None
            key = decode_coordinator_key(InternalLog.TRANSACTIONS, record.key)
            value = decode_coordinator_value(InternalLog.TRANSACTIONS, key, record.value)
            for topic in value.message.transaction_partitions or ():
                topic.partition_ids.sort()
            found.append(re.sub(r"producer_id=\d+", "producer_id=N", re.sub(r"\d{13}", "TIME", f"{key} {value}")))
    return found


@pytest.mark.parametrize("transaction_version", [0, 1, 2])
def test_records_are_those_of_apache(apache_kafka: ApacheKafka, tmp_path: Path, transaction_version: int) -> None:
    records = []
    servers: dict[str, StartServer] = {"ottla": start_ottla, "apache": apache_kafka.start_server}
    for name, start in servers.items():
        data_dir = tmp_path / name
        properties = default_properties(data_dir, *free_ports(2)) | {"transaction.state.log.num.partitions": 1}
        format_ottla(properties, options=["--feature", f"transaction.version={transaction_version}"])
        with start(properties, data_dir=data_dir) as server:
            act(server, transaction_version)
        records.append(written(data_dir))
    assert len(records[0]) >= 6
    assert records[0] == records[1]
