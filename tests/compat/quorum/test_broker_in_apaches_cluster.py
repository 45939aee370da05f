"""An Ottla broker in the cluster of a default-formatted Apache Kafka: it follows the quorum, registers, serves and leaves."""

import subprocess
from pathlib import Path

import pytest
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import CLUSTER_ID, ApacheKafka
from tests.support.servers.kafka_server import KafkaServer, free_ports, properties_text
from tests.support.servers.ottla_server import OTTLA, run_ottla

from ottla import Admin, Consumer, Producer
from ottla.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest

pytestmark = pytest.mark.slow

OTTLAS_ID = 2


def ottla_broker(apache: KafkaServer, folder: Path) -> KafkaServer:
    properties = {
        "process.roles": "broker",
        "node.id": OTTLAS_ID,
        "listeners": f"PLAINTEXT://127.0.0.1:{free_ports(1)[0]}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": apache.controller_bootstrap,
        "log.dirs": folder / "data",
    }
    config = folder / "format.properties"
    config.write_text(properties_text(properties))
    done = run_ottla("storage", "format", "-t", CLUSTER_ID, "-c", config)
    assert done.returncode == 0, done.stderr
    return KafkaServer([*OTTLA, "server", "start"], properties, folder / "data", name="Ottla")


def brokers(server: KafkaServer) -> dict[int, bool]:
    """The registered brokers, and whether they are fenced."""
    with RawClient.to(server.bootstrap) as client:
        found = client.request(DescribeClusterRequest(include_fenced_brokers=True), 2).brokers
        return {each.broker_id: each.is_fenced for each in found}


def test_broker_registers_serves_and_leaves(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with apache_kafka.start_server({"broker.session.timeout.ms": 3000}) as apache:
        ottla = ottla_broker(apache, tmp_path)
        try:
            ottla.start()
            await_true(lambda: brokers(apache) == {1: False, OTTLAS_ID: False}, "Apache's broker knows ours")
            assert brokers(ottla) == {1: False, OTTLAS_ID: False}
            assignment = [CreatableReplicaAssignment(partition_index=0, broker_ids=[OTTLAS_ID])]
            topic = CreatableTopic(name="ours", num_partitions=-1, replication_factor=-1, assignments=assignment)
            with RawClient.to(ottla.bootstrap) as client:
                created = client.request(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
            assert [(each.name, each.error_code) for each in created.topics] == [("ours", 0)]
            with Producer(apache.bootstrap) as producer:
                for number in range(100):
                    producer.send("ours", str(number).encode())
            with Consumer(ottla.bootstrap, auto_offset_reset="earliest") as consumer:
                consumer.assign([("ours", 0)])
                values: list[bytes | None] = []
                while len(values) < 100:
                    values += [record.value for record in consumer.poll(30)]
            assert values == [str(number).encode() for number in range(100)]
            with Admin(apache.bootstrap) as admin:
                admin.unregister_broker(OTTLAS_ID)
            await_true(lambda: "is registered again" in ottla.log_text(), "a broker that was unregistered comes back")
            await_true(lambda: brokers(apache) == {1: False, OTTLAS_ID: False}, "Apache's controller has unfenced it")
            with Producer(apache.bootstrap) as producer:
                assert producer.send("ours", b"after").result().offset == 100
            ottla.stop()
            await_true(lambda: brokers(apache)[OTTLAS_ID], "a broker that has left is fenced")
            assert "unexpected" not in ottla.log_text()
        except subprocess.TimeoutExpired:
            print(ottla.log_text())
            raise
        finally:
            ottla.kill()
