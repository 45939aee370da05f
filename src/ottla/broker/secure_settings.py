"""Turns the settings of a local node into those of a secured one, for `ottla up --secure` and brokers in tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

ADMIN: Final = "admin"
NODE_NAME: Final = "ottla-node"
"""The subject (CN) of the nodes' certificates: controllers trust it."""
AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""SASL mechanism → the login module that JAAS texts name."""


class NodeSecurity(NamedTuple):
    """How a node's listener for clients is secured, and with what."""

    password: str
    """Of the user `admin`, who may do everything; nodes log in to each other as this user."""
    mechanism: str | None = "SCRAM-SHA-512"
    """The SASL mechanism; None: clients show certificates."""
    users: Mapping[str, str] = {}
    """Further users and their passwords. Those of SCRAM are in the metadata log, not here."""
    ca_file: str | None = None
    """The authority of all certificates; None: no TLS."""
    node_file: str | None = None
    """The node's key and certificate, PEM."""
    has_acls: bool = True
    """Whether access needs to be granted; if not, everybody who gets in may do everything."""

    def __repr__(self) -> str:
        return f"NodeSecurity({self.mechanism}, ca_file={self.ca_file!r}, node_file={self.node_file!r})"

    @property
    def protocol(self) -> str:
        """The security protocol of the listener for clients, which is its name too."""
        tls, sasl = self.ca_file is not None, self.mechanism is not None
        return "SASL_SSL" if tls and sasl else "SSL" if tls else "SASL_PLAINTEXT" if sasl else "PLAINTEXT"


def secured(settings: Mapping[str, str], security: NodeSecurity) -> dict[str, str]:
    """`settings`, of a node whose listener for clients is called PLAINTEXT, secured.

    With TLS, the controllers' listener asks for the certificate of a node.
    """
    protocol = security.protocol
    controllers = "SSL" if security.ca_file is not None else "PLAINTEXT"
    changed = {
        **settings,
        "listeners": settings["listeners"].replace("PLAINTEXT://", f"{protocol}://"),
        "listener.security.protocol.map": f"{protocol}:{protocol},CONTROLLER:{controllers}",
        "security.inter.broker.protocol": protocol,
    }
    if security.ca_file is not None and security.node_file is not None:
        changed |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": security.node_file,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": security.ca_file,
            "listener.name.controller.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",  # CN=alice is User:alice
        }
        if security.mechanism is None:
            changed["listener.name.ssl.ssl.client.auth"] = "required"
    if security.mechanism is not None:
        jaas = f"listener.name.{protocol.lower()}.{security.mechanism.lower()}.sasl.jaas.config"
        users = {ADMIN: security.password, **security.users} if security.mechanism == "PLAIN" else {}
        changed |= {
            "sasl.enabled.mechanisms": security.mechanism,
            "sasl.mechanism.inter.broker.protocol": security.mechanism,
            jaas: jaas_text(security.mechanism, ADMIN, security.password, users),
        }
    if security.has_acls:
        changed |= {"authorizer.class.name": AUTHORIZER, "super.users": f"User:{ADMIN};User:{NODE_NAME}"}
    return changed


def jaas_text(mechanism: str, user: str, password: str, accepted: Mapping[str, str] = {}) -> str:
    """The `sasl.jaas.config` of a user; of a listener with PLAIN, `accepted` are the users who may log in."""
    options = {"username": user, "password": password, **{f"user_{name}": word for name, word in accepted.items()}}
    return f"{MODULES[mechanism]} required {' '.join(f'{name}={_quoted(text)}' for name, text in options.items())};"


def client_properties(security: NodeSecurity, user: str = ADMIN, password: str | None = None) -> dict[str, str]:
    """The settings of a client, by Kafka's names."""
    found = {"security.protocol": security.protocol}
    if security.mechanism is not None:
        text = jaas_text(security.mechanism, user, security.password if password is None else password)
        found |= {"sasl.mechanism": security.mechanism, "sasl.jaas.config": text}
    if security.ca_file is not None:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": security.ca_file}
    return found


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
