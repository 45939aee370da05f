"""The TLS options as a value."""

from ottla.env import TlsOptions


def test_secrets_are_not_shown() -> None:
    options = TlsOptions(ca="the-ca", certificate="the-certificate", key="the-key", key_password="the-password")
    assert not any(secret in repr(options) for secret in ("the-ca", "the-certificate", "the-key", "the-password"))
    assert "TLSv1.3" in repr(options)


def test_equal_options_are_one_key() -> None:
    assert len({TlsOptions(ca="a"), TlsOptions(ca="a"), TlsOptions(ca="b")}) == 2
