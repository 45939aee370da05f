"""The settings of nodes that trust nobody but each other, the same for Ottla and for Apache Kafka.

| listener | protocol | who comes |
|---|---|---|
| PLAINTEXT | PLAINTEXT | a stranger, who may do nothing: User:ANONYMOUS has no grants. The harness waits for its answers |
| SECURED | SASL_SSL, SCRAM-SHA-512 | clients, and brokers as User:boss, a super user |
| CONTROLLER | SSL with client certificates | nodes as User:node-N, super users: the mapping rule takes the common name |
"""

import ssl
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.support.servers.certificates import Authority, Issued
from tests.support.servers.kafka_server import HANG_S, KafkaServer, free_ports, start_on_free_ports
from tests.support.servers.ottla_server import OTTLA, format_ottla

BOSS = "boss"
BOSS_PASSWORD = "boss-secret"
LOOPBACK = ["IP:127.0.0.1", "DNS:localhost"]
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"


class SecuredNodes:
    """One authority, a certificate for each node, and the settings."""

    def __init__(self, folder: Path, nodes: Sequence[int] = (1, 2, 3)) -> None:
        self.authority = Authority(folder / "trusted")
        self.certificates: dict[int, Issued] = {node: self.authority.issue(f"node-{node}", LOOPBACK) for node in nodes}
        self.ports = dict(zip(nodes, free_ports(len(nodes)), strict=True))

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    @property
    def format_options(self) -> list[str]:
        """The brokers' user, for the nodes that are formatted as controllers."""
        return ["--add-scram", f"SCRAM-SHA-512=[name={BOSS},password={BOSS_PASSWORD}]"]

    def properties(self, node: int, listeners: Sequence[str]) -> dict[str, object]:
        """The security of a node that has `listeners` otherwise."""
        is_broker = any(not each.startswith("CONTROLLER:") for each in listeners)
        own = [f"SECURED://127.0.0.1:{self.ports[node]}"] * is_broker
        return {
            "listeners": ",".join([*listeners, *own]),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL,CONTROLLER:SSL",
            "inter.broker.listener.name": "SECURED",
            **self.access,
            **self.secured_listener("SECURED", node),
            **self.controllers_listener("CONTROLLER", node),
        }

    @property
    def access(self) -> dict[str, object]:
        """Access control lists, and tokens."""
        names = [BOSS, *(f"node-{node}" for node in self.certificates)]
        return {
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": ";".join(f"User:{name}" for name in names),
            "delegation.token.secret.key": "a key for tests",
        }

    def secured_listener(self, listener: str, node: int) -> dict[str, object]:
        """A listener for clients and brokers."""
        prefix = f"listener.name.{listener.lower()}"
        return {
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            f"{prefix}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            f"{prefix}.scram-sha-512.sasl.jaas.config": f'{SCRAM_MODULE} username="{BOSS}" password="{BOSS_PASSWORD}";',
            **self._stores(prefix, node),
        }

    def controllers_listener(self, listener: str, node: int) -> dict[str, object]:
        """A listener for nodes alone."""
        prefix = f"listener.name.{listener.lower()}"
        return {
            f"{prefix}.ssl.client.auth": "required",
            f"{prefix}.ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
            **self._stores(prefix, node),
        }

    def _stores(self, prefix: str, node: int) -> dict[str, object]:
        return {
            f"{prefix}.ssl.keystore.type": "PEM",
            f"{prefix}.ssl.keystore.location": self.certificates[node].single_file(),
            f"{prefix}.ssl.truststore.type": "PEM",
            f"{prefix}.ssl.truststore.location": self.authority.certificate,
        }

    def client(self, user: str = BOSS, password: str = BOSS_PASSWORD, **more: Any) -> dict[str, Any]:
        """What a client of Ottla's needs to log in at SECURED."""
        return {
            "security_protocol": "SASL_SSL",
            "ssl_truststore_type": "PEM",
            "ssl_truststore_location": str(self.authority.certificate),
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": user,
            "sasl_plain_password": password,
            **more,
        }

    def command_config(self, path: Path, user: str = BOSS, password: str = BOSS_PASSWORD) -> Path:
        """A client.properties for Kafka's tools."""
        path.write_text(
            f"security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={self.authority.certificate}\n"
            f'sasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={SCRAM_MODULE} username="{user}" password="{password}";\n'
        )
        return path

    @cached_property
    def context(self) -> ssl.SSLContext:
        """A client that trusts the nodes and shows nothing."""
        return ssl.create_default_context(cafile=self.authority.certificate)

    @cached_property
    def node_context(self) -> ssl.SSLContext:
        """A client that shows the certificate of the first node."""
        return self.context_of(next(iter(self.certificates.values())))

    def context_of(self, shown: Issued) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority.certificate)
        context.load_cert_chain(shown.certificate, shown.key)
        return context


def start_secured(
    secured: SecuredNodes, settings: Mapping[str, object] | None = None, command: Sequence[str] = OTTLA
) -> KafkaServer:
    """An Ottla node that is broker and controller, with the certificate of node 1."""

    def make() -> KafkaServer:
        ports = free_ports(2)
        listeners = [f"PLAINTEXT://127.0.0.1:{ports[0]}", f"CONTROLLER://127.0.0.1:{ports[1]}"]
        properties = {
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports[1]}",
            **secured.properties(1, listeners),
            **(settings or {}),
        }
        return KafkaServer([*command, "server", "start"], properties, None, name="Ottla")

    return start_on_free_ports(make, lambda server: format_ottla(server.properties, options=secured.format_options), HANG_S)
