"""SCRAM users: set, deleted and described by requests, and logged in with; the same for Ottla and for Apache Kafka."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.peers.sasl_login import is_usable, plain_login, scram_login
from tests.support.servers.sasl_server import ALICES_PASSWORD

from ottla.errors.codes import ErrorCode
from ottla.metadata.scram import MECHANISMS, salted_password
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName

SALT = b"some salt"


@pytest.fixture
def admin(dial: Any) -> Any:
    return plain_login(dial(), "alice", ALICES_PASSWORD)


def upsertion(user: str, password: str, mechanism: str = "SCRAM-SHA-256", iterations: int = 4096) -> ScramCredentialUpsertion:
    number, hash_name = MECHANISMS[mechanism]
    salted = salted_password(hash_name, password.encode(), SALT, iterations) if iterations else b"x"
    return ScramCredentialUpsertion(name=user, mechanism=number, iterations=iterations, salt=SALT, salted_password=salted)


def alter(client: Any, *changes: ScramCredentialUpsertion | ScramCredentialDeletion) -> list[tuple[str, int]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    response = client.request(request, 0)
    assert all((result.error_message is None) == (not result.error_code) for result in response.results)
    return [(result.user, result.error_code) for result in response.results]


def described(client: Any, *users: str) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    response = client.request(DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users]), 0)
    assert (response.error_code, response.error_message) == (0, "")
    return {
        result.user: (result.error_code, sorted((each.mechanism, each.iterations) for each in result.credential_infos))
        for result in response.results
    }


def until(condition: Callable[[], bool]) -> None:
    """A broker learns of changes a little after the controller has answered."""
    deadline_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_a_user_logs_in_until_it_is_deleted(admin: Any, dial: Any, mechanism: str) -> None:
    name = f"user,of={mechanism}"
    assert alter(admin, upsertion(name, "first", mechanism, 5000)) == [(name, 0)]
    until(lambda: name in described(admin))
    assert described(admin, name) == {name: (0, [(MECHANISMS[mechanism].number, 5000)])}
    client = dial()
    done = scram_login(client, name, "first", mechanism)
    assert (done.error_code, done.session_lifetime_ms) == (0, 0)
    assert alter(admin, upsertion(name, "second", mechanism)) == [(name, 0)]
    until(lambda: not scram_login(dial(), name, "second", mechanism).error_code)
    assert scram_login(dial(), name, "first", mechanism).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    deletion = ScramCredentialDeletion(name=name, mechanism=MECHANISMS[mechanism].number)
    assert alter(admin, deletion) == [(name, 0)]
    until(lambda: name not in described(admin))
    assert scram_login(dial(), name, "second", mechanism).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert is_usable(client), "open connections stay"


def test_a_credential_is_for_its_mechanism(admin: Any, dial: Any) -> None:
    alter(admin, upsertion("only256", "pw"))
    until(lambda: "only256" in described(admin))
    assert scram_login(dial(), "only256", "pw").error_code == 0
    assert scram_login(dial(), "only256", "pw", "SCRAM-SHA-512").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    alter(admin, upsertion("only256", "pw", "SCRAM-SHA-512", 4097))
    until(lambda: described(admin, "only256")["only256"] == (0, [(1, 4096), (2, 4097)]))
    assert scram_login(dial(), "only256", "pw", "SCRAM-SHA-512").error_code == 0


def test_what_is_refused_and_in_which_order(admin: Any) -> None:
    alter(admin, upsertion("deleted", "pw"))
    unknown = upsertion("unknown", "pw")
    unknown.mechanism = 9
    results = alter(
        admin,
        upsertion("few", "pw", iterations=4095),
        upsertion("many", "pw", iterations=16385),
        upsertion("", "pw"),
        unknown,
        upsertion("twice", "pw"),
        upsertion("twice", "pw", "SCRAM-SHA-512"),
        upsertion("good", "pw"),
        ScramCredentialDeletion(name="nobody", mechanism=1),
        ScramCredentialDeletion(name="deleted", mechanism=1),
    )
    assert results[:2] == [("deleted", 0), ("good", 0)]
    assert sorted(results[2:]) == [
        ("", ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("few", ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("many", ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("nobody", ErrorCode.RESOURCE_NOT_FOUND),
        ("twice", ErrorCode.DUPLICATE_RESOURCE),
        ("unknown", ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ]
    until(lambda: "good" in described(admin))
    assert "twice" not in described(admin)


def test_users_that_are_described(admin: Any) -> None:
    alter(admin, upsertion("shown", "pw"))
    until(lambda: "shown" in described(admin))
    assert described(admin, "shown", "nobody") == {
        "shown": (0, [(1, 4096)]),
        "nobody": (ErrorCode.RESOURCE_NOT_FOUND, []),
    }
    assert described(admin, "shown", "shown")["shown"][0] == ErrorCode.DUPLICATE_RESOURCE
    everybody = admin.request(DescribeUserScramCredentialsRequest(users=None), 0)
    assert "shown" in {result.user for result in everybody.results}
