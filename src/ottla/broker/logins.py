"""The logins of a node's listeners, from the settings of each listener and the node's metadata. Made once, at the start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.broker.authentication.accounts import ScramAccounts
from ottla.broker.authentication.bearer import BearerExchange, TokenCheck
from ottla.broker.authentication.delegation_tokens import TokenCredentials
from ottla.broker.authentication.exchange import Exchange
from ottla.broker.authentication.jwt import unsecured_check, unsecured_rules
from ottla.broker.authentication.listener_logins import ListenerLogins, Mechanism
from ottla.broker.authentication.plain import PlainExchange, PlainUsers
from ottla.broker.authentication.scram import ScramExchange
from ottla.config.broker_security import ListenerSecurity, ListenerSettings
from ottla.config.jaas import JaasEntry, parse_jaas
from ottla.config.values import InvalidConfig
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
_NONCES: Final = 1 << 160


class NodeLogins:
    """Makes the logins of each listener. `settings` are the texts of `server.properties`."""

    def __init__(self, world: World, settings: Mapping[str, str], security: Callable[[], SecurityImage]) -> None:
        self._world = world
        self._settings = settings
        secret_key = settings.get("delegation.token.secret.key") or None
        tokens = TokenCredentials(secret_key, self._new_salt)
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
            check = self._token_check(settings, entry)
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
        accounts = self._accounts[mechanism]
        return lambda: ScramExchange(accounts, f"{self._world.randomness.below(_NONCES):040x}")

    def _token_check(self, settings: ListenerSettings, entry: JaasEntry | None) -> TokenCheck:
        """The check of OAUTHBEARER's tokens: unsecured ones, unless a handler is set."""
        key, mechanism = "sasl.server.callback.handler.class", "OAUTHBEARER"
        handler = str(settings.value(key, mechanism) or "").rpartition(".")[2]
        if handler in ("", "OAuthBearerUnsecuredValidatorCallbackHandler"):
            options = {} if entry is None else entry.options
            try:
                return unsecured_check(unsecured_rules(options))
            except ValueError as error:
                raise settings.refuse("sasl.jaas.config", f"cannot be used: {error}", mechanism) from None
        raise settings.refuse(
            key,
            f"is {handler}, a Java class that Ottla cannot run: use OAuthBearerValidatorCallbackHandler, or drop it",
            mechanism,
        )

    def _new_salt(self) -> bytes:
        return f"{self._world.randomness.below(_NONCES):040x}".encode()


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
