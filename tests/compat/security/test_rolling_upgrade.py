"""docs/security.md, "From an open cluster to a secured one": its steps on a running cluster under load. No record is lost."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.peers.load import Load
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import CLUSTER_ID
from tests.support.servers.kafka_server import KafkaServer, free_ports, properties_text
from tests.support.servers.ottla_server import OTTLA, run_ottla
from tests.support.servers.secured_nodes import BOSS, BOSS_PASSWORD, LOOPBACK, SecuredNodes

from ottla import Admin, Producer
from ottla.client.admin.acl_types import AclBinding
from ottla.client.admin.scram import ScramMechanism, ScramUpsertion
from ottla.errors import TopicAuthorizationError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid, uuid_text
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest

NODES = (1, 2, 3)
ALICE = ("alice", "alice-secret")
WAIT_S = 60
SETTINGS: dict[str, object] = {
    "offsets.topic.num.partitions": 3,
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "broker.session.timeout.ms": 9000,
    "broker.heartbeat.interval.ms": 500,
}


class Upgraded:
    """Three nodes, each broker and controller, whose settings change while the cluster runs."""

    def __init__(self, folder: Path, quorum: str) -> None:
        self.folder, self.quorum = folder, quorum
        self.secured = SecuredNodes(folder / "secrets", NODES)
        ports = iter(free_ports(9))
        self.open, self.controllers, self.secured_controllers = ({node: next(ports) for node in NODES} for _ in range(3))
        self.directories = {node: uuid_text(Uuid(b"directory-of-%d--" % node)) for node in NODES}
        self.running: dict[int, KafkaServer] = {}
        # What the steps change.
        self.has_open = True
        self.has_secured = False
        self.between_brokers = "PLAINTEXT"
        self.controller_names = ["CONTROLLER"]
        self.access: dict[str, object] = {}

    def bootstrap(self, ports: dict[int, int]) -> str:
        return ",".join(f"127.0.0.1:{ports[node]}" for node in NODES)

    def properties(self, node: int) -> dict[str, object]:
        places = {"CONTROLLER": self.controllers, "CONTROLLER_SSL": self.secured_controllers}
        listeners = {"PLAINTEXT": self.open} if self.has_open else {}
        listeners |= {"SECURED": self.secured.ports} if self.has_secured else {}
        listeners |= {name: places[name] for name in self.controller_names}
        first = places[self.controller_names[0]]
        voters = {"controller.quorum.voters": ",".join(f"{each}@127.0.0.1:{first[each]}" for each in NODES)}
        if self.quorum == "dynamic":
            voters = {"controller.quorum.bootstrap.servers": self.bootstrap(first)}
        security: dict[str, object] = {}
        if self.has_secured:
            security |= self.secured.secured_listener("SECURED", node)
        if "CONTROLLER_SSL" in self.controller_names:
            security |= self.secured.controllers_listener("CONTROLLER_SSL", node)
        protocols = "PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL,CONTROLLER:PLAINTEXT,CONTROLLER_SSL:SSL"
        return {
            "process.roles": "broker,controller",
            "node.id": node,
            "listeners": ",".join(f"{name}://127.0.0.1:{ports[node]}" for name, ports in listeners.items()),
            "listener.security.protocol.map": protocols,
            "inter.broker.listener.name": self.between_brokers,
            "controller.listener.names": ",".join(self.controller_names),
            # The harness would add the one that is left out.
            "controller.quorum.bootstrap.servers": "",
            **voters,
            "log.dirs": self.folder / f"node-{node}",
            **SETTINGS,
            **security,
            **self.access,
        }

    def format(self) -> None:
        options = []
        if self.quorum == "dynamic":
            initial = [f"{node}@127.0.0.1:{self.controllers[node]}:{self.directories[node]}" for node in NODES]
            options = ["--initial-controllers", ",".join(initial)]
        for node in NODES:
            config = self.folder / f"server-{node}.properties"
            config.write_text(properties_text(self.properties(node)))
            done = run_ottla("storage", "format", "-t", CLUSTER_ID, "-c", config, *options)
            assert done.returncode == 0, done.stderr

    def start(self, *nodes: int) -> None:
        for node in nodes:
            server = KafkaServer(
                [*OTTLA, "server", "start"],
                self.properties(node),
                self.folder / f"node-{node}",
                name=f"Ottla (node {node})",
                tls=None if self.has_open else self.secured.context,
            )
            self.running[node] = server
            server.launch()
        for node in nodes:
            self.running[node].await_ready()

    def roll(self, what: str) -> None:
        """Restart one node after the other with the settings of now; each time wait until nothing is wrong."""
        for node in NODES:
            self.running.pop(node).stop()
            self.start(node)
            await_true(self.is_well, f"{what}: nothing is wrong after node {node} has been restarted")

    def is_well(self) -> bool:
        """What the page tells people to look at between two restarts."""
        if self.access:
            config = self.secured.command_config(self.folder / "boss.properties")
            done = run_ottla("cluster", "describe", "--check", "-b", self.secured.bootstrap, "--command-config", config)
        else:
            done = run_ottla("cluster", "describe", "--check", "-b", self.bootstrap(self.open))
        return done.returncode == 0

    def stop(self) -> None:
        for server in self.running.values():
            server.kill()


@pytest.mark.slow
@pytest.mark.parametrize("quorum", ["dynamic", "static"])
def test_open_cluster_becomes_a_secured_one_under_load(tmp_path: Path, quorum: str) -> None:
    cluster = Upgraded(tmp_path, quorum)
    cluster.format()
    with ExitStack() as stack:
        stack.callback(cluster.stop)
        cluster.start(*NODES)
        face = stack.enter_context(Faces("sync"))
        with Admin(cluster.bootstrap(cluster.open)) as admin:
            assert not admin.create_topics({"old": 3, "new": 3}).errors
            users = [(BOSS, BOSS_PASSWORD), ALICE]
            added = [ScramUpsertion(name, ScramMechanism.SCRAM_SHA_512, password) for name, password in users]
            assert not admin.alter_user_scram_credentials(added).errors
        old = Load(face, cluster.bootstrap(cluster.open), "old", 3, group="old-group")
        with ExitStack() as before:
            before.enter_context(old)
            old.await_more(100)
            # 1. A second listener for clients.
            cluster.has_secured = True
            cluster.roll("a second listener")
            alice = cluster.secured.client(*ALICE)
            new = Load(face, cluster.secured.bootstrap, "new", 3, producer=alice, consumer=alice, group="new-group")
            with new:
                new.await_more(100)
                # 2. The brokers among themselves.
                cluster.between_brokers = "SECURED"
                cluster.roll("between brokers")
                # 3. The controllers: a second listener, then as the first one, then alone.
                cluster.controller_names = ["CONTROLLER", "CONTROLLER_SSL"]
                cluster.roll("a second listener of the controllers")
                cluster.controller_names = ["CONTROLLER_SSL", "CONTROLLER"]
                cluster.roll("controllers by TLS first")
                cluster.controller_names = ["CONTROLLER_SSL"]
                cluster.roll("controllers by TLS alone")
                # 4. Access control; the open clients have moved by now.
                cluster.access = {**cluster.secured.access, "allow.everyone.if.no.acl.found": "true"}
                cluster.roll("access control that allows everybody")
                new.await_more(100)
                old.await_more(100)
                before.close()  # checks that nothing of theirs is lost
                old.producer.close()
                old.consumer.close()
                with Admin(cluster.secured.bootstrap, **cluster.secured.client()) as admin:
                    rules = [AclBinding("TOPIC", "new", "User:alice", each) for each in ("READ", "WRITE")]
                    rules.append(AclBinding("GROUP", "new-group", "User:alice", "READ"))
                    assert not admin.create_acls(rules).errors
                cluster.access = cluster.secured.access
                cluster.roll("access control")
                # 5. The open door.
                cluster.has_open = False
                cluster.roll("no open listener")
                new.await_more(100)
                check_secured(cluster)
        assert len(old.found) == len(old.deliveries) > 200
        assert len(new.found) == len(new.deliveries) > 300


def check_secured(cluster: Upgraded) -> None:
    """Nothing open is left, and nobody may do what is not allowed."""
    for ports in (cluster.open, cluster.controllers):
        for port in ports.values():
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
    stranger = cluster.secured.authority.issue("stranger", LOOPBACK)
    with RawClient(cluster.secured_controllers[1], tls=cluster.secured.context_of(stranger)) as client:
        answer = client.request(BrokerHeartbeatRequest(broker_id=1, want_shut_down=True), 1)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with (
        Producer(cluster.secured.bootstrap, **cluster.secured.client(*ALICE)) as producer,
        pytest.raises(TopicAuthorizationError),
    ):
        producer.send("old", b"no").result(WAIT_S)
