"""PLAIN: one message, checked against the users of a JAAS text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.authentication.exchange import LoggedIn, LoginFailed
from ottla.broker.authentication.plain import PlainExchange, PlainUsers
from ottla.ids import Principal
from ottla.link.sasl import PlainExchange as Client

USERS = PlainUsers({"user_alice": "secret", "user_": "nameless", "username": "admin", "password": "not-for-peers"})
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(TEXTS, TEXTS)
def test_our_client_logs_in(username: str, password: str) -> None:
    exchange = PlainExchange(PlainUsers({f"user_{username}": password}))
    assert exchange.step(Client(username, password).first()) == (b"", LoggedIn(Principal("User", username)))


def test_an_authorization_id_that_is_the_user_name() -> None:
    assert PlainExchange(USERS).step(b"alice\0alice\0secret")[1] is not None


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\0alice\0wrong", "user name or password is wrong"),
        (b"\0bob\0secret", "user name or password is wrong"),
        (b"\0admin\0not-for-peers", "user name or password is wrong"),
        (b"\0\0nameless", "the user name is empty"),
        (b"\0alice\0", "the password is empty"),
        (b"bob\0alice\0secret", "authorization id"),
        (b"alice\0secret", "this one has 2"),
        (b"\0alice\0secret\0", "this one has 4"),
        (b"", "this one has 1"),
    ],
)
def test_what_is_refused_and_said(message: bytes, reason: str) -> None:
    with pytest.raises(LoginFailed, match=reason) as failed:
        PlainExchange(USERS).step(message)
    assert failed.value.told is not None
    assert reason in failed.value.told
    assert "secret" not in failed.value.told


@given(st.binary(max_size=100))
def test_any_bytes_are_refused(message: bytes) -> None:
    with pytest.raises(LoginFailed):
        PlainExchange(USERS).step(message)


def test_users_are_not_shown() -> None:
    assert "secret" not in repr(USERS) + repr(vars(USERS))
