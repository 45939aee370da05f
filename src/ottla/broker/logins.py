"""The logins of a node's listeners, from the settings of each listener and the node's metadata. Made once, at the start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from ottla.broker.authentication.accounts import OwnAccount, ScramAccounts
from ottla.broker.authentication.bearer import BearerExchange, TokenCheck
from ottla.broker.authentication.exchange import Exchange
from ottla.broker.authentication.jwt import SignedRules, signed_check, unsecured_check, unsecured_rules
from ottla.broker.authentication.listener_logins import ListenerLogins, Mechanism
from ottla.broker.authentication.plain import PlainExchange, PlainUsers
from ottla.broker.authentication.scram import Accounts, ScramExchange
from ottla.broker.authentication.token_credentials import TokenCredentials
from ottla.broker.signing_keys import RefreshTimes, SigningKeys
from ottla.config.broker_security import ListenerSecurity, ListenerSettings
from ottla.config.jaas import JaasEntry, parse_jaas
from ottla.config.values import InvalidConfig
from ottla.env.key_sets import KeySetAddress
from ottla.env.tls import TlsOptions
from ottla.metadata.scram import MECHANISMS

if TYPE_CHECKING:
    from ottla.env import World
    from ottla.metadata.image.security import SecurityImage

_MODULES: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
}
_BEARER: Final = "sasl.oauthbearer."
_NONCES: Final = 1 << 160


class NodeLogins:
    """Makes the logins of each listener. `settings` are the texts of `server.properties`."""

    def __init__(
        self,
        world: World,
        settings: Mapping[str, str],
        security: Callable[[], SecurityImage],
        has_metadata: Callable[[], bool] = lambda: True,
    ) -> None:
        self._world = world
        self._settings = settings
        self._has_metadata = has_metadata
        secret_key = settings.get("delegation.token.secret.key") or None
        tokens = TokenCredentials(secret_key, self._new_salt)
        self._signing_keys: list[SigningKeys] = []
        self._accounts = {mechanism: ScramAccounts(mechanism, security, tokens) for mechanism in MECHANISMS}

    def of(self, security: ListenerSecurity) -> ListenerLogins | None:
        """The logins of a listener; None if it has no SASL. Raises `InvalidConfig`."""
        if not security.uses_sasl:
            return None
        settings = ListenerSettings(self._settings, security.name)
        return ListenerLogins(
            {
                each: Mechanism(self._exchanges(settings, security, each), _number(settings, "connections.max.reauth.ms", each))
                for each in security.sasl_mechanisms
            },
            receive_bytes_max=_number(settings, "sasl.server.max.receive.size"),
            failure_delay_ms=_number(settings, "connection.failed.authentication.delay.ms"),
        )

    def _exchanges(self, settings: ListenerSettings, security: ListenerSecurity, mechanism: str) -> Callable[[], Exchange]:
        entry = _jaas(settings, security, mechanism)
        if mechanism == "OAUTHBEARER":
            check = self._token_check(settings, security, entry)
            return lambda: BearerExchange(check, self._world.clock.now_ms)
        handler = settings.value("sasl.server.callback.handler.class", mechanism)
        if handler:
            raise settings.refuse(
                "sasl.server.callback.handler.class",
                f"is {handler}, a Java class that Ottla cannot run for {mechanism}: drop it",
                mechanism,
            )
        if mechanism == "PLAIN":
            users = PlainUsers({} if entry is None else entry.options)
            return lambda: PlainExchange(users)
        accounts: Accounts = self._accounts[mechanism]
        if security.own_mechanism == mechanism and entry is not None and "tokenauth" not in entry.options:
            username, password = entry.options.get("username"), entry.options.get("password")
            if username and password:
                accounts = OwnAccount(self._accounts[mechanism], username, password, self._new_salt(), self._has_metadata)
        return lambda: ScramExchange(accounts, f"{self._world.randomness.below(_NONCES):040x}")

    def start(self) -> None:
        """Begin to read the key sets of the listeners' token issuers."""
        for keys in self._signing_keys:
            keys.start()

    def close(self) -> None:
        for keys in self._signing_keys:
            keys.close()

    def _token_check(self, settings: ListenerSettings, security: ListenerSecurity, entry: JaasEntry | None) -> TokenCheck:
        """The check of OAUTHBEARER's tokens: unsecured ones, unless a key set or the handler for signed ones is set.

        Apache Kafka ignores a key set without its handler, and so takes tokens that anybody can make.
        """
        key, mechanism = "sasl.server.callback.handler.class", "OAUTHBEARER"
        handler = str(settings.value(key, mechanism) or "").rpartition(".")[2]
        if not handler and settings.value(f"{_BEARER}jwks.endpoint.url", mechanism):
            handler = "OAuthBearerValidatorCallbackHandler"
        if handler in ("", "OAuthBearerUnsecuredValidatorCallbackHandler"):
            options = {} if entry is None else entry.options
            try:
                return unsecured_check(unsecured_rules(options))
            except ValueError as error:
                raise settings.refuse("sasl.jaas.config", f"cannot be used: {error}", mechanism) from None
        if handler == "OAuthBearerValidatorCallbackHandler":
            return signed_check(_signed_rules(settings), self._keys(settings, {} if entry is None else entry.options))
        raise settings.refuse(
            key,
            f"is {handler}, a Java class that Ottla cannot run: use OAuthBearerValidatorCallbackHandler, or drop it",
            mechanism,
        )

    def _keys(self, settings: ListenerSettings, options: Mapping[str, str]) -> SigningKeys:
        """As in Kafka, the options ssl.* of sasl.jaas.config are for the key set; without, it is trusted as clients are."""
        key, source = f"{_BEARER}jwks.endpoint.url", self._world.key_sets
        url = settings.value(key, "OAUTHBEARER")
        if not url:
            raise settings.refuse(
                key, "is not set: say where the keys are that sign tokens, https://… or file:///…", "OAUTHBEARER"
            )
        if not str(url).lower().startswith(("https://", "file:/")):
            raise settings.refuse(key, f"is {url}: it must begin with https:// or file:///", "OAUTHBEARER")
        if source is None:
            raise settings.refuse(key, "cannot be used here: there are no key sets outside of the process", "OAUTHBEARER")
        if find_spec("cryptography") is None:
            raise settings.refuse(
                key, "needs the package cryptography, which checks signatures: pip install cryptography", "OAUTHBEARER"
            )
        times = RefreshTimes(
            *(
                _number(settings, f"{_BEARER}jwks.endpoint.{each}", "OAUTHBEARER")
                for each in ("refresh.ms", "retry.backoff.ms", "retry.backoff.max.ms")
            )
        )
        trusted = {each: settings.text(f"ssl.truststore.{each}") for each in ("location", "certificates", "password")}
        listeners = {f"ssl.truststore.{each}": text for each, text in trusted.items() if text is not None}
        is_own = any(name.startswith("ssl.truststore.") for name in options)
        tls = TlsOptions.of(options if is_own else {**listeners, **options})
        keys = SigningKeys(source, KeySetAddress(str(url), tls=tls), times)
        self._signing_keys.append(keys)
        return keys

    def _new_salt(self) -> bytes:
        return f"{self._world.randomness.below(_NONCES):040x}".encode()


def _signed_rules(settings: ListenerSettings) -> SignedRules:
    def text(key: str) -> str | None:
        value = settings.value(_BEARER + key, "OAUTHBEARER")
        return str(value) if value else None

    audience = settings.value(f"{_BEARER}expected.audience", "OAUTHBEARER")
    return SignedRules(
        name_claim=text("sub.claim.name") or "sub",
        scope_claim=text("scope.claim.name") or "scope",
        expected_audience=audience if isinstance(audience, tuple) else (),
        expected_issuer=text("expected.issuer"),
        clock_skew_ms=_number(settings, f"{_BEARER}clock.skew.seconds", "OAUTHBEARER") * 1000,
    )


def _jaas(settings: ListenerSettings, security: ListenerSecurity, mechanism: str) -> JaasEntry | None:
    text = security.jaas.get(mechanism)
    if text is None:
        return None
    name = settings.shown("sasl.jaas.config", mechanism)
    entry = parse_jaas(text, name)
    if entry.short_name != _MODULES[mechanism]:
        raise InvalidConfig(
            "sasl.jaas.config",
            f"{name} names the login module {entry.short_name}: for {mechanism} it must be {_MODULES[mechanism]}",
        )
    return entry


def _number(settings: ListenerSettings, key: str, mechanism: str | None = None) -> int:
    value = settings.value(key, mechanism)
    assert isinstance(value, int), "these settings are numbers"
    return value
