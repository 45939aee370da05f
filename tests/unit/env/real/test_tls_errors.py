"""Texts for OpenSSL's errors."""

import ssl

import pytest

from ottla.env.real.tls_errors import certificate_names, explain, explain_name, is_wrong_name


def failed(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


def unverified(code: int, message: str = "") -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, message
    return error


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "n:1 asks for a client certificate: give one (ssl.keystore)"),
        ("SSLV3_ALERT_BAD_CERTIFICATE", "n:1 refuses our client certificate"),
        ("SSLV3_ALERT_CERTIFICATE_UNKNOWN", "refuses our client certificate: check that the node trusts its issuer"),
        ("TLSV1_ALERT_UNKNOWN_CA", "does not trust the issuer of our client certificate"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "it may need a client certificate"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "none of the allowed TLS versions"),
        ("UNSUPPORTED_PROTOCOL", "none of the allowed TLS versions"),
        ("TLSV1_UNRECOGNIZED_NAME", "does not know itself by the server name"),
        ("WRONG_VERSION_NUMBER", "n:1 does not speak TLS: it may be a PLAINTEXT"),
        ("SOMETHING_NEW", "TLS with n:1 failed: something new"),
    ],
)
def test_what_openssl_says(reason: str, says: str) -> None:
    assert says in str(explain("n:1", failed(reason)))


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (18, "is not trusted: it signed its certificate itself"),
        (20, "is not trusted: the issuer of its certificate"),
        (10, "has expired"),
        (9, "is not valid yet"),
        (23, "cannot be verified: revoked"),
    ],
)
def test_what_is_wrong_with_a_certificate(code: int, says: str) -> None:
    assert says in str(explain("n:1", unverified(code, "revoked")))


def test_wrong_names() -> None:
    assert is_wrong_name(unverified(62))
    assert is_wrong_name(unverified(64))
    assert not is_wrong_name(unverified(10))
    assert not is_wrong_name(failed("X"))
    assert "is not for here: it is for a, b. Either" in str(explain_name("n:1", "here", ["a", "b"]))
    assert "is not for here: it is for another host" in str(explain_name("n:1", "here", []))


def test_names_of_a_certificate() -> None:
    subject = ((("organizationName", "o"),), (("commonName", "common"),))
    alternatives = (("DNS", "a"), ("email", "x@y"), ("IP Address", "1.2.3.4"))
    assert certificate_names({"subject": subject, "subjectAltName": alternatives}) == ["a", "1.2.3.4"]
    assert certificate_names({"subject": subject}) == ["common"]
    assert certificate_names({}) == []
