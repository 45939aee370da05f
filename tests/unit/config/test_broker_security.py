"""TLS and SASL of listeners: where a setting comes from, what is refused, and that secrets are not shown."""

import pytest
from tests.support.cases.config_files import BROKER, COMBINED, MAP

from ottla.config.broker import BrokerConfig
from ottla.config.broker_security import ListenerSecurity, ListenerSettings, TlsSettings
from ottla.config.values import InvalidConfig

SECRET = "correct-horse"
CHAIN, KEY = "-----BEGIN CERTIFICATE-----\nchain", f"-----BEGIN PRIVATE KEY-----\n{SECRET}"
SSL = COMBINED | {
    "listeners": "TLS://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "TLS",
    "listener.security.protocol.map": "TLS:SSL,CONTROLLER:PLAINTEXT",
}
STORE = {"ssl.keystore.location": "/key.jks", "ssl.keystore.password": SECRET}
SASL = COMBINED | {
    "listeners": "LOGIN://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "LOGIN",
    "listener.security.protocol.map": "LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.login.plain.sasl.jaas.config": f'PlainLoginModule required username="a" password="{SECRET}";',
    "listener.name.login.scram-sha-256.sasl.jaas.config": "ScramLoginModule required;",
}


def security(base: dict[str, str], changes: dict[str, str | None], name: str = "TLS") -> ListenerSecurity:
    settings = {**base, **changes}
    found = BrokerConfig.from_settings({each: text for each, text in settings.items() if text is not None})
    return found.listener_security[name]


def tls(changes: dict[str, str | None]) -> TlsSettings:
    found = security(SSL, changes).tls
    assert found is not None
    return found


def test_the_listeners_own_setting_comes_first() -> None:
    given = {"a": "plain", "listener.name.x.a": "own", "listener.name.x.plain.a": "mechanism", "listener.name.y.plain.b": "c"}
    x, y = ListenerSettings(given, "X"), ListenerSettings(given, "Y")
    assert (x.found("a"), x.found("a", "PLAIN")) == ("listener.name.x.a", "listener.name.x.plain.a")
    assert (y.found("a"), y.found("a", "PLAIN")) == ("a", "a")
    assert (x.found("b", "PLAIN"), y.found("b"), y.found("b", "PLAIN")) == (None, None, "listener.name.y.plain.b")


def test_values_are_parsed_and_errors_name_the_setting_as_it_is_written() -> None:
    given = {"connections.max.reauth.ms": "7", "listener.name.x.scram-sha-256.connections.max.reauth.ms": "8"}
    settings = ListenerSettings(given, "x")
    assert settings.value("connections.max.reauth.ms") == 7
    assert settings.value("connections.max.reauth.ms", "SCRAM-SHA-256") == 8
    assert ListenerSettings({}, "x").value("connections.max.reauth.ms") == 0
    wrong = ListenerSettings({"listener.name.x.sasl.server.max.receive.size": "much"}, "X")
    with pytest.raises(InvalidConfig, match=r"^listener\.name\.x\.sasl\.server\.max\.receive\.size='much': must be"):
        wrong.value("sasl.server.max.receive.size")


def test_tls_of_a_listener() -> None:
    own = {"listener.name.tls.ssl.keystore.location": "/own.jks", "listener.name.tls.ssl.client.auth": "required"}
    given = tls({**STORE, **own, "ssl.client.auth": "requested", "ssl.endpoint.identification.algorithm": ""})
    assert given == TlsSettings(
        certificate="/own.jks",
        key=None,
        key_password=None,
        certificate_password=SECRET,
        ca=None,
        ca_password=None,
        client_auth="required",
        check_hostname=False,
        ciphers=(),
        versions=("TLSv1.2", "TLSv1.3"),
    )
    texts = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": CHAIN, "ssl.keystore.key": KEY}
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": CHAIN, "ssl.key.password": SECRET}
    given = tls({**texts, **trust, "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"})
    assert (given.certificate, given.key, given.key_password, given.ca) == (CHAIN, KEY, SECRET, CHAIN)
    assert given.ciphers == ("TLS_AES_128_GCM_SHA256",)


def test_versions_are_the_enabled_ones_up_to_the_protocol() -> None:
    assert tls({**STORE, "ssl.protocol": "TLSv1.2"}).versions == ("TLSv1.2",)
    assert tls({**STORE, "ssl.protocol": "TLS", "ssl.enabled.protocols": "TLSv1.3,TLSv1.1"}).versions == ("TLSv1.1", "TLSv1.3")
    assert tls({**STORE, "ssl.enabled.protocols": ""}).versions == ("TLSv1.2", "TLSv1.3")


def test_a_plain_client_auth_is_ignored_with_sasl() -> None:
    both = {**SASL, **STORE, "listener.security.protocol.map": "LOGIN:SASL_SSL,CONTROLLER:PLAINTEXT"}
    given = security(both, {"ssl.client.auth": "required"}, "LOGIN").tls
    assert given is not None
    assert given.client_auth == "none"
    given = security(both, {"listener.name.login.ssl.client.auth": "required"}, "LOGIN").tls
    assert given is not None
    assert given.client_auth == "required"


def test_a_broker_has_the_settings_of_its_controllers_listener() -> None:
    controllers = {"controller.listener.names": "C1,C2", "listener.security.protocol.map": f"{MAP},C1:SSL,C2:PLAINTEXT"}
    trust = {"listener.name.c1.ssl.truststore.location": "/trust.jks"}
    broker = BrokerConfig.from_settings({**BROKER, **controllers, **trust})
    assert set(broker.listener_security) == {"PLAINTEXT", "C1"}
    found = broker.listener_security["C1"].tls
    assert found is not None
    assert (found.ca, found.certificate) == ("/trust.jks", None)


def test_sasl_of_a_listener() -> None:
    found = security(SASL, {}, "LOGIN")
    assert found.sasl_mechanisms == ("PLAIN", "SCRAM-SHA-256")
    assert found.jaas["SCRAM-SHA-256"] == "ScramLoginModule required;"
    assert (found.uses_sasl, found.uses_tls, found.tls) == (True, False, None)


def test_secrets_are_not_shown() -> None:
    texts = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": CHAIN, "ssl.keystore.key": KEY}
    for found in (security(SSL, {**texts, "ssl.key.password": SECRET}), security(SSL, STORE), security(SASL, {}, "LOGIN")):
        assert SECRET not in repr(found)
        assert SECRET not in repr(found.tls)
        assert found.protocol in repr(found)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "ssl.keystore.location is not set, but listener TLS uses TLS"),
        ({"ssl.keystore.location": "/k"}, "ssl.keystore.password is not set, but a JKS store needs one"),
        ({"ssl.keystore.password": SECRET}, "ssl.keystore.password is set, but ssl.keystore.location is not"),
        ({**STORE, "ssl.keystore.type": "PEM"}, "ssl.keystore.password is for JKS and PKCS12"),
        ({"listener.name.tls.ssl.keystore.type": "BKS"}, "listener.name.tls.ssl.keystore.type is BKS: must be one of JKS, PK"),
        ({"ssl.keystore.key": KEY}, "ssl.keystore.key is set, but ssl.keystore.certificate.chain is not"),
        ({"ssl.keystore.certificate.chain": CHAIN}, "ssl.keystore.certificate.chain is set, but ssl.keystore.key is not"),
        ({"ssl.keystore.certificate.chain": CHAIN, "ssl.keystore.key": KEY}, "ssl.keystore.type is JKS, but"),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": CHAIN, "ssl.keystore.key": KEY}
            | {"ssl.keystore.location": "/k"},
            "are both set: give the file or the texts",
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": CHAIN, "ssl.keystore.key": SECRET},
            "ssl.keystore.key has no PEM text",
        ),
        ({**STORE, "ssl.truststore.certificates": CHAIN}, "ssl.truststore.type is JKS, but ssl.truststore.certificates is PEM"),
        ({**STORE, "ssl.truststore.password": SECRET}, "ssl.truststore.password is set, but ssl.truststore.location is not"),
        (
            {**STORE, "ssl.truststore.password": SECRET, "ssl.truststore.type": "PEM", "ssl.truststore.location": "/t"},
            "ssl.truststore.password is for JKS and PKCS12",
        ),
        ({**STORE, "ssl.endpoint.identification.algorithm": "ldap"}, "must be https, or empty"),
        ({**STORE, "ssl.enabled.protocols": "TLSv1.4"}, "ssl.enabled.protocols has TLSv1.4, which is no TLS version"),
        ({**STORE, "ssl.protocol": "TLSv1.1"}, "ssl.protocol is TLSv1.1, and none of ssl.enabled.protocols"),
        ({**STORE, "ssl.client.auth": "maybe"}, "ssl.client.auth=maybe: must be one of"),
        ({**STORE, "ssl.principal.mapping.rules": "RULE:a"}, "ssl.principal.mapping.rules cannot be used: 'RULE:a' is no rule"),
    ],
)
def test_tls_that_cannot_work_is_refused(changes: dict[str, str | None], sentence: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        tls(changes)
    assert sentence in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sasl.enabled.mechanisms": None}, "sasl.enabled.mechanisms is GSSAPI (Kafka's default; Ottla has no Kerberos)"),
        ({"listener.name.login.sasl.enabled.mechanisms": "plain"}, "listener.name.login.sasl.enabled.mechanisms is plain, but"),
        (
            {"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER", "sasl.enabled.mechanisms": "OAUTHBEARER"},
            "is OAUTHBEARER, which is for clients alone, but nodes log in at listener LOGIN with it: choose among PLAIN",
        ),
        ({"sasl.mechanism.inter.broker.protocol": None}, "sasl.mechanism.inter.broker.protocol is GSSAPI (Kafka's default"),
        ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"}, "is SCRAM-SHA-512, which listener LOGIN does not accept"),
        ({"listener.name.login.plain.sasl.jaas.config": None}, "listener.name.login.plain.sasl.jaas.config is not set"),
        (
            {"listener.name.login.plain.sasl.jaas.config": None, "sasl.jaas.config": SECRET},
            "listener.name.login.plain.sasl.jaas.config is not set",
        ),
    ],
)
def test_sasl_that_cannot_work_is_refused(changes: dict[str, str | None], sentence: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        security(SASL, changes, "LOGIN")
    assert sentence in str(refused.value)
    assert SECRET not in str(refused.value)
