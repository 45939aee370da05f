"""Strangers at the listeners with TLS and logins cannot stop the others: handshakes that never end, floods, absurd messages.

A client that produces is on a listener of its own (`attacking.py`); others shake hands and log in meanwhile. What a stranger
may do at all is in tests/compat/security/test_strangers.py.
"""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.hostile.attacking import WAIT_S_MAX
from tests.support.hostile.bystander import Bystander
from tests.support.hostile.hostile_client import many_open_files
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import ConnectionClosed, RawClient
from tests.support.peers.sasl_login import authenticate, is_usable, plain_login, shake
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.kafka_server import free_ports
from tests.support.servers.secured_nodes import LOOPBACK, SCRAM_MODULE, SecuredNodes

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

pytestmark = linux_only
slow = pytest.mark.slow
_MODULES = "org.apache.kafka.common.security"
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "LOGIN": "SASL_PLAINTEXT",
    "SECURED": "SASL_SSL",
    "MUTUAL": "SSL",
    "CONTROLLER": "PLAINTEXT",
}
ALICES_PASSWORD = "alice-secret"
FLOOD_S = 1.0
REFUSED = ErrorCode.SASL_AUTHENTICATION_FAILED


class Doors(NamedTuple):
    """A node, and the ports of its listeners."""

    node: HostileNode
    secured: SecuredNodes
    login: int
    tls: int
    mutual: int

    @contextlib.contextmanager
    def serving(self, memory_bytes_max: int, wait_s_max: float = WAIT_S_MAX) -> Iterator[None]:
        """The others are served during the block, and it costs no more memory than that."""
        self.node.await_idle()
        self.node.forget_peak()
        before = self.node.memory_bytes
        with Bystander(self.node.port, "bystander", self.node.pid) as bystander:
            yield
            self.must_let_in()
        used = self.node.memory_bytes_peak - before
        print(f"\nworst of {bystander.count} waits {bystander.worst_s:.3f} s, {used / 1e6:.0f} MB more")
        assert bystander.worst_s <= wait_s_max
        assert used <= memory_bytes_max

    def must_let_in(self) -> None:
        """An honest client shakes hands and logs in."""
        with RawClient(self.tls, tls=self.secured.context) as client:
            assert is_usable(plain_login(client, "alice", ALICES_PASSWORD))


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    secured = SecuredNodes(tmp_path_factory.mktemp("secrets"), [1])
    ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
    settings: dict[str, object] = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=(.*?)(,.*)*$/$1/",
    }
    for prefix in ("login", "secured"):
        module = f'{_MODULES}.plain.PlainLoginModule required user_alice="{ALICES_PASSWORD}";'
        bearer = f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="node";'
        settings |= {
            f"listener.name.{prefix}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
            f"listener.name.{prefix}.plain.sasl.jaas.config": module,
            f"listener.name.{prefix}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE};",
            f"listener.name.{prefix}.oauthbearer.sasl.jaas.config": bearer,
        }
    for prefix in ("secured", "mutual"):
        stores = secured.controllers_listener(prefix, 1)
        settings |= {name: value for name, value in stores.items() if "store" in name}
    with HostileNode(settings=[f"--set={name}={value}" for name, value in settings.items()]) as node:
        make_topic(node.bootstrap, "bystander")
        yield Doors(node, secured, ports["LOGIN"], ports["SECURED"], ports["MUTUAL"])


def first_message() -> bytes:
    """How a client begins a handshake."""
    context = ssl.create_default_context()
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(received, sent, server_hostname="localhost").do_handshake()
    return sent.read()


HELLO = first_message()


def flood(act: Callable[[], None], threads: int = 20) -> int:
    """Do it over and over for `FLOOD_S`, in many threads; returns how often."""
    until_s = time.monotonic() + FLOOD_S
    done: list[int] = []

    def work() -> None:
        while time.monotonic() < until_s:
            with contextlib.suppress(OSError):
                act()
            done.append(1)

    started = [threading.Thread(target=work) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert done
    return len(done)


# Handshakes


@pytest.mark.parametrize(
    "said", [b"", pytest.param(HELLO[:100], marks=slow), HELLO], ids=["nothing", "half a message", "a message"]
)
@pytest.mark.parametrize("count", [1500, pytest.param(10_000, marks=slow)])
def test_half_open_connections(doors: Doors, said: bytes, count: int) -> None:
    # All of them close at once in the end, and one turn of the loop deals with whatever has come since the one before.
    wait_s_max = WAIT_S_MAX * (1 if count < 5000 else 2)
    with many_open_files() as files_max, doors.serving(150_000_000, wait_s_max), contextlib.ExitStack() as stack:
        for _ in range(min(count, files_max - 500)):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", doors.tls)))
            client.sendall(said)
        doors.must_let_in()


def test_many_handshakes_that_begin_at_once(doors: Doors) -> None:
    with many_open_files(), doors.serving(memory_bytes_max=150_000_000), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", doors.tls))) for _ in range(1500)]
        for client in clients:
            client.sendall(HELLO)
        doors.must_let_in()


def test_flood_of_handshakes(doors: Doors) -> None:
    def shake_hands() -> None:
        with RawClient(doors.tls, tls=doors.secured.context):
            pass

    with doors.serving(memory_bytes_max=50_000_000):
        flood(shake_hands)


def record(kind: int, data: bytes, version: bytes = b"\x03\x01") -> bytes:
    return bytes([kind]) + version + len(data).to_bytes(2, "big") + data


NEVER_ENDING = {
    "a message of 16 MB": (record(22, b"\x01\xff\xff\xff\x03\x03" + bytes(16_000)), record(22, bytes(16_000))),
    "a message in single bytes": (record(22, b"\x01\x00\x40\x00\x03\x03"), record(22, b"\0")),
    "empty records": (record(22, b""), record(22, b"")),
    "changes of the cipher": (HELLO, record(20, b"\1", b"\x03\x03")),
    "warnings": (HELLO, record(21, b"\1\0", b"\x03\x03")),
    "beginnings": (HELLO, HELLO),
    "encrypted nonsense": (HELLO, record(23, bytes(16_000), b"\x03\x03")),
}


@pytest.mark.parametrize("what", NEVER_ENDING)
def test_a_handshake_that_never_ends(doors: Doors, what: str) -> None:
    first, further = NEVER_ENDING[what]

    def go_on() -> None:
        with socket.create_connection(("127.0.0.1", doors.tls)) as client:
            client.settimeout(10)
            client.sendall(first)
            for _ in range(17_000):
                client.sendall(further)
            while client.recv(65_536):  # the node has ended it
                pass

    with doors.serving(memory_bytes_max=50_000_000), contextlib.suppress(ConnectionError):
        go_on()


# Certificates of clients


@pytest.fixture(scope="module")
def absurd(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Certificates that nobody has signed, with their keys."""
    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    folder = tmp_path_factory.mktemp("absurd")
    now = datetime.now(UTC)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]

    def name_of(*parts: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, part) for part in parts])

    def certificate(subject: x509.Name, issuer: x509.Name, names: int = 0, is_authority: bool = True) -> bytes:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).serial_number(x509.random_serial_number())
        builder = builder.public_key(keys[0].public_key()).not_valid_before(now - timedelta(1))
        builder = builder.not_valid_after(now + timedelta(30))
        builder = builder.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        if names:
            alternatives = [x509.DNSName(f"name-{number}.example") for number in range(names)]
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return builder.sign(keys[0], hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    chain = [certificate(name_of(f"level {at}"), name_of(f"level {at + 1}")) for at in range(200)]
    many_names = [certificate(name_of("many names"), name_of("nobody"), names=3000)]
    long_subject = [certificate(name_of(*(f"part {number} " * 5 for number in range(700))), name_of("nobody"))]
    key = keys[0].private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    found = {}
    for what, certificates in {"depth": chain, "names": many_names, "subject": long_subject}.items():
        path = folder / f"{what}.pem"
        path.write_bytes(b"".join(certificates))
        (folder / f"{what}.key").write_bytes(key)
        found[what] = (path, folder / f"{what}.key")
    return found


@pytest.mark.parametrize("what", ["depth", "names", "subject"])
def test_absurd_certificates(doors: Doors, absurd: dict[str, tuple[Path, Path]], what: str) -> None:
    context = ssl.create_default_context(cafile=doors.secured.authority.certificate)
    context.load_cert_chain(*absurd[what])

    def show() -> None:
        with pytest.raises(OSError, match=r"(?i)alert|reset|closed|eof"), RawClient(doors.mutual, tls=context) as client:
            is_usable(client)

    with doors.serving(memory_bytes_max=80_000_000):
        flood(show)


def test_a_trusted_certificate_with_an_absurd_subject(doors: Doors) -> None:
    """The mapping rules are Java's regular expressions: on this subject a careless one takes for ever."""
    subject = "".join(f"/OU={'a' * 60} {number}" for number in range(60))
    issued = doors.secured.authority.issue("absurd", LOOPBACK, subject=f"{subject}/CN=absurd")
    context = doors.secured.context_of(issued)

    def ask() -> None:
        with contextlib.suppress(ConnectionClosed), RawClient(doors.mutual, tls=context) as client:
            is_usable(client)

    with doors.serving(memory_bytes_max=50_000_000):
        flood(ask)


# Large replies


def test_large_fetches_are_encrypted_in_turn_with_others(doors: Doors) -> None:
    """Each of 20 clients asks for 48 MB again and again; one reply takes 80 ms to encrypt."""
    make_topic(doors.node.bootstrap, "large", 1, {"max.message.bytes": 10_000_000})
    part = PartitionProduceData(index=0, records=bytes(make_batch(b"x" * 8_000_000)))
    produce = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name="large", partition_data=[part])])
    with doors.node.connect() as client:
        for _ in range(6):
            (answer,) = client.request(produce, 9).responses[0].partition_responses
            assert answer.error_code == 0
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50_000_000)
    fetch = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=50_000_000, session_epoch=-1)
    fetch.topics = [FetchTopic(topic="large", partitions=[wanted])]
    received: list[int] = []

    def read_all() -> None:
        with RawClient(doors.tls, tls=doors.secured.context) as client:
            plain_login(client, "alice", ALICES_PASSWORD)
            client.send(fetch, 11)
            received.append(len(client.receive_frame()))

    with doors.serving(memory_bytes_max=100_000_000):
        flood(read_all)
    assert received
    assert all(size > 47_000_000 for size in received)


# Logins


def test_flood_of_wrong_passwords_with_plain(doors: Doors) -> None:
    def log_in() -> None:
        with RawClient(doors.login) as client:
            assert shake(client).error_code == 0
            assert authenticate(client, b"\0alice\0wrong").error_code == REFUSED

    with doors.serving(memory_bytes_max=60_000_000):
        count = flood(log_in, threads=100)
    assert count < FLOOD_S * 100 / 0.1 * 1.1, "each waits for its answer"


def test_flood_of_wrong_passwords_with_scram(doors: Doors) -> None:
    def log_in() -> None:
        with RawClient(doors.login) as client:
            assert shake(client, "SCRAM-SHA-512").error_code == 0
            answer = authenticate(client, b"n,,n=nobody,r=anonce")
            if answer.error_code == 0:
                (nonce,) = re.findall(rb"r=([^,]+)", answer.auth_bytes)
                answer = authenticate(client, b"c=biws,r=" + nonce + b",p=" + base64.b64encode(bytes(64)))
            assert answer.error_code == REFUSED

    with doors.serving(memory_bytes_max=60_000_000):
        flood(log_in, threads=100)


def bearer(claims: bytes) -> bytes:
    parts = [base64.urlsafe_b64encode(part).rstrip(b"=") for part in (b'{"alg":"none"}', claims, b"")]
    return b"n,,\x01auth=Bearer " + b".".join(parts) + b"\x01\x01"


ABSURD = {
    "a long user": ("PLAIN", b"\0" + b"a" * 500_000 + b"\0x"),
    "many parts": ("PLAIN", bytes(500_000)),
    "a long name": ("SCRAM-SHA-512", b"n,,n=" + b"a" * 500_000 + b",r=x"),
    "a long nonce": ("SCRAM-SHA-512", b"n,,n=a,r=" + b"r" * 500_000),
    "many extensions": ("SCRAM-SHA-512", b"n,,n=a,r=b" + b",x=y" * 120_000),
    "escapes": ("SCRAM-SHA-512", b"n,,n=" + b"=2C" * 160_000 + b",r=x"),
    "deep lists": ("OAUTHBEARER", bearer(b"[" * 300_000)),
    "deep objects": ("OAUTHBEARER", bearer(b'{"a":' * 60_000)),
    "a long number": ("OAUTHBEARER", bearer(b'{"sub":"a","exp":' + b"9" * 300_000 + b"}")),
    "a large number": ("OAUTHBEARER", bearer(b'{"sub":"a","exp":1e999999}')),
    "dots": ("OAUTHBEARER", b"n,,\x01auth=Bearer " + b"." * 500_000 + b"\x01\x01"),
    "many fields": ("OAUTHBEARER", b"n,,\x01auth=Bearer a.b.c" + b"\x01a=b" * 100_000 + b"\x01\x01"),
    "1 MB": ("OAUTHBEARER", bearer(b'{"sub":"' + b"a" * 1_000_000 + b'"}')),
}


@pytest.mark.parametrize("what", ABSURD)
def test_absurd_messages_of_logins(doors: Doors, what: str) -> None:
    mechanism, message = ABSURD[what]

    def log_in() -> None:
        with RawClient(doors.login) as client:
            assert shake(client, mechanism).error_code == 0
            answer = authenticate(client, message)
            if answer.error_code == 0:  # OAUTHBEARER's refusal comes after another message
                assert b"invalid_token" in answer.auth_bytes
                answer = authenticate(client, b"\x01")
            assert answer.error_code == REFUSED

    before_s = doors.node.cpu_s
    if len(message) > 524_288:
        with pytest.raises(ConnectionClosed):
            log_in()
    else:
        log_in()
    assert doors.node.cpu_s - before_s < 0.5
    with doors.node.connect() as client:
        assert is_usable(client)


@slow
@pytest.mark.parametrize("what", ["many extensions", "deep lists", "1 MB"])
def test_flood_of_absurd_messages_of_logins(doors: Doors, what: str) -> None:
    mechanism, message = ABSURD[what]

    def log_in() -> None:
        with RawClient(doors.login) as client:
            shake(client, mechanism)
            authenticate(client, message)

    with doors.serving(memory_bytes_max=150_000_000):
        flood(log_in)


def test_logins_that_stop_half_way(doors: Doors) -> None:
    with many_open_files(), doors.serving(memory_bytes_max=60_000_000), contextlib.ExitStack() as stack:
        for number in range(1500):
            client = stack.enter_context(RawClient(doors.login))
            assert shake(client, "SCRAM-SHA-512").error_code == 0
            if number % 2:
                authenticate(client, b"n,,n=alice,r=anonce")


def test_it_is_quiet_again(doors: Doors) -> None:
    """What all of that has left behind is little."""
    await_true(lambda: doors.node.memory_bytes - doors.node.memory_bytes_before < 60_000_000, "memory to go back")
