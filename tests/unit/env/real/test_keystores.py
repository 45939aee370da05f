"""JKS and PKCS12 stores in data/, made with keytool: a key with its own certificate, and that certificate as a trusted one.

The stores' password is PASSWORD; the key in key.jks has its own, KEY_PASSWORD.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.support.servers.certificates import PASSWORD

from ottla.env import TlsFailed, TlsOptions
from ottla.env.real.keystores import KeystoreError, read_keystore
from ottla.env.real.tls import tls_context

DATA = Path(__file__).parent / "data"
KEY_PASSWORD = "battery-staple"
CERTIFICATE = (DATA / "client.pem").read_text().strip()


def refusal(options: TlsOptions) -> str:
    with pytest.raises(TlsFailed) as caught:
        tls_context(options)
    return str(caught.value)


def options(kind: str, password: str = PASSWORD, key_password: str | None = None) -> TlsOptions:
    return TlsOptions(
        ca=str(DATA / f"trust.{kind}"),
        ca_password=password,
        certificate=str(DATA / f"key.{kind}"),
        certificate_password=password,
        key_password=key_password,
    )


def test_jks_gives_trust_and_identity() -> None:
    # OpenSSL checks that key and certificate are a pair.
    context = tls_context(options("jks", key_password=KEY_PASSWORD))
    assert context.cert_store_stats()["x509"] == 1
    found = read_keystore((DATA / "trust.jks").read_bytes(), None)
    assert found.trusted.split() == CERTIFICATE.split()
    assert found.identity == ""


def test_pkcs12_gives_trust_and_identity() -> None:
    pytest.importorskip("cryptography")
    context = tls_context(options("p12"))
    assert context.cert_store_stats()["x509"] == 1
    assert "trust.p12: its password is wrong" in refusal(options("p12", password="incorrect"))
    with pytest.raises(KeystoreError, match="it is no PKCS12 store"):
        read_keystore(b"0\x82nonsense", None)


def test_pkcs12_without_cryptography_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert "pip install cryptography" in refusal(options("p12"))


def test_wrong_passwords_and_stores_are_named(tmp_path: Path) -> None:
    assert "trust.jks: the store's password is wrong" in refusal(options("jks", password="incorrect"))
    assert "the password of its private key is wrong (ssl.key.password" in refusal(options("jks"))
    no_password = TlsOptions(certificate=str(DATA / "key.jks"))
    assert "key.jks: it has a private key, which needs a password" in refusal(no_password)
    assert "the store has no private key" in refusal(TlsOptions(certificate=str(DATA / "trust.jks")))
    wrong = TlsOptions(ca=str(DATA / "key.jks"), ca_password=PASSWORD)
    assert "(ssl.truststore.location)" in refusal(wrong)
    cut = (DATA / "trust.jks").read_bytes()
    for length in range(4, len(cut) - 20):
        with pytest.raises(KeystoreError, match="damaged"):
            read_keystore(cut[:length], None)
    with pytest.raises(KeystoreError, match="JCEKS"):
        read_keystore(b"\xce\xce\xce\xce", None)
