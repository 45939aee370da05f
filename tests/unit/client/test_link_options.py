"""Settings of a client reach its connections."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.certificates import PASSWORD
from tests.support.servers.tls_server import TestCertificates, make_certificates

from ottla import Admin, Consumer, Producer, aio
from ottla.client.link_options import link_options
from ottla.client.world import real_client_world
from ottla.config.client import admin_settings
from ottla.errors import ConfigError
from ottla.link.tokens import TokenCache


def test_settings_become_options_of_connections() -> None:
    settings = admin_settings(
        "localhost:9092",
        {"request.timeout.ms": 1234, "socket.connection.setup.timeout.ms": 321, "send.buffer.bytes": 4096, "client.id": "me"},
        {},
    )
    options = link_options(settings, real_client_world())
    assert (options.request_timeout_ms, options.connect_timeout_ms, options.client_id) == (1234, 321, "me")
    assert options.socket.send_buffer_bytes == 4096
    assert options.socket.receive_buffer_bytes == settings.receive_buffer_bytes


def test_a_client_without_an_id_gets_the_default() -> None:
    assert (
        link_options(admin_settings("localhost:9092", None, {}), real_client_world(), "ottla-admin").client_id == "ottla-admin"
    )


def test_tls_and_sasl_reach_the_connections() -> None:
    settings = admin_settings(
        "localhost:9092",
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", "ssl.truststore.location": "ca.pem"},
        {"sasl_plain_username": "me", "sasl_plain_password": "secret"},
    )
    security = link_options(settings, real_client_world()).security
    assert security.tls is not None
    assert security.sasl is not None
    assert security.tls.ca == "ca.pem"
    assert (security.sasl.mechanism, security.sasl.username, security.sasl.password) == ("SCRAM-SHA-256", "me", "secret")


def test_without_security_settings_there_is_neither_tls_nor_sasl() -> None:
    security = link_options(admin_settings("localhost:9092", None, {}), real_client_world()).security
    assert security.tls is None
    assert security.sasl is None


def test_all_connections_share_one_token() -> None:
    settings = admin_settings(
        "localhost:9092",
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.login.refresh.window.factor": "0.5"},
        {"sasl_oauth_token": lambda: ("t", 4e9, {})},
    )

    async def tokens() -> None:
        security = link_options(settings, real_client_world()).security
        assert security.sasl is not None
        assert isinstance(security.sasl.token, TokenCache)
        assert await security.sasl.token.get() is await security.sasl.token.get()

    asyncio.run(tokens())


def test_a_delegation_token_is_marked() -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'{module} required username="id" password="hmac" tokenauth=true;'
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas}
    security = link_options(admin_settings("localhost:9092", given, {}), real_client_world()).security
    assert security.sasl is not None
    assert security.sasl.is_delegation_token


# Files and texts of TLS are checked when a client is made

FACES: list[Any] = [Producer, Consumer, Admin, aio.Producer, aio.Consumer, aio.Admin]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> TestCertificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def refusal(face: Any, **settings: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        face("localhost:9092", security_protocol="SSL", **settings)
    assert caught.value.setting is not None
    assert caught.value.setting in str(caught.value)
    return caught.value


@pytest.mark.parametrize("face", FACES)
def test_a_missing_file_is_an_error_of_the_constructor(face: Any, tmp_path: Path) -> None:
    missing = tmp_path / "ca.pem"
    error = refusal(face, ssl_truststore_location=str(missing))
    assert error.setting == "ssl.truststore.location"
    assert f"file {missing}: there is no such file" in str(error)


def test_a_folder_is_no_certificate(tmp_path: Path) -> None:
    assert refusal(Producer, ssl_keystore_location=str(tmp_path)).setting == "ssl.keystore.location"


def test_a_file_without_pem_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "ca.pem"
    other.write_text("trust me")
    error = refusal(Producer, ssl_truststore_location=str(other))
    assert error.setting == "ssl.truststore.location"
    assert "there is no certificate in PEM form" in str(error)


def test_a_key_must_belong_to_its_certificate(certificates: TestCertificates) -> None:
    error = refusal(
        Producer,
        ssl_keystore_certificate_chain=certificates.client.certificate.read_text(),
        ssl_keystore_key=certificates.server.key.read_text(),
    )
    assert error.setting == "ssl.keystore.key"
    assert "does not belong to its certificate" in str(error)


def test_a_wrong_password_is_named(certificates: TestCertificates) -> None:
    chain, key = certificates.client.certificate.read_text(), certificates.client.encrypted_key().read_text()
    given = {"ssl_keystore_certificate_chain": chain, "ssl_keystore_key": key}
    assert refusal(Producer, **given, ssl_key_password="incorrect").setting == "ssl.key.password"
    assert refusal(Producer, **given).setting == "ssl.key.password"
    Producer("localhost:9092", security_protocol="SSL", **given, ssl_key_password=PASSWORD).close()


def test_an_unknown_cipher_suite_is_named() -> None:
    assert refusal(Producer, ssl_cipher_suites="ROT13").setting == "ssl.cipher.suites"


def test_a_damaged_store_is_named_by_the_setting_of_its_file(tmp_path: Path) -> None:
    damaged = tmp_path / "ca.pem"
    damaged.write_text("-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n")
    with pytest.raises(ConfigError, match=r"\(ssl\.truststore\) cannot be read") as caught:
        Producer("localhost:9092", security_protocol="SSL", ssl_truststore_location=str(damaged))
    assert caught.value.setting == "ssl.truststore.location"
