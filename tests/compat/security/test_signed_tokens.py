"""OAUTHBEARER with signed tokens: the key set in a file, for both servers, and over HTTPS; what is accepted and what is not."""

from __future__ import annotations

import json
import ssl
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from tests.support.peers.raw_client import RawClient
from tests.support.peers.sasl_login import authenticate, is_closed, is_usable, shake
from tests.support.servers.apache_kafka import QUICK_JVM_FLAGS
from tests.support.servers.kafka_server import HANG_S, KafkaServer, free_ports, ports_of
from tests.support.servers.ottla_server import StartServer, start_ottla
from tests.support.servers.tls_server import make_certificates

from ottla.errors.codes import ErrorCode

LISTENERS = {"PLAINTEXT": "PLAINTEXT", "SASL": "SASL_PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


def text_of(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int, size: int) -> str:
    return text_of(value.to_bytes(size, "big"))


class Issuer:
    """Signs tokens with an RSA key and with one of an elliptic curve; `stranger` has keys that nobody knows."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(65537, 2048)
        self.curve = ec.generate_private_key(ec.SECP256R1())

    def key_set(self) -> str:
        """A JWKS document."""
        modulus, point = self.rsa.public_key().public_numbers(), self.curve.public_key().public_numbers()
        signing = {"kty": "RSA", "kid": "r", "use": "sig", "n": number(modulus.n, 256), "e": number(modulus.e, 3)}
        curve = {"kty": "EC", "kid": "e", "use": "sig", "crv": "P-256", "x": number(point.x, 32), "y": number(point.y, 32)}
        return json.dumps({"keys": [signing, curve]})

    def token(self, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """Claims that are None are left out."""
        now_s = int(time.time())
        body = {"sub": "alice", "iat": now_s - 5, "exp": now_s + 300, "iss": "https://issuer", "aud": "kafka", **claims}
        head = {"alg": "RS256", "kid": "r", **(header or {})}
        parts = ({key: value for key, value in each.items() if value is not None} for each in (head, body))
        signed = ".".join(text_of(json.dumps(each).encode()) for each in parts)
        return f"{signed}.{text_of(self._signature(head['alg'], signed.encode()))}"

    def _signature(self, algorithm: str, signed: bytes) -> bytes:
        if algorithm == "ES256":
            r, s = decode_dss_signature(self.curve.sign(signed, ec.ECDSA(SHA256())))
            return r.to_bytes(32, "big") + s.to_bytes(32, "big")
        return b"" if algorithm == "none" else self.rsa.sign(signed, padding.PKCS1v15(), SHA256())


ISSUER, STRANGER = Issuer(), Issuer()


class Checking(NamedTuple):
    server: KafkaServer

    def dial(self) -> RawClient:
        client = RawClient(ports_of(self.server.properties)["SASL"])
        assert shake(client, "OAUTHBEARER").error_code == 0
        return client


def properties(url: str, **more: object) -> dict[str, object]:
    ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
    prefix = "listener.name.sasl.oauthbearer"
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.sasl.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}.sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
        f"{prefix}.sasl.server.callback.handler.class": HANDLER,
        f"{prefix}.sasl.oauthbearer.jwks.endpoint.url": url,
        f"{prefix}.sasl.oauthbearer.expected.audience": "kafka,other",
        f"{prefix}.sasl.oauthbearer.expected.issuer": "https://issuer",
        **more,
    }


@pytest.fixture(scope="module")
def checking(start_server: StartServer, server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checking]:
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    file.write_text(ISSUER.key_set())
    options = {} if server_kind == "ottla" else {"jvm_flags": (*QUICK_JVM_FLAGS, f"-D{ALLOWED}={file.as_uri()}")}
    with start_server(properties(file.as_uri()), **options) as server:
        yield Checking(server)


def first_message(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ISSUER.token(),
        lambda: ISSUER.token({"alg": "ES256", "kid": "e"}),
        lambda: ISSUER.token({"kid": None}),
        lambda: ISSUER.token(aud=["x", "other"]),
        lambda: ISSUER.token(scope="read write"),
        lambda: ISSUER.token(scope=["read"]),
        lambda: ISSUER.token(iat=int(time.time()) + 100),
        lambda: ISSUER.token(nbf=int(time.time()) + 10),
    ],
)
def test_tokens_that_are_accepted(checking: Checking, make: Callable[[], str]) -> None:
    client = checking.dial()
    done = authenticate(client, first_message(make()))
    assert (done.error_code, done.auth_bytes) == (0, b"")
    assert 200_000 < done.session_lifetime_ms <= 300_000
    assert is_usable(client)
    client.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: STRANGER.token(),
        lambda: ISSUER.token({"alg": "none"}),
        lambda: ISSUER.token({"alg": "HS256"}),
        lambda: ISSUER.token({"kid": "unknown"}),
        lambda: ISSUER.token({"kid": "e"}),
        lambda: ISSUER.token({"crit": ["x"]}),
        lambda: ISSUER.token(exp=int(time.time()) - 60),
        lambda: ISSUER.token(exp=None),
        lambda: ISSUER.token(iat=None),
        lambda: ISSUER.token(nbf=int(time.time()) + 100),
        lambda: ISSUER.token(iss="https://another"),
        lambda: ISSUER.token(iss=None),
        lambda: ISSUER.token(aud="else"),
        lambda: ISSUER.token(aud=None),
        lambda: ISSUER.token(sub=None),
        lambda: ISSUER.token(sub=" "),
        lambda: ISSUER.token(scope=""),
        lambda: ISSUER.token()[:-8] + "AAAAAAAA",
        lambda: ISSUER.token().rpartition(".")[0] + ".",
        lambda: "a.b",
        lambda: "x",
    ],
)
def test_tokens_that_are_refused(checking: Checking, make: Callable[[], str]) -> None:
    client = checking.dial()
    told = authenticate(client, first_message(make()))
    assert told.error_code == 0
    assert json.loads(told.auth_bytes) == {"status": "invalid_token"}
    assert authenticate(client, b"\x01").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert is_closed(client)


def test_token_that_has_just_expired_ends_with_the_next_request(checking: Checking) -> None:
    client = checking.dial()
    done = authenticate(client, first_message(ISSUER.token(exp=int(time.time()) - 10)))
    assert (done.error_code, done.session_lifetime_ms) == (0, 0), "within the clock skew"
    assert not is_answered(client)


def is_answered(client: RawClient) -> bool:
    try:
        return is_usable(client)
    except ConnectionError:
        return False


def test_tokens_are_not_logged(checking: Checking, server_kind: str) -> None:
    if server_kind == "apache":
        pytest.skip("Apache Kafka logs tokens that it refuses")
    token = STRANGER.token(sub="mallory")
    authenticate(checking.dial(), first_message(token))
    log = checking.server.log_text()
    assert token.split(".")[1] not in log
    assert token.split(".")[2] not in log


# Over HTTPS


class Pages:
    """What the server of the key set answers."""

    def __init__(self) -> None:
        self.issuer = ISSUER
        self.asked = 0
        self.port = 0


@contextmanager
def key_server(context: ssl.SSLContext) -> Iterator[Pages]:
    pages = Pages()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages.asked += 1
            document = pages.issuer.key_set().encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(document)))
            self.end_headers()
            self.wfile.write(document)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    pages.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield pages
    finally:
        server.shutdown()
        thread.join(30)
        server.server_close()


@pytest.mark.parametrize("is_in_jaas", [False, True])
def test_key_set_over_https_is_read_again(tmp_path: Path, is_in_jaas: bool) -> None:
    certificates = make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server.certificate, certificates.server.key)
    with key_server(context) as pages:
        prefix, authority = "listener.name.sasl", certificates.authority.certificate
        trust: dict[str, object] = {f"{prefix}.oauthbearer.sasl.oauthbearer.jwks.endpoint.refresh.ms": 200}
        if is_in_jaas:
            trust[f"{prefix}.oauthbearer.sasl.jaas.config"] = (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                f'ssl.truststore.type="PEM" ssl.truststore.location="{authority}";'
            )
        else:
            trust |= {f"{prefix}.ssl.truststore.type": "PEM", f"{prefix}.ssl.truststore.location": authority}
        url = f"https://localhost:{pages.port}/keys"
        with start_ottla(properties(url, **trust)) as server:
            await_login(server, ISSUER)
            pages.issuer = STRANGER
            await_login(server, STRANGER)
            with Checking(server).dial() as client:
                assert authenticate(client, first_message(ISSUER.token())).auth_bytes, "the old key is gone"
            assert pages.asked > 1
            (unused,) = (line for line in server.log_text().splitlines() if "without effect" in line)
            assert "oauthbearer" not in unused


def await_login(server: KafkaServer, issuer: Issuer) -> None:
    deadline_s = time.monotonic() + HANG_S
    while True:
        with Checking(server).dial() as client:
            done = authenticate(client, first_message(issuer.token()))
            if not done.auth_bytes:
                assert done.error_code == 0
                return
        assert time.monotonic() < deadline_s, server.log_tail()
        time.sleep(0.05)


def test_key_set_alone_is_enough(tmp_path: Path) -> None:
    """Without the handler's class Apache Kafka ignores the key set and accepts tokens that anybody makes; here it counts."""
    file = tmp_path / "keys.json"
    file.write_text(ISSUER.key_set())
    settings = properties(file.as_uri())
    del settings["listener.name.sasl.oauthbearer.sasl.server.callback.handler.class"]
    with start_ottla(settings) as server:
        await_login(server, ISSUER)
        with Checking(server).dial() as client:
            assert authenticate(client, first_message(ISSUER.token({"alg": "none"}))).auth_bytes
