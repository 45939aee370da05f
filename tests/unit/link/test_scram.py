"""SCRAM: the vectors of the RFCs, any user and password against a server by the book, and servers that lie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.nodes.sasl_server import ScramServer

from ottla.link.scram import HASHES, ScramClient, ScramFault, escaped

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)


def test_vector_of_rfc_7677() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert client.final(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096") == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    client.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_vector_of_rfc_5802(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HASHES, "SCRAM-SHA-1", "sha1")  # the RFC's own example; Kafka does not offer it
    client = ScramClient("SCRAM-SHA-1", "user", "pencil", "fyko+d2lbbFgONRv9qkxdawL")
    assert client.first() == b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"
    assert client.final(b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096") == (
        b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
    )
    client.verify(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=")


def test_extensions_follow_the_nonce() -> None:
    client = ScramClient("SCRAM-SHA-512", "id", "hmac", "abc", "tokenauth=true")
    assert client.first() == b"n,,n=id,r=abc,tokenauth=true"


@given(TEXTS, TEXTS, st.sampled_from(sorted(HASHES)))
def test_client_and_server_agree_for_any_user_and_password(username: str, password: str, mechanism: str) -> None:
    client, server = ScramClient(mechanism, username, password, "abc"), ScramServer(HASHES[mechanism], password)
    client.verify(server.final(client.final(server.first(client.first()))))
    assert server.username == username


@given(TEXTS)
def test_escaped_names_hold_no_separators(name: str) -> None:
    text = escaped(name)
    assert "," not in text
    assert text.replace("=2C", ",").replace("=3D", "=") == name


def begun() -> ScramClient:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", "abc")
    client.first()
    return client


@pytest.mark.parametrize(
    ("server_first", "says"),
    [
        (b"r=abc,s=c2FsdA==,i=4096", "nonce does not continue ours"),
        (b"r=xyzabc,s=c2FsdA==,i=4096", "nonce does not continue ours"),
        (b"r=abcdef,s=c2FsdA==,i=4095", "it asks for 4095 iterations"),
        (b"r=abcdef,s=c2FsdA==,i=99999999999", "it asks for 99999999999 iterations"),
        (b"r=abcdef,s=c2FsdA==,i=-1", "it asks for -1 iterations"),
        (b"r=abcdef,s=c2FsdA==", "it asks for no iterations"),
        (b"r=abcdef,i=4096", "lacks the field s"),
        (b"r=abcdef,s=%%%,i=4096", "field s is not Base64"),
        (b"m=x,r=abcdef,s=c2FsdA==,i=4096", "extension that is not known"),
        (b"", "no SCRAM message"),
        (b"\xff", "not UTF-8"),
        (b"r=abcdef,r=abcdef,s=c2FsdA==,i=4096", "no SCRAM message"),
    ],
)
def test_wrong_first_messages(server_first: bytes, says: str) -> None:
    with pytest.raises(ScramFault, match=says):
        begun().final(server_first)


def test_server_that_does_not_know_the_password() -> None:
    client, server = begun(), ScramServer("sha256", "pencil")
    client.final(server.first(b"n,,n=user,r=abc"))
    with pytest.raises(ScramFault, match="it cannot prove that it knows the password"):
        client.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(ScramFault, match="it says invalid-proof"):
        client.verify(b"e=invalid-proof")
    with pytest.raises(ScramFault, match="lacks the field v"):
        client.verify(b"x=y")


def test_nothing_is_verified_before_the_proof() -> None:
    with pytest.raises(ScramFault):
        begun().verify(b"v=")
    with pytest.raises(ScramFault):
        begun().verify(b"v=AAAA")


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_of_a_server_are_a_fault(message: bytes, is_final: bool) -> None:
    client = begun()
    if is_final:
        client.final(b"r=abcdef,s=c2FsdA==,i=4096")
    with pytest.raises(ScramFault):
        (client.verify if is_final else client.final)(message)
