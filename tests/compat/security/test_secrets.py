"""Secrets are nowhere to be seen: a node that holds a marked one in every place where one can be, with its log at DEBUG, is
used, misused and described; then everything that it and the commands have said is searched for them."""

from __future__ import annotations

import re
import ssl
import time
import urllib.request
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.peers.raw_client import ConnectionClosed, RawClient
from tests.support.peers.sasl_login import authenticate, bearer, plain_login, scram_login, shake
from tests.support.servers.certificates import Authority
from tests.support.servers.kafka_server import HANG_S, KafkaServer, free_ports, ports_of, properties_text, start_on_free_ports
from tests.support.servers.ottla_cli import Said, run_cli
from tests.support.servers.ottla_server import OTTLA, format_ottla, run_ottla

from ottla import Admin, Producer
from ottla.broker.authentication.plain import PlainUsers
from ottla.broker.authentication.scram import Credential
from ottla.broker.authentication.token_credentials import TokenCredentials
from ottla.broker.secure_settings import NodeSecurity
from ottla.client.admin.scram import ScramMechanism, ScramUpsertion
from ottla.client.admin.tokens import DelegationToken
from ottla.config.broker import BrokerConfig
from ottla.config.client import admin_settings, producer_settings
from ottla.config.jaas import parse_jaas
from ottla.env.tls import TlsOptions
from ottla.env.tokens import TokenEndpoint
from ottla.errors import KafkaError
from ottla.link.scram import ScramClient
from ottla.link.security import LinkSecurity, SaslOptions
from ottla.metadata.delegation_tokens import TokenSettings
from ottla.metadata.scram import Keys
from ottla.testing import Security
from ottla.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.metadata_records import UserScramCredentialRecord
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest

MODULES = "org.apache.kafka.common.security"
BROKER, LOGGER = 4, 8
NAMES = (
    *("keystore", "key", "nodes-plain", "alice-plain", "formatted", "token-key", "custom", "upserted", "wrong-plain"),
    *("wrong-scram", "changed-store", "changed-jaas", "refused-jaas", "overridden", "client-wrong", "listed", "environment"),
)
SECRETS = {name: f"sEcReT-{name}-Zq7" for name in NAMES}
LISTENERS = ("PLAINTEXT", "SECURED", "INLINE", "CONTROLLER")


def spellings(secret: bytes) -> list[str]:
    """How a secret could be written."""
    encoded = b64encode(secret).decode().rstrip("=")
    return [secret.decode("latin-1"), secret.hex(), encoded, urlsafe_b64encode(secret).decode().rstrip("="), repr(secret)[2:-1]]


def assert_hidden(text: str, secrets: dict[str, bytes], where: str) -> None:
    for name, secret in secrets.items():
        for spelling in spellings(secret):
            at = text.find(spelling)
            assert at < 0, f"{where} shows the secret {name}: …{text[max(0, at - 200) : at + 80]}…"


def node_properties(folder: Path) -> tuple[dict[str, object], Authority]:
    authority = Authority(folder / "authority")
    issued = authority.issue("localhost", ["DNS:localhost", "IP:127.0.0.1"])
    ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
    plain, scram = f"{MODULES}.plain.PlainLoginModule required", f"{MODULES}.scram.ScramLoginModule required"
    nodes = SECRETS["nodes-plain"]
    secured, inline = "listener.name.secured", "listener.name.inline"
    properties: dict[str, object] = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL,INLINE:SSL,CONTROLLER:SASL_PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "inter.broker.listener.name": "SECURED",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"{secured}.ssl.keystore.type": "PKCS12",
        f"{secured}.ssl.keystore.location": issued.keystore(SECRETS["keystore"]),
        f"{secured}.ssl.keystore.password": SECRETS["keystore"],
        f"{secured}.ssl.key.password": SECRETS["keystore"],
        f"{secured}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        f"{secured}.plain.sasl.jaas.config": f'{plain} user_alice="{SECRETS["alice-plain"]}";',
        f"{secured}.scram-sha-512.sasl.jaas.config": f'{scram} username="boss" password="{SECRETS["formatted"]}";',
        f"{secured}.oauthbearer.sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required "
        f'unsecuredLoginStringClaim_sub="node";',
        f"{inline}.ssl.keystore.type": "PEM",
        f"{inline}.ssl.keystore.key": issued.encrypted_key(SECRETS["key"]).read_text(),
        f"{inline}.ssl.keystore.certificate.chain": issued.certificate.read_text(),
        f"{inline}.ssl.key.password": SECRETS["key"],
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f'{plain} username="node" password="{nodes}" user_node="{nodes}";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:node;User:boss;User:alice;User:ANONYMOUS",
        "delegation.token.secret.key": SECRETS["token-key"],
        "my.plugin.password": SECRETS["custom"],
        "connection.failed.authentication.delay.ms": 1,
        "ottla.metrics.port": free_ports(1)[0],
    }
    return properties, authority


class Node:
    """The node, and what has been said about it."""

    def __init__(self, server: KafkaServer, authority: Authority, folder: Path) -> None:
        self.server = server
        self.authority = authority
        self.folder = folder
        self.ports = ports_of(server.properties)
        self.secrets = {name: secret.encode() for name, secret in SECRETS.items()}
        """And those that come up: of tokens and of salted passwords."""
        self.secrets["private key"] = next(
            line for line in str(server.properties["listener.name.inline.ssl.keystore.key"]).splitlines() if "-----" not in line
        ).encode()

    def commands_of(self, user: str, password: str) -> Path:
        path = self.folder / f"{user}.properties"
        path.write_text(
            f"bootstrap.servers=127.0.0.1:{self.ports['SECURED']}\nsecurity.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.authority.certificate}\n"
            f'sasl.jaas.config={MODULES}.scram.ScramLoginModule required username="{user}" password="{password}";\n'
        )
        return path

    def said(self, done: Said, where: str) -> Said:
        """Search what a command has said."""
        assert_hidden(done.out + done.err, self.secrets, where)
        return done


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("secrets")
    authorities: list[Authority] = []

    def make() -> KafkaServer:
        properties, authority = node_properties(tmp_path_factory.mktemp("certificates"))
        authorities.append(authority)
        return KafkaServer([*OTTLA, "server", "start"], properties, None, name="Ottla")

    options = ["--add-scram", f"SCRAM-SHA-512=[name=boss,password={SECRETS['formatted']}]"]
    server = start_on_free_ports(make, lambda made: format_ottla(made.properties, options=options), HANG_S)
    with server:
        yield Node(server, authorities[-1], folder)


def alter(client: RawClient, kind: int, name: str, value: str) -> int:
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name="1", configs=[config])
    (answer,) = client.request(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert not any(secret in (answer.error_message or "") for secret in SECRETS.values())
    return int(answer.error_code)


def test_what_a_node_says_shows_no_secret(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = node.secrets
    with RawClient.to(node.server.bootstrap) as client:
        assert alter(client, LOGGER, "root", "DEBUG") == 0
    log_in(node)
    change(node)
    describe(node)
    use_commands(node, monkeypatch)
    with urllib.request.urlopen(f"http://127.0.0.1:{node.server.properties['ottla.metrics.port']}/metrics") as page:
        metrics = page.read().decode()
    assert_hidden(metrics, secrets, "the page of metrics")
    failed = [float(line.split()[-1]) for line in metrics.splitlines() if re.match(r"\w*failed_authentication_total", line)]
    assert sum(failed) >= 6, "failed logins are counted"
    log = node.server.log_text()
    assert "DEBUG" in log
    assert "alice" in log, "the log names users"
    assert_hidden(log, secrets, "the log")


def log_in(node: Node) -> None:
    """Logins of every kind, right and wrong."""
    context = ssl.create_default_context(cafile=node.authority.certificate)

    def dial() -> RawClient:
        return RawClient(node.ports["SECURED"], tls=context)

    with dial() as client:
        plain_login(client, "alice", SECRETS["alice-plain"])
        token = client.request(CreateDelegationTokenRequest(max_lifetime_ms=-1), 3)
        assert token.error_code == 0
        node.secrets["token"] = bytes(token.hmac)
        found = client.request(DescribeDelegationTokenRequest(owners=None), 3).tokens
        assert [bytes(each.hmac) for each in found] == [bytes(token.hmac)], "their owners alone see them"
    with dial() as client:
        text = b64encode(node.secrets["token"]).decode()
        assert scram_login(client, token.token_id, text, "SCRAM-SHA-512", "tokenauth=true").error_code == 0
    with dial() as client:
        shake(client, "PLAIN")
        refused = authenticate(client, f"\0alice\0{SECRETS['wrong-plain']}".encode())
        assert refused.error_code == 58
        assert_hidden(refused.error_message, node.secrets, "the answer to a wrong password")
    with dial() as client:
        refused = scram_login(client, "boss", SECRETS["wrong-scram"], "SCRAM-SHA-512")
        assert refused.error_code == 58
        assert_hidden(refused.error_message, node.secrets, "the answer to a wrong proof")
    now_s = time.time()
    for name, claims in (("valid token", {"sub": "alice", "exp": now_s + 3600}), ("expired token", {"sub": "alice", "exp": 5})):
        message = bearer({**claims, "jti": f"{name} of the test"})
        node.secrets[name] = message.split(b".")[1]
        with dial() as client:
            shake(client, "OAUTHBEARER")
            authenticate(client, message)
    for raw in (f"\0alice\0{SECRETS['wrong-plain']}\0more".encode(), b"\xff" + SECRETS["wrong-plain"].encode()):
        with dial() as client:
            shake(client, "PLAIN")
            refused = authenticate(client, raw)
            assert_hidden(refused.error_message or "", node.secrets, "the answer to a message that is none")
    with dial() as client:
        client.send_bytes(len(SECRETS["wrong-plain"]).to_bytes(4, "big") + SECRETS["wrong-plain"].encode())
        with pytest.raises(ConnectionClosed):
            client.receive_frame()


def change(node: Node) -> None:
    """Users with passwords, and settings with secrets, taken and refused."""
    with Admin(node.server.bootstrap) as admin:
        upsertion = ScramUpsertion("carol", ScramMechanism.SCRAM_SHA_512, SECRETS["upserted"], 4096)
        assert_hidden(repr(upsertion), node.secrets, "repr() of an upsertion")
        admin.alter_user_scram_credentials([upsertion]).raise_first()
    jaas = f"{MODULES}.plain.PlainLoginModule required"
    with RawClient.to(node.server.bootstrap) as client:
        prefix = "listener.name.secured"
        assert alter(client, BROKER, f"{prefix}.ssl.keystore.password", SECRETS["changed-store"]) != 0, "it does not fit"
        alter(client, BROKER, f"{prefix}.plain.sasl.jaas.config", f'{jaas} user_eve="{SECRETS["changed-jaas"]}";')
        alter(client, BROKER, f"{prefix}.plain.sasl.jaas.config", f'{jaas} user_eve="{SECRETS["refused-jaas"]}')


def describe(node: Node) -> None:
    with RawClient.to(node.server.bootstrap) as client:
        resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None)
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
        (answer,) = client.request(request, 4).results
        values = {each.name: (each.value, each.is_sensitive) for each in answer.configs}
        for name in (
            *("delegation.token.secret.key", "listener.name.secured.ssl.keystore.password"),
            *("listener.name.controller.plain.sasl.jaas.config", "listener.name.inline.ssl.keystore.key", "my.plugin.password"),
        ):
            assert values.get(name, (None, True)) == (None, True), name
        assert_hidden(str(answer.configs), node.secrets, "DescribeConfigs")
        users = client.request(DescribeUserScramCredentialsRequest(users=None), 0)
        assert {each.user for each in users.results} == {"boss", "carol"}
        assert_hidden(str(users), node.secrets, "DescribeUserScramCredentials")


def use_commands(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands as the admin, as a user with a wrong password, and about the files."""
    config = node.commands_of("boss", SECRETS["formatted"])
    password = node.folder / "password"
    password.write_text(SECRETS["listed"])
    for arguments in (
        ("users", "add", "dave", "--password-file", password),
        ("users", "list"),
        ("users", "list", "--json"),
        ("tokens", "list", "--json"),
        ("configs", "describe", "broker", "1", "--all"),
        ("configs", "describe", "broker", "1", "--all", "--json"),
        ("cluster", "describe"),
    ):
        done = node.said(run_cli(*arguments, "--command-config", config), " ".join(map(str, arguments)))
        assert done.rc == 0, (arguments, done.err)
    # Kafka's lines, in a pipe, have the HMACs of one's own tokens; the table does not.
    assert node.said(run_cli("tokens", "list", "--command-config", config, columns=200), "tokens list").rc == 0
    monkeypatch.setenv("OTTLA_NEW_PASSWORD", SECRETS["environment"])
    assert node.said(run_cli("users", "add", "erin", "--command-config", config), "users add").rc == 0
    wrong = node.commands_of("boss", SECRETS["client-wrong"])
    for arguments in (("topics", "list"), ("users", "list"), ("produce", "t")):
        done = node.said(run_cli(*arguments, "--command-config", wrong), "a command with a wrong password")
        assert done.rc == 1
    data = Path(str(node.server.properties["log.dirs"]))
    done = node.said(run_cli("dump-log", data / "__cluster_metadata-0", "--print-data-log"), "dump-log of the metadata")
    assert "carol" in done.out, (done.out[-500:], done.err)
    overriding = f"listener.name.inline.ssl.key.password={SECRETS['overridden']}"
    refused = node.said(run_cli("up", "--data", node.folder / "up", "--set", overriding), "up --set")
    assert refused.rc == 2
    assert "others on this machine can read command lines" in refused.err
    config_file = node.folder / "server.properties"
    config_file.write_text(properties_text({**node.server.properties, "log.dirs": node.folder / "absent"}))
    started = run_ottla("server", "start", config_file, "--override", overriding, "--log-dir", node.folder / "logs")
    assert started.returncode != 0, "its key does not open with that password"
    assert "is on the command line" in started.stdout + started.stderr
    assert_hidden(started.stdout + started.stderr, node.secrets, "server start --override")


def test_clients_show_no_secret(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    """Their log at DEBUG, their errors, and `repr()` of what they are made of."""
    caplog.set_level("DEBUG")
    login = {
        "security_protocol": "SASL_SSL",
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(node.authority.certificate),
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
    }
    bootstrap = f"127.0.0.1:{node.ports['SECURED']}"
    right = {**login, "sasl_plain_password": SECRETS["alice-plain"]}
    with Producer(bootstrap, **right) as producer:
        producer.send("greetings", b"hello").result(HANG_S)
    settings = producer_settings(bootstrap, keywords=right)
    shown = f"{producer!r} {settings!r} {settings.security!r}"
    with pytest.raises(KafkaError) as refused, Admin(bootstrap, **login, sasl_plain_password=SECRETS["client-wrong"]) as admin:
        admin.list_topics()
    assert_hidden(shown, node.secrets, "repr() of a client")
    assert_hidden(f"{refused.value} {refused.value!r}", node.secrets, "the error of a wrong password")
    assert_hidden(caplog.text, node.secrets, "the clients' log")


SECRET = "sEcReT-shown-Zq7"
LOGIN = f'{MODULES}.scram.ScramLoginModule required username="alice" password="{SECRET}";'
HOLDERS: list[object] = [
    NodeSecurity(SECRET, users={"alice": SECRET}),
    Security(users={"alice": SECRET}),
    SaslOptions("PLAIN", "alice", SECRET),
    LinkSecurity(TlsOptions(key=SECRET, key_password=SECRET, ca_password=SECRET), SaslOptions("PLAIN", "alice", SECRET)),
    parse_jaas(LOGIN),
    PlainUsers({"user_alice": SECRET}),
    ScramClient("SCRAM-SHA-256", "alice", SECRET, "nonce"),
    Credential(b"salt", SECRET.encode(), SECRET.encode(), 4096),
    Keys(SECRET.encode(), SECRET.encode()),
    TokenSettings(SECRET),
    TokenCredentials(SECRET, lambda: b"salt"),
    TokenEndpoint("https://localhost/token", "client", SECRET),
    ScramUpsertion("alice", ScramMechanism.SCRAM_SHA_256, SECRET),
    DelegationToken("id", SECRET.encode(), "User:alice", "User:alice", (), 0, 0, 0),
    admin_settings(
        "localhost:9092", {"security.protocol": "SASL_SSL", "sasl.jaas.config": LOGIN, "sasl.mechanism": "SCRAM-SHA-256"}
    ),
    BrokerConfig.from_settings(
        {
            "node.id": "1",
            "process.roles": "broker",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "listeners": "S://localhost:9092",
            "listener.security.protocol.map": "S:SASL_SSL,C:PLAINTEXT",
            "inter.broker.listener.name": "S",
            "controller.listener.names": "C",
            "log.dirs": "/var/tmp/none",
            "ssl.keystore.location": "/k",
            "ssl.keystore.password": SECRET,
            "ssl.key.password": SECRET,
            "listener.name.s.scram-sha-256.sasl.jaas.config": LOGIN,
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
            "delegation.token.secret.key": SECRET,
        }
    ),
    SaslAuthenticateRequest(auth_bytes=SECRET.encode()),
    CreateDelegationTokenResponse(hmac=SECRET.encode()),
    AlterUserScramCredentialsRequest(upsertions=[ScramCredentialUpsertion(salted_password=SECRET.encode())]),
    UserScramCredentialRecord(stored_key=SECRET.encode(), server_key=SECRET.encode()),
]


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda each: type(each).__name__)
def test_repr_of_what_holds_a_secret(holder: object) -> None:
    shown = repr(holder) + "".join(repr(each) for each in getattr(holder, "listener_security", {}).values())
    assert_hidden(shown, {"one": SECRET.encode()}, "repr()")
