"""SecuritySettings: TLS and SASL of one client, from `security.protocol`, `ssl.*`, `sasl.*` and Ottla's own keywords.

Certificates and keys are PEM, in files or as text, or in Java's key stores (JKS, PKCS12). Files are not opened here:
`env/real/keystores.py` sees from a store's bytes what it is, as Java does with JKS and PKCS12. `repr()` shows neither passwords
nor keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.config.values import InvalidConfig
from ottla.errors.texts import listed

if TYPE_CHECKING:
    from ottla.config.client.classes import Implementation
    from ottla.config.jaas import JaasEntry

USERNAME, PASSWORD, TOKEN = "sasl_plain_username", "sasl_plain_password", "sasl_oauth_token"
OWN_KEYWORDS = {
    USERNAME: "The user name for PLAIN and SCRAM, instead of sasl.jaas.config.",
    PASSWORD: "The password for PLAIN and SCRAM, instead of sasl.jaas.config.",
    TOKEN: "A function that returns the token for OAUTHBEARER. It is called before the token of all connections expires.",
}
"""Keywords that Kafka has no setting for."""

HANDLER, URL = "sasl.login.callback.handler.class", "sasl.oauthbearer.token.endpoint.url"
_CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
_CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_RETRIEVERS = ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_MODULES = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": ("OAUTHBEARER",),
}
"""Kafka's login modules → the mechanisms that they serve."""
_REFRESH = ("window.factor", "window.jitter", "min.period.seconds", "buffer.seconds")
PEM_SIGN = "-----BEGIN"
"""What a PEM text has, and no path."""
_TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
_STORE_TYPES = ("PEM", "JKS", "PKCS12")
_PEM_ENDINGS = (".pem", ".crt", ".cer")


class TokenSettings(NamedTuple):
    """Where the tokens of a client come from, if settings say it. Clients of one process with the same ones share a token."""

    handler: Implementation
    """`endpoint`, `file`, one of `LOGIN_HANDLERS` for a cloud, or what `load` makes a function of."""
    given: Mapping[str, Any]
    """The settings that were given about addresses, TLS and logins, by Kafka's names: what a function gets. The options of
    sasl.jaas.config are in it by their own names."""
    url: str = ""
    """The endpoint, or the path of the file."""
    client_id: str = ""
    client_secret: str = ""
    scope: str | None = None
    urlencode: bool = False
    timeouts_ms: tuple[int, int] = (10_000, 10_000)
    """sasl.login.connect.timeout.ms and .read.timeout.ms."""
    backoffs_ms: tuple[int, int] = (100, 10_000)
    """sasl.login.retry.backoff.ms and .max.ms."""
    extensions: Mapping[str, str] = {}
    """SASL extensions: the options extension_NAME of sasl.jaas.config."""

    def __repr__(self) -> str:
        return f"TokenSettings({self.handler})"


class SecuritySettings(NamedTuple):
    """How connections are encrypted, and how the client logs in.

    `ca`, `certificate` and `key` are paths of PEM files, or PEM texts, which have `PEM_SIGN` in them. `ca` and `certificate`
    can be paths of key stores.
    """

    protocol: str = "PLAINTEXT"
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""

    # TLS.
    ca: str | None = None
    """The certificates to trust; None: those of the system."""
    certificate: str | None = None
    """The client's certificate and its chain, for brokers that ask for one."""
    key: str | None = None
    """The private key of `certificate`. None: it is in the same file."""
    key_password: str | None = None
    ca_password: str | None = None
    """The password of the key store `ca`."""
    certificate_password: str | None = None
    """The password of the key store `certificate`."""
    check_hostname: bool = True
    """Whether a broker's certificate must be for the host that was connected to."""
    ciphers: tuple[str, ...] = ()
    """The allowed cipher suites, by Java's or OpenSSL's names; empty: the default ones."""
    tls_versions: tuple[str, ...] = _TLS_VERSIONS

    # SASL.
    mechanism: str | None = None
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; None without SASL."""
    username: str | None = None
    password: str | None = None
    token: Callable[[], Any] | None = None
    """Returns the token for OAUTHBEARER."""
    token_settings: TokenSettings | None = None
    """OAUTHBEARER without `token`."""
    token_refresh: tuple[float, float, float, float] = (0.8, 0.05, 60, 300)
    """When the token is renewed: sasl.login.refresh.window.factor, .window.jitter, .min.period.seconds, .buffer.seconds."""
    is_delegation_token: bool = False
    """Whether `username` and `password` are the id and the HMAC of a delegation token (SCRAM)."""

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    def __repr__(self) -> str:
        return f"SecuritySettings({self.protocol}, mechanism={self.mechanism}, username={self.username!r})"


def security_settings(values: Mapping[str, Any], given: frozenset[str]) -> SecuritySettings:
    """The settings. `values`: the parsed `security.*`, `ssl.*`, `sasl.*` and own keywords; `given`: the names that were set."""
    protocol = values["security.protocol"]
    tls = _tls(values, given) if protocol.endswith("SSL") else {}
    sasl = _sasl(values, given) if protocol.startswith("SASL_") else {}
    return SecuritySettings(protocol, **tls, **sasl)


def unused_warning(security: SecuritySettings, changed: Iterable[str]) -> str | None:
    """The warning for those of the `changed` settings that `security.protocol` leaves without effect; None for none."""
    unused = sorted(
        name
        for name in changed
        if (name.startswith("ssl.") and not security.uses_tls)
        or (name.startswith(("sasl.", "sasl_")) and not security.uses_sasl)
    )
    if not unused:
        return None
    wanted = "SSL" if all(name.startswith("ssl.") for name in unused) and not security.uses_sasl else "SASL_SSL"
    return (
        f"{listed(unused)} {'has' if len(unused) == 1 else 'have'} no effect with security.protocol={security.protocol}: "
        f"set security.protocol={wanted} to use {'it' if len(unused) == 1 else 'them'}"
    )


def _tls(values: Mapping[str, Any], given: frozenset[str]) -> dict[str, Any]:
    return {
        "ca": _trusted(values, given),
        "ca_password": values["ssl.truststore.password"] or None,
        **_certificate(values, given),
        "check_hostname": _check_hostname(values["ssl.endpoint.identification.algorithm"]),
        "ciphers": values["ssl.cipher.suites"],
        "tls_versions": _tls_versions(values["ssl.enabled.protocols"]),
    }


def _trusted(values: Mapping[str, Any], given: frozenset[str]) -> str | None:
    is_pem = _is_pem("ssl.truststore.", values, given)
    path, text = values["ssl.truststore.location"], values["ssl.truststore.certificates"]
    if path and text:
        raise _both("ssl.truststore.location", "ssl.truststore.certificates")
    if values["ssl.truststore.password"] and is_pem:
        raise InvalidConfig(
            "ssl.truststore.password", "ssl.truststore.password is for JKS and PKCS12: PEM certificates have none; drop it"
        )
    return _path("ssl.truststore.location", path) or _text("ssl.truststore.certificates", text, "ssl.truststore.location")


def _certificate(values: Mapping[str, Any], given: frozenset[str]) -> dict[str, Any]:
    is_pem = _is_pem("ssl.keystore.", values, given)
    path = values["ssl.keystore.location"]
    chain, key = values["ssl.keystore.certificate.chain"], values["ssl.keystore.key"]
    if values["ssl.keystore.password"] and is_pem:
        raise InvalidConfig(
            "ssl.keystore.password",
            "ssl.keystore.password is for JKS and PKCS12: a PEM file has none. If its key is encrypted, give ssl.key.password "
            "instead",
        )
    if path and (chain or key):
        raise _both("ssl.keystore.location", "ssl.keystore.key" if key else "ssl.keystore.certificate.chain")
    if bool(chain) != bool(key):
        has, lacks = ("ssl.keystore.key", "ssl.keystore.certificate.chain")[:: 1 if key else -1]
        raise InvalidConfig(
            lacks, f"{has} is set, but {lacks} is not: a client certificate needs both, or ssl.keystore.location"
        )
    if not path and not key:
        if values["ssl.key.password"]:
            raise InvalidConfig(
                "ssl.key.password",
                "ssl.key.password is given without a key: give ssl.keystore.location or ssl.keystore.key, or drop it",
            )
        return {}
    location = "ssl.keystore.location"
    return {
        "certificate": _path(location, path) or _text("ssl.keystore.certificate.chain", chain, location),
        "key": _text("ssl.keystore.key", key, location),
        "key_password": values["ssl.key.password"] or None,
        "certificate_password": values["ssl.keystore.password"] or None,
    }


def _path(setting: str, path: str | None) -> str | None:
    if path and PEM_SIGN in path:
        raise InvalidConfig(
            setting,
            f"{setting} has a PEM text, but must be the path of a file: a text goes into ssl.truststore.certificates, or "
            "ssl.keystore.certificate.chain and ssl.keystore.key",
        )
    return path or None


def _text(setting: str, text: str | None, location: str) -> str | None:
    if text and PEM_SIGN not in text:
        raise InvalidConfig(
            setting, f"{setting} has no PEM text, which begins with {PEM_SIGN}: the path of a file goes into {location}"
        )
    return text or None


def _is_pem(prefix: str, values: Mapping[str, Any], given: frozenset[str]) -> bool:
    """Whether certificates are surely PEM, by the type or the name of the file. Raises for types that cannot be read."""
    location, kind = values[f"{prefix}location"], f"{prefix}type"
    if not location:
        return True
    if kind not in given:
        return bool(location.lower().endswith(_PEM_ENDINGS))
    type_ = values[kind].upper()
    if type_ not in _STORE_TYPES:
        raise InvalidConfig(
            kind,
            f"{kind}={values[kind]}: must be one of {', '.join(_STORE_TYPES)}; keytool -importkeystore -srckeystore {location} "
            "-destkeystore store.p12 -deststoretype PKCS12 converts a store",
        )
    return bool(type_ == "PEM")


def _both(one: str, other: str) -> InvalidConfig:
    return InvalidConfig(one, f"{one} and {other} are both set: give the file or the text, not both")


def _check_hostname(algorithm: str | None) -> bool:
    if algorithm not in (None, "", "https", "HTTPS"):
        raise InvalidConfig(
            "ssl.endpoint.identification.algorithm",
            f"ssl.endpoint.identification.algorithm={algorithm}: must be https, or empty to accept certificates of any host",
        )
    return bool(algorithm)


def _tls_versions(versions: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [version for version in versions if version not in _TLS_VERSIONS]
    if unknown:
        raise InvalidConfig(
            "ssl.enabled.protocols",
            f"ssl.enabled.protocols has {listed(unknown)}: must be a list of {', '.join(_TLS_VERSIONS)}; older ones are broken",
        )
    return tuple(version for version in _TLS_VERSIONS if version in versions) or _TLS_VERSIONS


def _sasl(values: Mapping[str, Any], given: frozenset[str]) -> dict[str, Any]:
    mechanism = (values["sasl.mechanism"] or "").upper()
    if mechanism not in MECHANISMS:
        kerberos = " (Kafka's default; Kerberos is not supported)" if mechanism == "GSSAPI" else ""
        if mechanism == "AWS_MSK_IAM":
            raise InvalidConfig(
                "sasl.mechanism",
                "sasl.mechanism=AWS_MSK_IAM is a mechanism of AWS's Java library; MSK takes the same login as OAUTHBEARER: set "
                f"sasl.mechanism=OAUTHBEARER and {HANDLER}=aws-msk-iam",
            )
        raise InvalidConfig(
            "sasl.mechanism", f"sasl.mechanism is {mechanism or 'empty'}{kerberos}: set one of {', '.join(MECHANISMS)}"
        )
    from ottla.config.jaas import parse_jaas  # late: few clients log in

    text = values["sasl.jaas.config"]
    entry = parse_jaas(text) if text else None
    if entry is not None:
        _check_module(entry, mechanism)
    other = [name for name in OWN_KEYWORDS if values[name] is not None and (name == TOKEN) != (mechanism == "OAUTHBEARER")]
    if other:
        raise InvalidConfig(
            other[0], f"{listed(other)} cannot be used with sasl.mechanism={mechanism}: drop it, or change sasl.mechanism"
        )
    if values[HANDLER] is not None and mechanism != "OAUTHBEARER":
        raise InvalidConfig(
            HANDLER,
            f"{HANDLER} fetches tokens for OAUTHBEARER, but sasl.mechanism is {mechanism}: drop it, or change sasl.mechanism",
        )
    if mechanism == "OAUTHBEARER":
        refresh = tuple(values[f"sasl.login.refresh.{name}"] for name in _REFRESH)
        tokens = _tokens(entry, values, given)
        return {"mechanism": mechanism, "token": values[TOKEN], "token_settings": tokens, "token_refresh": refresh}
    options = {} if entry is None else entry.options
    found = {}
    for keyword, option in ((USERNAME, "username"), (PASSWORD, "password")):
        by_jaas, by_keyword = options.get(option), values[keyword]
        if not isinstance(by_keyword, str | None):
            raise InvalidConfig(keyword, f"{keyword} must be a text, not {type(by_keyword).__name__}")
        if by_jaas is not None and by_keyword is not None and by_jaas != by_keyword:
            raise InvalidConfig(keyword, f"{keyword} and the {option} of sasl.jaas.config differ: give one of them")
        found[option] = by_keyword if by_jaas is None else by_jaas
        if found[option] is None:
            raise InvalidConfig(
                keyword,
                f'sasl.mechanism={mechanism} needs a {option}: give the keyword {keyword}, or {option}="…" in sasl.jaas.config',
            )
    is_token = mechanism.startswith("SCRAM") and options.get("tokenauth", "").lower() == "true"
    return {"mechanism": mechanism, **found, "is_delegation_token": is_token}


def _check_module(entry: JaasEntry, mechanism: str) -> None:
    served = _MODULES.get(entry.short_name)
    if served is None:
        raise InvalidConfig(
            "sasl.jaas.config",
            f"sasl.jaas.config names the login module {entry.module}, a Java class that is not known here: use one of "
            f"{', '.join(_MODULES)}, or the keywords {', '.join(OWN_KEYWORDS)}",
        )
    if mechanism not in served:
        raise InvalidConfig(
            "sasl.jaas.config",
            f"sasl.jaas.config has {entry.short_name}, which is for {' and '.join(served)}, but sasl.mechanism is {mechanism}: "
            "change one of them",
        )


def _tokens(entry: JaasEntry | None, values: Mapping[str, Any], given: frozenset[str]) -> TokenSettings | None:
    """What the settings say about tokens; None if the keyword `TOKEN` is given instead."""
    token, handler, url = values[TOKEN], values[HANDLER], values[URL]
    retriever = _retriever(values[_RETRIEVER])
    if token is not None:
        if not callable(token):
            raise InvalidConfig(TOKEN, f"{TOKEN} must be a function that returns the token, not {type(token).__name__}")
        if other := next((name for name in (HANDLER, URL) if values[name]), None):
            raise InvalidConfig(TOKEN, f"{TOKEN} and {other} are both set: both say where tokens come from, give one of them")
        return None
    options = {} if entry is None else entry.options
    names = [name for name in given if name.startswith(("bootstrap.", "security.", "ssl.", "sasl."))]
    settings = TokenSettings(
        handler,
        {**{name: _shown(name, values[name]) for name in sorted(names)}, **options},
        scope=values["sasl.oauthbearer.scope"] or options.get("scope"),
        urlencode=values["sasl.oauthbearer.header.urlencode"],
        extensions={name[10:]: value for name, value in options.items() if name.startswith("extension_")},
    )
    if handler not in (None, "oauth"):
        return settings
    if not url:
        raise InvalidConfig(
            URL if handler else HANDLER,
            f"sasl.mechanism=OAUTHBEARER does not say where tokens come from: set {URL} to a token endpoint or a file:, set "
            f"{HANDLER} to aws-msk-iam, azure, google or a Python function (package.module:name), or give the keyword {TOKEN}, "
            "a function that returns the token",
        )
    if url.lower().startswith("file:"):
        return settings._replace(handler="file", url=_file(url))
    if retriever == "FileJwtRetriever":
        raise InvalidConfig(URL, f"{URL}={url}: the file for {_RETRIEVER}={retriever} is written as file:///path/of/token")
    if not url.lower().startswith(("https://", "http://")):
        raise InvalidConfig(URL, f"{URL}={url}: must begin with https://, http:// or file:")
    return settings._replace(
        handler="endpoint",
        url=url,
        client_id=_credential(_CLIENT_ID, "clientId", values, options),
        client_secret=_credential(_CLIENT_SECRET, "clientSecret", values, options),
        timeouts_ms=(values["sasl.login.connect.timeout.ms"] or 10_000, values["sasl.login.read.timeout.ms"] or 10_000),
        backoffs_ms=(values["sasl.login.retry.backoff.ms"], values["sasl.login.retry.backoff.max.ms"]),
    )


def _retriever(name: str) -> str:
    short = name.rpartition(".")[2]
    if short not in _RETRIEVERS:
        raise InvalidConfig(
            _RETRIEVER,
            f"{_RETRIEVER}={name} is not known here: use one of {', '.join(_RETRIEVERS)}, or name a Python function that "
            f"returns a token as {HANDLER}",
        )
    return short


def _file(url: str) -> str:
    from urllib.parse import unquote, urlsplit  # late: few clients log in

    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise InvalidConfig(URL, f"{URL}={url}: the path of a file must be absolute: file:///path/of/token")
    return unquote(parts.path)


def _credential(setting: str, option: str, values: Mapping[str, Any], options: Mapping[str, str]) -> str:
    found: str | None = values[setting] or options.get(option)
    if not found:
        raise InvalidConfig(setting, f'{URL} needs {setting} (or {option}="…" in sasl.jaas.config): give it')
    return found


def _shown(name: str, value: Any) -> Any:
    """The value of a setting as it is written: addresses as text."""
    if name.startswith("bootstrap."):
        return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in value)
    return value
