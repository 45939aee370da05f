"""The messages of each mechanism."""

import pytest

from ottla.link.sasl import BearerExchange, PlainExchange, SaslFault, exchange_with_password
from ottla.link.security import SaslOptions


def test_plain() -> None:
    exchange = PlainExchange("älice", "sécret")
    assert exchange.first() == "\0älice\0sécret".encode()
    assert exchange.next(b"") is None


def test_scram_checks_the_server_before_it_is_content() -> None:
    exchange = exchange_with_password(SaslOptions("SCRAM-SHA-256", "user", "pencil"), "rOprNGfwEbeRWgbNEkqO")
    assert exchange.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    proof = exchange.next(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert proof is not None
    assert proof.endswith(b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    with pytest.raises(SaslFault, match="the node does not follow SCRAM: it cannot prove"):
        exchange.next(b"v=AAAA")
    assert exchange.next(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def test_delegation_tokens_say_so() -> None:
    exchange = exchange_with_password(SaslOptions("SCRAM-SHA-512", "id", "hmac", is_delegation_token=True), "abc")
    assert exchange.first() == b"n,,n=id,r=abc,tokenauth=true"


def test_bearer_token_with_extensions() -> None:
    exchange = BearerExchange("a.b.c=", {"traceId": "12 3", "other": "x"})
    assert exchange.first() == b"n,,\x01auth=Bearer a.b.c=\x01traceId=12 3\x01other=x\x01\x01"
    assert exchange.next(b"") is None
    assert BearerExchange("t", {}).first() == b"n,,\x01auth=Bearer t\x01\x01"


def test_refused_bearer_token_is_acknowledged_once() -> None:
    exchange = BearerExchange("t", {})
    assert exchange.next(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SaslFault, match="invalid_token"):
        exchange.next(b"again")


@pytest.mark.parametrize("token", ["", "a b", "a\x01b", "tökén"])
def test_impossible_tokens(token: str) -> None:
    with pytest.raises(SaslFault, match="no bearer token"):
        BearerExchange(token, {})


@pytest.mark.parametrize("extension", [("auth", "x"), ("a1", "x"), ("", "x"), ("a", ""), ("a", "\x01")])
def test_impossible_extensions(extension: tuple[str, str]) -> None:
    with pytest.raises(SaslFault, match="SASL extension"):
        BearerExchange("t", dict([extension]))
