"""Principals, and their encoding in Envelope."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.channel.envelope import decode_principal, encode_principal
from ottla.errors import DecodeError
from ottla.ids import ANONYMOUS, Principal

NAMES = st.text(max_size=200)


@given(NAMES, NAMES, st.booleans())
def test_round_trip(type: str, name: str, is_token_authenticated: bool) -> None:
    principal = Principal(type, name, is_token_authenticated)
    assert decode_principal(encode_principal(principal)) == principal


def test_encoding_of_the_anonymous_user() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert encode_principal(ANONYMOUS) == b"\0\0" + b"\x05User" + b"\x0aANONYMOUS" + b"\0" + b"\0"


@pytest.mark.parametrize("damaged", [b"", b"\0", b"\0\1\5User\2a\0\0", b"\0\0\5Use", encode_principal(ANONYMOUS) + b"x"])
def test_damage_is_a_decode_error(damaged: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_principal(damaged)
