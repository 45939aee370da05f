"""Contexts from options: every mistake in them has its own error, which names the option."""

import ssl
from pathlib import Path

import pytest
from tests.support.servers.certificates import PASSWORD
from tests.support.servers.tls_server import TestCertificates

from ottla.env import TlsFailed, TlsOptions
from ottla.env.real.tls import TLS_1_3_SUITES, openssl_name, refused_suite, tls_context


def refusal(options: TlsOptions) -> str:
    with pytest.raises(TlsFailed) as caught:
        tls_context(options)
    assert "\n" not in str(caught.value)
    assert caught.value.setting is not None, "every mistake is in a setting"
    return str(caught.value)


def test_paths_and_texts_give_the_same_context(certificates: TestCertificates) -> None:
    client, ca = certificates.client, certificates.authority.certificate
    by_path = TlsOptions(ca=str(ca), certificate=str(client.certificate), key=str(client.key))
    by_text = TlsOptions(ca=ca.read_text(), certificate=client.certificate.read_text(), key=client.key.read_text())
    assert tls_context(by_path) is tls_context(by_text), "cached by what was read"
    assert tls_context(TlsOptions(ca=str(ca), certificate=str(client.single_file()))) is not tls_context(by_path)
    assert tls_context(by_path).verify_mode == ssl.CERT_REQUIRED


def test_a_renewed_file_gives_a_new_context(certificates: TestCertificates, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text(certificates.authority.certificate.read_text())
    before = tls_context(TlsOptions(ca=str(ca)))
    ca.write_text(certificates.stranger_authority.certificate.read_text())
    after = tls_context(TlsOptions(ca=str(ca)))
    assert after is not before
    assert after.get_ca_certs()[0]["subject"] == ((("commonName", "strangers"),),)


def test_without_trusted_certificates_the_systems_are_used() -> None:
    context = tls_context(TlsOptions())
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_encrypted_key_needs_its_password(certificates: TestCertificates) -> None:
    client = certificates.client
    options = {"certificate": str(client.certificate), "key": str(client.encrypted_key())}
    assert tls_context(TlsOptions(**options, key_password=PASSWORD))
    assert "password is wrong (ssl.key.password)" in refusal(TlsOptions(**options, key_password="incorrect"))
    assert "is encrypted: give its password (ssl.key.password)" in refusal(TlsOptions(**options))


def test_errors_name_the_file_and_the_option(certificates: TestCertificates, tmp_path: Path) -> None:
    client, missing = certificates.client, str(tmp_path / "no.pem")
    assert f"(ssl.truststore.location), file {missing}: there is no such file" in refusal(TlsOptions(ca=missing))
    assert f"(ssl.keystore.location), file {missing}: there is no such file" in refusal(TlsOptions(certificate=missing))
    assert f"(ssl.keystore.key), file {missing}" in refusal(TlsOptions(certificate=str(client.certificate), key=missing))
    assert "cannot be read" in refusal(TlsOptions(ca=str(tmp_path)))
    assert "no certificate in PEM form" in refusal(TlsOptions(ca=str(client.key)))
    broken = "-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n"
    assert "(ssl.truststore) cannot be read" in refusal(TlsOptions(ca=broken))
    assert "certificate or its private key cannot be used" in refusal(
        TlsOptions(certificate=broken, key=client.key.read_text())
    )


def test_certificate_and_key_must_be_a_pair(certificates: TestCertificates) -> None:
    certificate = str(certificates.client.certificate)
    assert "does not belong to its certificate" in refusal(
        TlsOptions(certificate=certificate, key=str(certificates.server.key))
    )
    assert "without its private key" in refusal(TlsOptions(certificate=certificate))
    assert "no certificate" in refusal(TlsOptions(key=str(certificates.client.key)))


def test_versions() -> None:
    context = tls_context(TlsOptions(versions=("TLSv1.3",)))
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)
    assert "SSLv3 is no TLS version (ssl.enabled.protocols)" in refusal(TlsOptions(versions=("TLSv1.2", "SSLv3")))
    assert "no TLS version is allowed" in refusal(TlsOptions(versions=()))


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_ciphers_in_javas_spelling(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl
    context = tls_context(TlsOptions(ciphers=(java,)))
    assert [each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"] == [openssl]
    assert context.maximum_version == ssl.TLSVersion.TLSv1_2, "no suite of TLS 1.3 is allowed"


def test_ciphers_of_tls_1_3() -> None:
    first = TLS_1_3_SUITES[0]
    assert tls_context(TlsOptions(ciphers=(first,))).minimum_version == ssl.TLSVersion.TLSv1_3
    both = TlsOptions(ciphers=(first, "ECDHE-RSA-AES128-GCM-SHA256"))
    assert tls_context(both).minimum_version == ssl.TLSVersion.TLSv1_2
    assert tls_context(both).maximum_version == ssl.TLSVersion.TLSv1_3
    assert refused_suite(both, first) is None
    assert refused_suite(TlsOptions(), TLS_1_3_SUITES[1]) is None
    assert f"chose the cipher suite {TLS_1_3_SUITES[1]}" in str(refused_suite(both, TLS_1_3_SUITES[1]))


def test_unusable_ciphers() -> None:
    known, unknown = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_ROT13_SHA"
    assert f"the cipher suite {unknown} (ssl.cipher.suites) is not known" in refusal(TlsOptions(ciphers=(known, unknown)))
    assert "works with an allowed TLS version" in refusal(TlsOptions(ciphers=(known,), versions=("TLSv1.3",)))
