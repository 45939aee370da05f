"""The work of a failed login does not tell whether the user exists: hashes, comparisons, decodings are counted, not timed."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from ottla.broker.authentication.accounts import ScramAccounts
from ottla.broker.authentication.exchange import Exchange, LoginFailed
from ottla.broker.authentication.plain import PlainExchange, PlainUsers
from ottla.broker.authentication.scram import ScramExchange
from ottla.broker.authentication.token_credentials import TokenCredentials
from ottla.link.scram import ScramClient
from ottla.metadata.image.security import SecurityImage
from ottla.metadata.scram import MECHANISMS, keys_of, salted_password
from ottla.wire.messages.metadata_records import UserScramCredentialRecord

WORK = ("_hashlib", "_hmac", "_operator", "binascii", "hmac", "_sha2", "_sha256", "_sha512")
"""Modules whose functions take a time that could be measured."""
PASSWORDS = {"alice": "secret", "robert": "another"}


def work_of(act: Callable[[], object]) -> list[str]:
    """The functions that `act` calls in those modules, in their order."""
    called: list[str] = []

    def note(frame: FrameType, event: str, what: object) -> None:
        if event == "c_call":
            of = getattr(what, "__self__", None)
            module = getattr(what, "__module__", None) or type(of).__module__
            if module in WORK:
                called.append(f"{module}.{getattr(what, '__name__', what)}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return called


def accounts_of(mechanism: str) -> ScramAccounts:
    number, hash_name = MECHANISMS[mechanism]
    credentials = {}
    for name, password in PASSWORDS.items():
        keys = keys_of(hash_name, salted_password(hash_name, password.encode(), b"salt-of-26-characters-long", 4096))
        credentials[name, number] = UserScramCredentialRecord(
            name=name,
            mechanism=number,
            salt=b"salt-of-26-characters-long",
            stored_key=keys.stored_key,
            server_key=keys.server_key,
            iterations=4096,
        )
    image = SecurityImage(credentials=credentials)
    return ScramAccounts(mechanism, lambda: image, TokenCredentials(None, lambda: b"salt"))


def failed_steps(exchange: Exchange, messages: Callable[[bytes | None], bytes | None]) -> tuple[list[str], LoginFailed]:
    """What the server does in a login that fails."""
    done: list[str] = []
    failures: list[LoginFailed] = []
    said: bytes | None = None
    while not failures and (message := messages(said)) is not None:
        answers: list[bytes] = []

        def step(message: bytes = message, answers: list[bytes] = answers) -> None:
            try:
                answers.append(exchange.step(message)[0])
            except LoginFailed as failed:
                failures.append(failed)

        done += work_of(step)
        said = answers[0] if answers else None
    return done, failures[0]


def scram_messages(mechanism: str, username: str) -> Callable[[bytes | None], bytes | None]:
    client = ScramClient(mechanism, username, "wrong", "nonce")
    return lambda said: client.first() if said is None else client.final(said)


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_scram_works_as_much_for_a_user_that_does_not_exist(mechanism: str) -> None:
    accounts = accounts_of(mechanism)
    accounts.decoy("warm")
    known = failed_steps(ScramExchange(accounts, "server"), scram_messages(mechanism, "alice"))
    other = failed_steps(ScramExchange(accounts, "server"), scram_messages(mechanism, "robert"))
    unknown = failed_steps(ScramExchange(accounts, "server"), scram_messages(mechanism, "nobody"))
    assert known[0] == other[0] == unknown[0]
    assert sum("digest" in each for each in known[0]) >= 4, known[0]
    assert known[1].told == unknown[1].told


def test_decoy_looks_like_a_users_credential_and_stays_the_same() -> None:
    accounts = accounts_of("SCRAM-SHA-512")
    decoy = accounts.decoy("nobody")
    assert decoy == accounts.decoy("nobody")
    assert decoy.salt != accounts.decoy("nobody-else").salt
    known = accounts.account("alice", False)
    assert known is not None
    assert (len(decoy.salt), decoy.iterations) == (len(known.credential.salt), known.credential.iterations)


def test_plain_works_as_much_for_a_user_that_does_not_exist() -> None:
    users = PlainUsers({f"user_{name}": password for name, password in PASSWORDS.items()})
    found = []
    for username in ("alice", "robert", "nobody"):
        message = f"\0{username}\0wrong".encode()
        found.append(failed_steps(PlainExchange(users), lambda said, message=message: None if said else message))  # type: ignore[misc]
    works, failures = zip(*found, strict=True)
    assert works[0] == works[1] == works[2]
    assert any("compare_digest" in each for each in works[0]), works[0]
    assert len({each.told for each in failures}) == 1
