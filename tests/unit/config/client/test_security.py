"""TLS and SASL settings."""

from typing import Any

import pytest

from ottla.config.client.build import consumer_settings, producer_settings
from ottla.config.client.classes import PythonPath
from ottla.config.client.security import SecuritySettings, TokenSettings
from ottla.errors import ConfigError

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="s3cret";'
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="s3cret";'
PEM = "-----BEGIN SOMETHING-----"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"


def security(**keywords: Any) -> SecuritySettings:
    return producer_settings("a:1", None, keywords).security


def test_without_settings_nothing_is_encrypted() -> None:
    settings = security()
    assert settings == SecuritySettings()
    assert (settings.uses_tls, settings.uses_sasl) == (False, False)


@pytest.mark.parametrize(
    ("protocol", "uses_tls", "uses_sasl"), [("SSL", True, False), ("SASL_PLAINTEXT", False, True), ("sasl_ssl", True, True)]
)
def test_protocols(protocol: str, uses_tls: bool, uses_sasl: bool) -> None:
    settings = security(security_protocol=protocol, sasl_mechanism="PLAIN", sasl_jaas_config=PLAIN)
    assert (settings.protocol, settings.uses_tls, settings.uses_sasl) == (protocol.upper(), uses_tls, uses_sasl)


def test_pem_files() -> None:
    settings = security(
        security_protocol="SSL",
        ssl_truststore_type="PEM",
        ssl_truststore_location="ca.pem",
        ssl_keystore_type="PEM",
        ssl_keystore_location="client.pem",
        ssl_key_password="s3cret",
    )
    assert (settings.ca, settings.certificate, settings.key) == ("ca.pem", "client.pem", None)
    assert settings.key_password == "s3cret"
    assert "s3cret" not in repr(settings)


def test_pem_texts() -> None:
    settings = security(
        security_protocol="SSL",
        ssl_truststore_certificates=f"{PEM} CA",
        ssl_keystore_certificate_chain=f"{PEM} CHAIN",
        ssl_keystore_key=f"{PEM} KEY",
    )
    assert (settings.ca, settings.certificate, settings.key) == (f"{PEM} CA", f"{PEM} CHAIN", f"{PEM} KEY")
    assert "KEY" not in repr(settings)


def test_stores_of_java_are_taken_with_their_passwords() -> None:
    assert security(security_protocol="SSL", ssl_truststore_location="ca.crt").ca == "ca.crt"
    found = security(
        security_protocol="SSL",
        ssl_truststore_location="ca.jks",
        ssl_truststore_password="one",
        ssl_keystore_location="mine",
        ssl_keystore_type="pkcs12",
        ssl_keystore_password="two",
    )
    assert (found.ca, found.ca_password, found.certificate, found.certificate_password) == ("ca.jks", "one", "mine", "two")
    assert "two" not in repr(found)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"ssl_keystore_location": "k", "ssl_keystore_type": "BCFKS"}, ["ssl.keystore.type=BCFKS", "keytool -importkeystore"]),
        ({"ssl_keystore_location": "k", "ssl_keystore_key": "K"}, ["ssl.keystore.location and ssl.keystore.key"]),
        ({"ssl_keystore_key": "K"}, ["ssl.keystore.key is set, but ssl.keystore.certificate.chain is not"]),
        ({"ssl_keystore_certificate_chain": "C"}, ["ssl.keystore.certificate.chain is set, but ssl.keystore.key is not"]),
        ({"ssl_truststore_location": "t", "ssl_truststore_certificates": "C"}, ["ssl.truststore.location and"]),
        ({"ssl_keystore_location": "k.pem", "ssl_keystore_password": "s3cret"}, ["ssl.key.password instead"]),
        ({"ssl_truststore_location": "t.pem", "ssl_truststore_password": "s3cret"}, ["drop it"]),
        ({"ssl_keystore_location": PEM}, ["ssl.keystore.location has a PEM text", "ssl.keystore.key"]),
        ({"ssl_truststore_certificates": "/x.pem"}, ["ssl.truststore.certificates has no PEM text", "ssl.truststore.location"]),
        ({"ssl_key_password": "s3cret"}, ["ssl.key.password is given without a key"]),
        ({"ssl_endpoint_identification_algorithm": "ldap"}, ["must be https, or empty"]),
        ({"ssl_enabled_protocols": "TLSv1.1,TLSv1.2"}, ["has TLSv1.1", "TLSv1.3"]),
    ],
)
def test_tls_mistakes(keywords: dict[str, str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        security(security_protocol="SSL", **keywords)
    assert [word for word in words if word not in str(refused.value)] == []
    assert "s3cret" not in str(refused.value)


def test_the_host_name_check_can_be_turned_off() -> None:
    assert security(security_protocol="SSL").check_hostname is True
    assert security(security_protocol="SSL", ssl_endpoint_identification_algorithm="").check_hostname is False


def test_versions_and_ciphers() -> None:
    settings = security(
        security_protocol="SSL",
        ssl_enabled_protocols=["TLSv1.3"],
        ssl_cipher_suites="TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256",
    )
    assert settings.tls_versions == ("TLSv1.3",)
    assert settings.ciphers == ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256")


@pytest.mark.parametrize(("mechanism", "jaas"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("scram-sha-512", SCRAM)])
def test_jaas_and_keywords_give_the_same(mechanism: str, jaas: str) -> None:
    by_jaas = security(security_protocol="SASL_SSL", sasl_mechanism=mechanism, sasl_jaas_config=jaas)
    by_keywords = security(
        security_protocol="SASL_SSL", sasl_mechanism=mechanism, sasl_plain_username="alice", sasl_plain_password="s3cret"
    )
    assert by_jaas == by_keywords
    assert (by_jaas.mechanism, by_jaas.username, by_jaas.password) == (mechanism.upper(), "alice", "s3cret")


def test_a_token_function() -> None:
    def token() -> str:
        return "t"

    for jaas in (None, OAUTH):
        settings = security(
            security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", sasl_oauth_token=token, sasl_jaas_config=jaas
        )
        assert settings.token is token
        assert settings.token_refresh == (0.8, 0.05, 60, 300)


SECRET = "sasl.oauthbearer.client.credentials.client.secret"
ENDPOINT = {"sasl.oauthbearer.token.endpoint.url": "https://login.example/token"}


def tokens(**settings: Any) -> TokenSettings:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "group.id": "g", **settings}
    found = consumer_settings("b:1", given).security.token_settings
    assert found is not None
    assert "s3cret" not in repr(found)
    return found


def test_a_token_endpoint() -> None:
    secret = {"sasl.oauthbearer.client.credentials.client.id": "me", SECRET: "s3cret"}
    found = tokens(**ENDPOINT, **secret, **{"sasl.oauthbearer.scope": "kafka"})
    assert (found.handler, found.url) == ("endpoint", "https://login.example/token")
    assert (found.client_id, found.client_secret, found.scope) == ("me", "s3cret", "kafka")
    assert found.given == {**ENDPOINT, **secret, "sasl.oauthbearer.scope": "kafka"} | {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
    }


def test_a_token_endpoint_as_java_programs_name_it() -> None:
    """With the handler's class, and everything else in sasl.jaas.config."""
    handler = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
    options = 'clientId="me" clientSecret="s3cret" scope="kafka" extension_logicalCluster="lkc-1"'
    jaas = OAUTH.replace(";", f" {options};")
    found = tokens(**ENDPOINT, **{"sasl.login.callback.handler.class": handler, "sasl.jaas.config": jaas})
    assert (found.handler, found.client_id, found.client_secret, found.scope) == ("endpoint", "me", "s3cret", "kafka")
    assert found.extensions == {"logicalCluster": "lkc-1"}


def test_a_token_file() -> None:
    found = tokens(**{"sasl.oauthbearer.token.endpoint.url": "file:///var/run/my%20token"})
    assert (found.handler, found.url) == ("file", "/var/run/my token")


@pytest.mark.parametrize(
    ("written", "handler"),
    [
        ("azure", "azure"),
        ("AWS_MSK_IAM", "aws-msk-iam"),
        ("shadedmskiam.software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler", "aws-msk-iam"),
        ("com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler", "google"),
        ("logins:token", PythonPath("logins", "token")),
        ("my.logins.token", PythonPath("my.logins", "token")),
    ],
)
def test_what_fetches_tokens(written: str, handler: object) -> None:
    assert tokens(**{"sasl.login.callback.handler.class": written}).handler == handler


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({}, ["sasl.mechanism is GSSAPI", "Kerberos is not supported", "SCRAM-SHA-512"]),
        ({"sasl_mechanism": "DIGEST-MD5"}, ["sasl.mechanism is DIGEST-MD5", "set one of PLAIN"]),
        ({"sasl_mechanism": "PLAIN"}, ["needs a username", "sasl_plain_username"]),
        ({"sasl_mechanism": "PLAIN", "sasl_plain_username": "a"}, ["needs a password", "sasl_plain_password"]),
        ({"sasl_mechanism": "PLAIN", "sasl_jaas_config": SCRAM}, ["ScramLoginModule", "sasl.mechanism is PLAIN"]),
        ({"sasl_mechanism": "SCRAM-SHA-256", "sasl_jaas_config": PLAIN}, ["PlainLoginModule, which is for PLAIN"]),
        ({"sasl_mechanism": "PLAIN", "sasl_jaas_config": "com.x.Mine required;"}, ["com.x.Mine", "not known here"]),
        (
            {"sasl_mechanism": "PLAIN", "sasl_jaas_config": PLAIN, "sasl_plain_password": "s3cret2"},
            ["sasl_plain_password and the password of sasl.jaas.config differ"],
        ),
        (
            {"sasl_mechanism": "PLAIN", "sasl_plain_username": "a", "sasl_plain_password": b"s3cret"},
            ["sasl_plain_password must be a text, not bytes"],
        ),
        (
            {"sasl_mechanism": "PLAIN", "sasl_jaas_config": PLAIN, "sasl_oauth_token": str},
            ["sasl_oauth_token cannot be used with sasl.mechanism=PLAIN"],
        ),
        (
            {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token": str, "sasl_plain_username": "a"},
            ["sasl_plain_username cannot be used with sasl.mechanism=OAUTHBEARER"],
        ),
        ({"sasl_mechanism": "OAUTHBEARER"}, ["where tokens come from", "token.endpoint.url", "sasl_oauth_token"]),
        ({"sasl_mechanism": "AWS_MSK_IAM"}, ["set sasl.mechanism=OAUTHBEARER", "=aws-msk-iam"]),
        ({"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token": "s3cret"}, ["must be a function", "not str"]),
        (
            {"sasl_mechanism": "PLAIN", "sasl_jaas_config": PLAIN, "sasl_login_callback_handler_class": "azure"},
            ["sasl.login.callback.handler.class fetches tokens for OAUTHBEARER, but sasl.mechanism is PLAIN"],
        ),
        (
            {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token": str, "sasl_login_callback_handler_class": "azure"},
            ["sasl_oauth_token and sasl.login.callback.handler.class are both set"],
        ),
        (
            {"sasl_mechanism": "OAUTHBEARER", "sasl_login_callback_handler_class": "azur"},
            ["did you mean azure?", "package.module:Name"],
        ),
        (
            {"sasl_mechanism": "OAUTHBEARER", "sasl_login_callback_handler_class": "com.example.JavaHandler"},
            ["is a Java class", "use one of oauth, aws-msk-iam, azure, google", "package.module:Name"],
        ),
        (
            {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_endpoint_url": "https://login/token"},
            ["needs sasl.oauthbearer.client.credentials.client.id", 'clientId="…"'],
        ),
        (
            {
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauthbearer_token_endpoint_url": "https://login/token",
                "sasl_jaas_config": OAUTH.replace(";", ' clientId="me";'),
            },
            ["needs sasl.oauthbearer.client.credentials.client.secret"],
        ),
        (
            {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_endpoint_url": "login.example"},
            ["must begin with https://, http:// or file:"],
        ),
        (
            {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_endpoint_url": "file:token"},
            ["must be absolute: file:///path/of/token"],
        ),
        (
            {
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauthbearer_token_endpoint_url": "https://login/token",
                "sasl_oauthbearer_jwt_retriever_class": "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever",
            },
            ["JwtBearerJwtRetriever is not known here", "name a Python function"],
        ),
    ],
)
def test_sasl_mistakes(keywords: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        security(security_protocol="SASL_SSL", **keywords)
    assert [word for word in words if word not in str(refused.value)] == []
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"ssl_truststore_location": "ca.pem"}, ["ssl.truststore.location has no effect", "set security.protocol=SSL"]),
        ({"sasl_mechanism": "PLAIN"}, ["sasl.mechanism has no effect", "set security.protocol=SASL_SSL"]),
        ({"sasl_plain_username": "u", "sasl_plain_password": "p"}, ["sasl_plain_password and sasl_plain_username have no"]),
        ({"security_protocol": "SSL", "sasl_jaas_config": PLAIN}, ["sasl.jaas.config has no effect", "SASL_SSL"]),
    ],
)
def test_settings_that_the_protocol_does_not_use_are_warned_of(keywords: dict[str, str], words: list[str]) -> None:
    [notice] = producer_settings("a:1", None, keywords).notices
    assert [word for word in words if word not in notice] == []
