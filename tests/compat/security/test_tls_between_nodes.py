"""Nodes whose links to each other are TLS with client certificates: controllers, replicas, forwarded requests, markers."""

import subprocess
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.certificates import PASSWORD, Authority, Issued
from tests.support.servers.kafka_server import free_ports, properties_text
from tests.support.servers.ottla_cluster import NODES, OttlaCluster
from tests.support.servers.ottla_server import OTTLA, run_ottla, start_ottla

from ottla import Admin, Consumer, Producer

WAIT_S = 60


def tls_of(listener: str, authority: Authority, shown: Issued) -> dict[str, object]:
    """Both sides of the links to a listener: it demands a certificate, and who connects shows the same."""
    own = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": shown.single_file(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.certificate,
        "ssl.client.auth": "required",
    }
    return {f"listener.name.{listener.lower()}.{name}": value for name, value in own.items()}


def login_of(listener: str) -> dict[str, object]:
    """Both sides of logins with PLAIN."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    text = f'{module} required username="node" password="{PASSWORD}" user_node="{PASSWORD}";'
    return {
        f"listener.name.{listener.lower()}.sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{listener.lower()}.plain.sasl.jaas.config": text,
    }


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_three_nodes_replicate_fail_over_and_end_transactions(tmp_path: Path, protocol: str) -> None:
    authority = Authority(tmp_path / "ca")
    shown = authority.issue("node", ["IP:127.0.0.1"])
    settings: dict[str, object] = {
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,INTERNAL:{protocol},CONTROLLER:{protocol}",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        **login_of("internal"),
        **login_of("controller"),
        "default.replication.factor": 3,
        "min.insync.replicas": 2,
        "transaction.state.log.replication.factor": 3,
        "transaction.state.log.min.isr": 2,
        **tls_of("internal", authority, shown),
        **tls_of("controller", authority, shown),
    }
    with OttlaCluster(tmp_path, settings, brokers_listener="INTERNAL") as cluster:
        with Admin(cluster.bootstrap) as admin:
            assert not admin.create_topics({"t": 3}).errors
        with Producer(cluster.bootstrap, transactional_id="x", acks="all") as producer:
            producer.init_transactions()
            with producer.transaction():
                for partition in range(3):
                    producer.send("t", b"committed", partition=partition)
            cluster.kill(cluster.active_controller())
            with producer.transaction():
                for partition in range(3):
                    producer.send("t", b"after", partition=partition)
        with Consumer(cluster.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
            consumer.assign([("t", partition) for partition in range(3)])
            found: list[bytes | None] = []
            while len(found) < 6:
                records = consumer.poll(WAIT_S)
                assert records, f"only {found}"
                found += [record.value for record in records]
        assert sorted(found) == sorted([b"committed", b"after"] * 3)
        assert all("WARNING" not in line or "TLS" not in line for node in NODES for line in cluster.log_text(node).splitlines())


@pytest.mark.slow
def test_nodes_log_in_with_scram_before_there_is_metadata(tmp_path: Path) -> None:
    """Controllers vote before they can read a log with credentials: at the first start, and after all were stopped."""
    text = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="node" password="{PASSWORD}";'
    settings: dict[str, object] = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.mechanism.controller.protocol": "SCRAM-SHA-512",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:node;User:ANONYMOUS",
        "default.replication.factor": 3,
    }
    for listener in ("internal", "controller"):
        settings[f"listener.name.{listener}.sasl.enabled.mechanisms"] = "SCRAM-SHA-512"
        settings[f"listener.name.{listener}.scram-sha-512.sasl.jaas.config"] = text
    user = ("--add-scram", f"SCRAM-SHA-512=[name=node,password={PASSWORD}]")
    with OttlaCluster(tmp_path, settings, brokers_listener="INTERNAL", format_options=user) as cluster:
        with Producer(cluster.bootstrap, acks="all") as producer:
            producer.send("t", b"before").result()
        for node in NODES:
            cluster.kill(node)
        cluster.start(*NODES)
        with Producer(cluster.bootstrap, acks="all") as producer:
            producer.send("t", b"after").result()
        with Consumer(cluster.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([("t", 0)])
            found: list[bytes | None] = []
            while len(found) < 2:
                records = consumer.poll(WAIT_S)
                assert records, f"only {found}"
                found += [record.value for record in records]
        assert found == [b"before", b"after"]
        assert not any("the login of user node" in line for node in NODES for line in cluster.log_text(node).splitlines())


@pytest.mark.slow
def test_a_broker_says_that_its_controllers_certificate_is_for_another_host(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    right, wrong = authority.issue("node", ["IP:127.0.0.1"]), authority.issue("other.example", ["DNS:other.example"])
    protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL"
    with start_ottla({"listener.security.protocol.map": protocols, **tls_of("controller", authority, wrong)}) as controller:
        config = tmp_path / "broker.properties"
        properties: dict[str, object] = {
            "process.roles": "broker",
            "node.id": 2,
            "listeners": f"PLAINTEXT://127.0.0.1:{free_ports(1)[0]}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": controller.controller_bootstrap,
            "listener.security.protocol.map": protocols,
            "log.dirs": tmp_path / "data",
            **tls_of("controller", authority, right),
        }
        config.write_text(properties_text(properties))
        cluster_id = run_ottla("cluster", "id", "-b", controller.bootstrap).stdout.split()[-1]
        assert run_ottla("storage", "format", "-t", cluster_id, "-c", config).returncode == 0
        log = tmp_path / "log"
        with open(log, "wb") as output:
            broker = subprocess.Popen(
                [*OTTLA, "server", "start", str(config)], stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        try:
            sentence = f"the certificate of {controller.controller_bootstrap} is not for 127.0.0.1: it is for other.example"
            await_true(lambda: sentence in log.read_text(), "the broker says why it cannot reach its controller")
            assert broker.poll() is None  # it goes on trying: the certificate may be mended
        finally:
            broker.kill()
            broker.wait()
