"""The same attacks on Apache Kafka, for the figures in docs/decisions/0080: what its bystander waits, and what it answers."""

import contextlib
import threading
import time

import pytest
from tests.support.hostile import attacks
from tests.support.hostile.attacking import keep_sending
from tests.support.hostile.attacks import MEGABYTE
from tests.support.hostile.bystander import Bystander
from tests.support.hostile.hostile_client import HostileClient
from tests.support.hostile.hostile_node import linux_only
from tests.support.logs.batches import T0
from tests.support.peers.topics import make_topic
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.records.compression import Codec

pytestmark = [linux_only, pytest.mark.slow]
ATTACK_S = 5.0


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
            with contextlib.ExitStack() as stack, Bystander(server.port, "bystander", server.pid) as bystander:
                until_s = time.monotonic() + ATTACK_S
                clients = [stack.enter_context(HostileClient(server.port)) for _ in range(connections)]
                threads = [threading.Thread(target=keep_sending, args=(client, [frame], until_s)) for client in clients]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            print(
                f"\nApache Kafka, {connections} connections, {name}: worst of {bystander.count} {bystander.worst_clock_s:.2f} s"
            )
            assert bystander.count > 0
        server.kill()  # it is still at work on what was sent, for minutes
