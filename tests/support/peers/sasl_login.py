"""Logins of a `RawClient`, message by message."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.peers.raw_client import ConnectionClosed, RawClient
from tests.support.servers.kafka_server import KafkaServer, ports_of

from ottla.link.scram import ScramClient
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

Dial = Callable[..., RawClient]


@contextmanager
def dialer(server: KafkaServer) -> Iterator[Dial]:
    """Makes clients of a listener, and closes them at the end."""
    ports = ports_of(server.properties)
    clients: list[RawClient] = []

    def dial(listener: str = "SASL") -> RawClient:
        clients.append(RawClient(ports[listener]))
        return clients[-1]

    try:
        yield dial
    finally:
        for client in clients:
            client.close()


def shake(client: RawClient, mechanism: str = "PLAIN", version: int = 1) -> Any:
    return client.request(SaslHandshakeRequest(mechanism=mechanism), version)


def authenticate(client: RawClient, message: bytes, version: int = 2) -> Any:
    return client.request(SaslAuthenticateRequest(auth_bytes=message), version)


def plain_login(client: RawClient, username: str, password: str) -> RawClient:
    assert shake(client).error_code == 0
    assert authenticate(client, f"\0{username}\0{password}".encode()).error_code == 0
    return client


def scram_login(client: RawClient, username: str, password: str, mechanism: str = "SCRAM-SHA-256", extensions: str = "") -> Any:
    """The last answer: that which ends the login, well or not."""
    assert shake(client, mechanism).error_code == 0
    scram = ScramClient(mechanism, username, password, "anonce", extensions)
    answer = authenticate(client, scram.first())
    if answer.error_code:
        return answer
    answer = authenticate(client, scram.final(answer.auth_bytes))
    if not answer.error_code:
        scram.verify(answer.auth_bytes)
    return answer


def bearer(claims: dict[str, Any], algorithm: str = "none", signature: str = "", authorization_id: str = "") -> bytes:
    """The message of OAUTHBEARER with a token that is not signed."""
    header, body = (urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({"alg": algorithm}, claims))
    identity = f"a={authorization_id}" if authorization_id else ""
    return f"n,{identity},\x01auth=Bearer {header}.{body}.{signature}\x01\x01".encode()


def is_closed(client: RawClient) -> bool:
    """Whether the server ends the connection without another byte."""
    try:
        client.receive_frame()
    except ConnectionClosed:
        return True
    return False


def is_usable(client: RawClient) -> bool:
    return bool(client.request(MetadataRequest(topics=[]), 12).brokers)
