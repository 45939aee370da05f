"""The security of a node's listeners: TLS and SASL of each, from `server.properties`. The rules are Kafka's.

A setting of listener X is `listener.name.x.KEY`, else the plain `KEY`, else its default; for SASL also
`listener.name.x.MECHANISM.KEY`, which comes first. JAAS texts have that form only. A node that connects to a listener uses the
listener's settings too, as client: so a broker has settings of its controllers' listeners, which it does not open.

Files are not opened here. No value shows a password, a key or a JAAS text in its `repr`, and no error quotes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.principal_rules import PrincipalRules
from ottla.config.values import InvalidConfig, Value

SSL_PROTOCOLS = ("SSL", "SASL_SSL")
SASL_PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
NODES_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""With which nodes log in to each other."""
MECHANISMS = (*NODES_MECHANISMS, "OAUTHBEARER")
TLS_VERSIONS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
"""From the oldest to the newest."""
_ANY_VERSION = ("TLS", "SSL")
"""Values of ssl.protocol that limit nothing."""
_STORE_TYPES = ("JKS", "PKCS12", "PEM")
_PEM_SIGN = "-----BEGIN"
_JAAS = "sasl.jaas.config"


class ListenerSettings:
    """The settings of one listener, with Kafka's precedence."""

    __slots__ = ("_settings", "name", "prefix")

    def __init__(self, settings: Mapping[str, str], name: str) -> None:
        self._settings = settings
        self.name = name
        self.prefix = f"listener.name.{name.lower()}."

    def found(self, key: str, mechanism: str | None = None) -> str | None:
        """The name under which `key` is set; None if it is not."""
        names = [self.prefix + key, key]
        if mechanism is not None:
            names.insert(0, f"{self.prefix}{mechanism.lower()}.{key}")
        return next((name for name in names if name in self._settings), None)

    def value(self, key: str, mechanism: str | None = None) -> Value:
        """The checked value of `key`, for `mechanism` if one is given. Raises `InvalidConfig`."""
        name = self.found(key, mechanism)
        return BROKER_KEYS.default_of(key) if name is None else self._parsed(name, key)

    def own_value(self, key: str, mechanism: str | None = None) -> Value:
        """Like `value`, but the plain `key` does not count."""
        name = self.found(key, mechanism)
        return BROKER_KEYS.default_of(key) if name in (None, key) else self._parsed(str(name), key)

    def text(self, key: str) -> str | None:
        """The value of a setting that is a text; None for an empty one."""
        value = self.value(key)
        return str(value) if value else None

    def shown(self, key: str, mechanism: str | None = None) -> str:
        """The name of `key` for errors: as it is set."""
        return self.found(key, mechanism) or key

    def refuse(self, key: str, problem: str, mechanism: str | None = None) -> InvalidConfig:
        """The error for `key`. `problem` goes after the name of the setting, and shows no secret."""
        return InvalidConfig(key, f"{self.shown(key, mechanism)} {problem}")

    def _parsed(self, name: str, key: str) -> Value:
        try:
            return BROKER_KEYS[key].parse(self._settings[name])
        except InvalidConfig as refused:
            text = str(refused)
            raise InvalidConfig(key, text if name == key else text.replace(key, name, 1)) from None


class TlsSettings(NamedTuple):
    """TLS of one listener, for those who connect to it as well. A value with `-----BEGIN` is PEM text, else it is a path."""

    certificate: str | None
    """The node's certificate with its chain. A path may be that of a PEM file or of a key store."""
    key: str | None
    """The private key of `certificate`; None: it is in the same file."""
    key_password: str | None
    certificate_password: str | None
    """Of the key store `certificate`."""
    ca: str | None
    """The certificates to trust; None: those that the operating system trusts."""
    ca_password: str | None
    client_auth: str
    """`none`, `requested` or `required`."""
    check_hostname: bool
    """Whether a node that connects checks the name in the listener's certificate."""
    ciphers: tuple[str, ...]
    """Empty: the default ones."""
    versions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"TlsSettings(client_auth={self.client_auth}, versions={','.join(self.versions)})"


class ListenerSecurity(NamedTuple):
    """How connections to one listener are encrypted, and how peers prove who they are."""

    name: str
    protocol: str
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    tls: TlsSettings | None = None
    principal_rules: PrincipalRules = PrincipalRules()
    """From the subject of a client's certificate to the name of its principal."""
    sasl_mechanisms: tuple[str, ...] = ()
    """Those that the listener accepts."""
    own_mechanism: str | None = None
    """The one with which this node logs in there; None: it does not connect to the listener, or without SASL."""
    jaas: Mapping[str, str] = {}
    """Mechanism → its JAAS text: the users of PLAIN, and what this node logs in with when it connects to this listener."""

    @property
    def uses_tls(self) -> bool:
        return self.protocol in SSL_PROTOCOLS

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in SASL_PROTOCOLS

    def __repr__(self) -> str:
        return f"ListenerSecurity({self.name}, {self.protocol}, {self.tls}, mechanisms={','.join(self.sasl_mechanisms)})"


def with_stores_of(first: ListenerSecurity, changed: ListenerSecurity) -> ListenerSecurity:
    """`first` with the key store and the trust store of `changed`: nothing else of TLS changes while a listener is open."""
    if first.tls is None or changed.tls is None:
        return first
    new = changed.tls
    tls = first.tls._replace(
        certificate=new.certificate,
        key=new.key,
        key_password=new.key_password,
        certificate_password=new.certificate_password,
        ca=new.ca,
        ca_password=new.ca_password,
    )
    return first._replace(tls=tls)


UNSECURED = ListenerSecurity("", "PLAINTEXT")
"""A listener without TLS and SASL."""


def listener_security(
    settings: Mapping[str, str], protocols: Mapping[str, str], served: Iterable[str], connected: Mapping[str, str]
) -> dict[str, ListenerSecurity]:
    """The security of each listener, by its name. Raises `InvalidConfig`.

    `protocols` has the security protocol of every listener, `served` the names of those that this node opens. `connected` has
    those that it connects to: listener → the setting that names the mechanism for logging in there.
    """
    return {
        name: _security(ListenerSettings(settings, name), protocols[name], name in served, connected.get(name))
        for name in dict.fromkeys((*served, *connected))
    }


def _security(settings: ListenerSettings, protocol: str, is_served: bool, mechanism_setting: str | None) -> ListenerSecurity:
    security = ListenerSecurity(settings.name, protocol)
    if security.uses_tls:
        security = security._replace(
            tls=_tls(settings, is_served, ignores_plain_auth=protocol == "SASL_SSL"),
            principal_rules=_principal_rules(settings),
        )
    if not security.uses_sasl:
        return security
    mechanisms = _mechanisms(settings) if is_served else ()
    own = None if mechanism_setting is None else str(settings.value(mechanism_setting))
    if own is not None:
        _check_own_mechanism(settings, str(mechanism_setting), own, mechanisms if is_served else None)
    needed = dict.fromkeys((*mechanisms, *([own] if own else ())))
    texts = {each: _jaas_text(settings, each, each == own) for each in needed}
    jaas = {each: text for each, text in texts.items() if text is not None}
    return security._replace(sasl_mechanisms=mechanisms, own_mechanism=own, jaas=jaas)


# TLS


def _tls(settings: ListenerSettings, is_served: bool, ignores_plain_auth: bool) -> TlsSettings:
    certificate, key = _certificate(settings)
    if certificate is None and is_served:
        raise settings.refuse(
            "ssl.keystore.location",
            f"is not set, but listener {settings.name} uses TLS: a certificate with its private key is needed. Give a key "
            "store, or both ssl.keystore.certificate.chain and ssl.keystore.key",
        )
    client_auth = (settings.own_value if ignores_plain_auth else settings.value)("ssl.client.auth")
    return TlsSettings(
        certificate=certificate,
        key=key,
        key_password=settings.text("ssl.key.password"),
        certificate_password=settings.text("ssl.keystore.password"),
        ca=_trusted(settings),
        ca_password=settings.text("ssl.truststore.password"),
        client_auth=str(client_auth),
        check_hostname=_checks_hostname(settings),
        ciphers=_words(settings.value("ssl.cipher.suites")),
        versions=_versions(settings),
    )


def _certificate(settings: ListenerSettings) -> tuple[str | None, str | None]:
    """The certificate, and its key if that is apart."""
    location, chain, key, password = (
        settings.text(f"ssl.keystore.{each}") for each in ("location", "certificate.chain", "key", "password")
    )
    type_ = _store_type(settings, "ssl.keystore.type")
    if chain or key:
        given, missing = ("ssl.keystore.key", "ssl.keystore.certificate.chain")[:: 1 if key else -1]
        if not (chain and key):
            raise settings.refuse(given, f"is set, but {missing} is not: a certificate needs both")
        if type_ != "PEM":
            raise settings.refuse(
                "ssl.keystore.type",
                f"is {type_}, but {settings.shown(given)} is PEM text: set {settings.shown('ssl.keystore.type')}=PEM",
            )
        if location:
            raise settings.refuse(
                "ssl.keystore.location", f"and {settings.shown(given)} are both set: give the file or the texts"
            )
        for each in (given, missing):
            _check_text(settings, each)
    if type_ == "PEM":
        if password:
            raise settings.refuse(
                "ssl.keystore.password",
                "is for JKS and PKCS12: PEM has no password of its own. If its key is encrypted, set ssl.key.password instead",
            )
    elif password and not location:
        raise settings.refuse("ssl.keystore.password", "is set, but ssl.keystore.location is not: name the store, or drop it")
    elif location and not password:
        raise settings.refuse(
            "ssl.keystore.password",
            f"is not set, but a {type_} store needs one: give it, or set ssl.keystore.type=PEM if {location} is a PEM file",
        )
    return (location or chain), key


def _trusted(settings: ListenerSettings) -> str | None:
    location, texts, password = (settings.text(f"ssl.truststore.{each}") for each in ("location", "certificates", "password"))
    type_ = _store_type(settings, "ssl.truststore.type")
    if texts:
        if type_ != "PEM":
            raise settings.refuse(
                "ssl.truststore.type",
                f"is {type_}, but ssl.truststore.certificates is PEM text: set {settings.shown('ssl.truststore.type')}=PEM",
            )
        if location:
            raise settings.refuse(
                "ssl.truststore.location", "and ssl.truststore.certificates are both set: give the file or the text"
            )
        _check_text(settings, "ssl.truststore.certificates")
    if password and type_ == "PEM":
        raise settings.refuse("ssl.truststore.password", "is for JKS and PKCS12: PEM certificates have none; drop it")
    if password and not location:
        raise settings.refuse(
            "ssl.truststore.password", "is set, but ssl.truststore.location is not: name the store, or drop it"
        )
    return location or texts


def _store_type(settings: ListenerSettings, key: str) -> str:
    type_ = str(settings.value(key))
    if type_ == "PEM" or type_.upper() in ("JKS", "PKCS12"):
        return type_.upper()
    raise settings.refuse(key, f"is {type_}: must be one of {', '.join(_STORE_TYPES)}")


def _check_text(settings: ListenerSettings, key: str) -> None:
    if _PEM_SIGN not in (settings.text(key) or ""):
        raise settings.refuse(
            key, f"has no PEM text, which begins with {_PEM_SIGN}; in a file, write its line breaks as \\n, all on one line"
        )


def _checks_hostname(settings: ListenerSettings) -> bool:
    algorithm = settings.text("ssl.endpoint.identification.algorithm")
    if algorithm is not None and algorithm.lower() != "https":
        raise settings.refuse(
            "ssl.endpoint.identification.algorithm",
            f"is {algorithm}: must be https, or empty to accept certificates of any host",
        )
    return algorithm is not None


def _versions(settings: ListenerSettings) -> tuple[str, ...]:
    enabled = _words(settings.value("ssl.enabled.protocols")) or TLS_VERSIONS[2:]
    newest = settings.text("ssl.protocol") or _ANY_VERSION[0]
    for key, given in (("ssl.enabled.protocols", enabled), ("ssl.protocol", (newest,) if newest not in _ANY_VERSION else ())):
        unknown = [each for each in given if each not in TLS_VERSIONS]
        if unknown:
            raise settings.refuse(key, f"has {unknown[0]}, which is no TLS version: choose among {', '.join(TLS_VERSIONS)}")
    last = len(TLS_VERSIONS) if newest in _ANY_VERSION else TLS_VERSIONS.index(newest) + 1
    versions = tuple(each for each in TLS_VERSIONS[:last] if each in enabled)
    if not versions:
        raise settings.refuse(
            "ssl.protocol",
            f"is {newest}, and none of ssl.enabled.protocols={','.join(enabled)} is that old: change one of them",
        )
    return versions


def _principal_rules(settings: ListenerSettings) -> PrincipalRules:
    key = "ssl.principal.mapping.rules"
    try:
        return PrincipalRules.parse(str(settings.value(key) or "DEFAULT"))
    except ValueError as error:
        raise settings.refuse(key, f"cannot be used: {error}") from None


# SASL


def _mechanisms(settings: ListenerSettings) -> tuple[str, ...]:
    key = "sasl.enabled.mechanisms"
    enabled = _words(settings.value(key))
    unknown = [each for each in enabled if each not in MECHANISMS]
    if unknown or not enabled:
        kerberos = " (Kafka's default; Ottla has no Kerberos)" if "GSSAPI" in unknown else ""
        raise settings.refuse(
            key,
            f"is {','.join(enabled) or 'empty'}{kerberos}, but listener {settings.name} uses SASL: choose among "
            f"{', '.join(MECHANISMS)}, in capitals",
        )
    return enabled


def _check_own_mechanism(settings: ListenerSettings, setting: str, mechanism: str, enabled: tuple[str, ...] | None) -> None:
    """Check the mechanism with which this node logs in; `enabled` is None if the listener is on other nodes only."""
    if mechanism not in NODES_MECHANISMS:
        why = {"GSSAPI": " (Kafka's default; Ottla has no Kerberos)", "OAUTHBEARER": ", which is for clients alone"}
        raise settings.refuse(
            setting,
            f"is {mechanism}{why.get(mechanism, '')}, but nodes log in at listener {settings.name} with it: choose among "
            f"{', '.join(NODES_MECHANISMS)}",
        )
    if enabled is not None and mechanism not in enabled:
        raise settings.refuse(
            setting,
            f"is {mechanism}, which listener {settings.name} does not accept (sasl.enabled.mechanisms={','.join(enabled)}): "
            "add it there, or choose one of those",
        )


def _jaas_text(settings: ListenerSettings, mechanism: str, is_own: bool) -> str | None:
    """The JAAS text of a mechanism. SCRAM needs none for its clients: their credentials are in the metadata."""
    if settings.found(_JAAS, mechanism) in (None, _JAAS, settings.prefix + _JAAS):
        name = f"{settings.prefix}{mechanism.lower()}.{_JAAS}"
        if mechanism.startswith("SCRAM") and not is_own:
            return None
        raise InvalidConfig(
            _JAAS, f"{name} is not set, but listener {settings.name} needs it: it names users or the login of {mechanism}"
        )
    return str(settings.value(_JAAS, mechanism))


def _words(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
