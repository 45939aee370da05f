"""SCRAM: the RFCs' vectors, our client against our server, and messages that no honest client sends."""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples

from ottla.broker.authentication.exchange import LoginFailed
from ottla.broker.authentication.scram import Account, Credential, ScramExchange
from ottla.ids import Principal
from ottla.link.scram import ScramClient, escaped
from ottla.metadata.scram import MECHANISMS, keys_of, salted_password

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
ALICE = Principal("User", "alice")


def credential(hash_name: str, password: str, salt: bytes = b"salt", iterations: int = 4096) -> Credential:
    return Credential(salt, *keys_of(hash_name, salted_password(hash_name, password.encode(), salt, iterations)), iterations)


@dataclass
class Few:
    """`Accounts` of a test."""

    hash_name: str = "sha256"
    users: dict[str, Account] = field(default_factory=dict)
    tokens: dict[str, Account] = field(default_factory=dict)
    prepared: list[str] = field(default_factory=list)

    def account(self, username: str, is_token: bool) -> Account | None:
        return (self.tokens if is_token else self.users).get(username)

    def prepare(self, username: str, is_token: bool) -> Callable[[], None] | None:
        return (lambda: self.prepared.append(username)) if is_token else None

    def decoy(self, username: str) -> Credential:
        nothing = hashlib.new(self.hash_name, username.encode()).digest()
        return Credential(b"decoy", nothing, nothing, 4096)


SECRETS = Few(users={"alice": Account(credential("sha256", "secret"), ALICE)})


def test_vector_of_rfc_7677() -> None:
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    users = {"user": Account(credential("sha256", "pencil", salt), Principal("User", "user"))}
    exchange = ScramExchange(Few(users=users), "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    assert exchange.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        None,
    )
    answer, outcome = exchange.step(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert answer == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert outcome is not None
    assert outcome.principal.name == "user"


def test_vector_of_rfc_5802() -> None:
    salt = b64decode("QSXCR+Q6sek8bf92")
    users = {"user": Account(credential("sha1", "pencil", salt), Principal("User", "user"))}
    exchange = ScramExchange(Few("sha1", users), "3rfcNHYJY1ZVvWVs7j")
    exchange.step(b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL")
    answer, _ = exchange.step(b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=")
    assert answer == b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ="


@settings(max_examples=examples(20))
@given(TEXTS, TEXTS, st.sampled_from(sorted(MECHANISMS)))
def test_our_client_logs_in(username: str, password: str, mechanism: str) -> None:
    hash_name = MECHANISMS[mechanism].hash_name
    users = {username: Account(credential(hash_name, password), Principal("User", username))}
    exchange = ScramExchange(Few(hash_name, users), "server")
    client = ScramClient(mechanism, username, password, "client")
    challenge, outcome = exchange.step(client.first())
    assert outcome is None
    answer, outcome = exchange.step(client.final(challenge))
    client.verify(answer)
    assert outcome is not None
    assert (outcome.principal.name, exchange.username) == (username, username)


def fails(accounts: Few, username: str, password: str, extensions: str = "", mechanism: str = "SCRAM-SHA-256") -> LoginFailed:
    """The failure of a login, which comes with the second message."""
    exchange, client = ScramExchange(accounts, "server"), ScramClient(mechanism, username, password, "client", extensions)
    final = client.final(exchange.step(client.first())[0])
    with pytest.raises(LoginFailed) as failed:
        exchange.step(final)
    return failed.value


def test_wrong_password_unknown_user_and_weak_credential_fail_alike_for_the_peer() -> None:
    accounts = Few(users={**SECRETS.users, "weak": Account(credential("sha256", "secret", iterations=4095), ALICE)})
    failures = [
        fails(accounts, "alice", "wrong"),
        fails(accounts, "bob", "secret"),
        fails(accounts, "weak", "secret"),
        fails(accounts, "alice", "secret", "tokenauth=true"),
    ]
    assert {failure.told for failure in failures} == {None}


def test_a_token_stands_for_its_owner() -> None:
    owner = Principal("User", "alice", True)
    accounts = Few(tokens={"id": Account(credential("sha256", "hmac"), owner, 1234)})
    client = ScramClient("SCRAM-SHA-256", "id", "hmac", "client", "tokenauth=true")
    exchange = ScramExchange(accounts, "server")
    work = exchange.prepare(client.first())
    assert work is not None
    work()
    assert accounts.prepared == ["id"]
    challenge, _ = exchange.step(client.first())
    assert exchange.prepare(client.final(challenge)) is None
    _, outcome = exchange.step(client.final(challenge))
    assert outcome == (owner, 1234)
    assert fails(accounts, "id", "hmac").told is None  # without tokenauth it is no user


@pytest.mark.parametrize("extensions", ["", ",x=y", ",tokenauth=false", ",tokenauth=,", ",a=b,c=d=e"])
def test_other_extensions_are_ignored(extensions: str) -> None:
    exchange, client = (
        ScramExchange(SECRETS, "server"),
        ScramClient("SCRAM-SHA-256", "alice", "secret", "client", extensions[1:]),
    )
    if extensions.endswith(","):
        with pytest.raises(LoginFailed):
            exchange.step(client.first())
        return
    assert exchange.step(client.final(exchange.step(client.first())[0]))[1] is not None


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=alice",
        b"n,,r=x,n=alice",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=,r=x",
        b"n,,n=a=b,r=x",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=x y",
        b"n,,n=alice,r=x,",
        b"n,,n=al\0ice,r=x",
        b"n,,n=\xff,r=x",
        b"n,,n=alice,r=" + b"x" * 70_000,
    ],
)
def test_first_messages_that_are_refused(message: bytes) -> None:
    with pytest.raises(LoginFailed) as failed:
        ScramExchange(SECRETS, "server").step(message)
    assert failed.value.told is None


@pytest.mark.parametrize(("header", "is_allowed"), [("n,a=alice,", True), ("n,a=bob,", False), ("n,,m=x,", True)])
def test_authorization_id_and_reserved_field(header: str, is_allowed: bool) -> None:
    exchange = ScramExchange(SECRETS, "server")
    message = f"{header}n=alice,r=x".encode()
    if is_allowed:
        assert exchange.step(message)[0].startswith(b"r=xserver,")
        return
    with pytest.raises(LoginFailed, match="authorization id") as failed:
        exchange.step(message)
    assert failed.value.told is not None


def test_escaped_names() -> None:
    name = "a,b=c=2C"
    accounts = Few(users={name: Account(credential("sha256", "p"), Principal("User", name))})
    exchange = ScramExchange(accounts, "server")
    exchange.step(f"n,,n={escaped(name)},r=x".encode())
    assert exchange.username == name


def changed(final: bytes, **fields: str) -> bytes:
    parts = dict(part.split("=", 1) for part in final.decode().split(","))
    return ",".join(f"{name}={value}" for name, value in (parts | fields).items()).encode()


@pytest.mark.parametrize(
    "fields",
    [
        {"r": "clientother"},
        {"r": "server"},
        {"c": b64encode(b"y,,").decode()},
        {"p": b64encode(bytes(32)).decode()},
        {"p": ""},
        {"p": "AAA"},
        {"p": "!"},
    ],
)
def test_changed_second_messages_are_refused(fields: dict[str, str]) -> None:
    exchange, client = ScramExchange(SECRETS, "server"), ScramClient("SCRAM-SHA-256", "alice", "secret", "client")
    final = client.final(exchange.step(client.first())[0])
    with pytest.raises(LoginFailed):
        exchange.step(changed(final, **fields))


def test_a_longer_proof_is_wrong() -> None:
    exchange, client = ScramExchange(SECRETS, "server"), ScramClient("SCRAM-SHA-256", "alice", "secret", "client")
    final = client.final(exchange.step(client.first())[0])
    proof = b64decode(final.rpartition(b",p=")[2])
    with pytest.raises(LoginFailed):
        exchange.step(changed(final, p=b64encode(proof + b"x").decode()))


def test_a_replayed_login_is_refused() -> None:
    client = ScramClient("SCRAM-SHA-256", "alice", "secret", "client")
    first = client.first()
    final = client.final(ScramExchange(SECRETS, "server").step(first)[0])
    later = ScramExchange(SECRETS, "later")
    later.step(first)
    with pytest.raises(LoginFailed, match="replayed"):
        later.step(final)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_are_refused(one: bytes, other: bytes) -> None:
    exchange = ScramExchange(SECRETS, "server")
    with pytest.raises(LoginFailed):
        exchange.step(one)
    exchange.step(b"n,,n=alice,r=x")
    with pytest.raises(LoginFailed):
        exchange.step(other)


def test_keys_are_not_shown() -> None:
    account = SECRETS.users["alice"]
    assert account.credential.stored_key.hex()[:8] not in repr(account)
    assert repr(account.credential.server_key) not in repr(account)
