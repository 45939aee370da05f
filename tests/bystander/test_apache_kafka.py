"""The same attacks on Apache Kafka, to compare with (docs/decisions/0009): what its bystander waits, and what it answers.

Some of them end Apache Kafka (OutOfMemoryError), or keep it from answering for minutes: that is the figure then.
"""

import contextlib
import threading
import time

import pytest
from tests.support.hostile import attacks
from tests.support.hostile.attacking import keep_sending, make_producers
from tests.support.hostile.attacks import MEGABYTE
from tests.support.hostile.bystander import Bystander, BystanderFailed
from tests.support.hostile.hostile_client import HostileClient
from tests.support.hostile.hostile_node import linux_only
from tests.support.hostile.largest import largest_request
from tests.support.logs.batches import T0
from tests.support.peers.topics import make_topic
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer

from ottla.records.compression import Codec

pytestmark = [linux_only, pytest.mark.slow]
ATTACK_S = 5.0
LARGEST = (
    ("AddPartitionsToTxn", "wide"),
    ("CreateTopics", "wide"),
    ("DeleteTopics", "wide"),
    ("Produce", "wide"),
    ("Produce", "repeated"),
    ("Fetch", "deep"),
    ("OffsetCommit", "deep"),
)
"""The requests with the most elements. Not Metadata: Apache Kafka would create 60,000 topics."""


@pytest.mark.parametrize("connections", [1, 20])
def test_bystander_of_apache_kafka(apache_kafka: ApacheKafka, connections: int) -> None:
    with apache_kafka.start_server() as server:
        make_topic(server.bootstrap, "bystander")
        make_topic(server.bootstrap, "gzip", configs={"compression.type": "gzip", "compression.gzip.level": 9})
        make_topic(server.bootstrap, "compacted", configs={"cleanup.policy": "compact"})
        make_topic(server.bootstrap, "times")
        with HostileClient(server.port) as client:
            for _ in range(10):
                client.send_bytes(attacks.produce("times", attacks.one_record(bytes(120 * MEGABYTE))))
                client.receive(0, 9)
        requests = {
            "recompression to gzip 9": attacks.produce(
                "gzip", attacks.one_record(attacks.two_letters(31 * MEGABYTE), Codec.ZSTD, level=19)
            ),
            "bombs for a compacted topic": attacks.produce("compacted", attacks.one_record(bytes(30 * MEGABYTE))),
            "lookup by time": attacks.offsets_by_time("times", T0),
        }
        for name, frame in requests.items():
            assert attack_apache(server, name, frame, connections) > 0
        server.kill()  # it is still at work on what was sent, for minutes


@pytest.mark.parametrize("connections", [1, 20])
def test_bystander_of_apache_kafka_beside_the_largest_requests(apache_kafka: ApacheKafka, connections: int) -> None:
    with apache_kafka.start_server({"auto.create.topics.enable": "false"}) as server:
        make_topic(server.bootstrap, "bystander")
        for name, shape in LARGEST:
            frame = largest_request(name, shape)
            assert attack_apache(server, f"largest {name}, {shape}", frame, connections) > 0
        make_topic(server.bootstrap, "producers")
        make_producers(server.port, "producers", 20_000)
        frame = attacks.producers("producers", 1000)
        assert attack_apache(server, "1,000 times 20,000 producers", frame, connections) > 0
        server.kill()


def attack_apache(server: KafkaServer, name: str, frame: bytes, connections: int) -> int:
    """Send `frame` over and over, and print the bystander's longest wait; returns the number of its waits."""
    try:
        with Bystander(server.port, "bystander", server.pid) as before:
            time.sleep(1)  # what the bystander waits for without an attack
        with contextlib.ExitStack() as stack, Bystander(server.port, "bystander", server.pid) as bystander:
            until_s = time.monotonic() + ATTACK_S
            clients = [stack.enter_context(HostileClient(server.port)) for _ in range(connections)]
            threads = [threading.Thread(target=keep_sending, args=(client, [frame], until_s)) for client in clients]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    except (BystanderFailed, OSError) as failure:
        memory = ", because its memory is used up" if "OutOfMemoryError" in server.log_text() else ""
        server.kill()
        pytest.skip(f"Apache Kafka stopped serving{memory}: {connections} connections, {name}: {failure!r}")
    text = f"worst of {bystander.count} waits {bystander.worst_clock_s:.2f} s, before {before.worst_clock_s:.2f} s"
    print(f"\nApache Kafka, {connections} connections, {name}: {text}", flush=True)
    return bystander.count
