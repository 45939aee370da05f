"""Makes the settings of a client from what it was given: parsed, complete, checked, with warnings.

A mistake raises `ConfigError`, which names the setting and says what to write instead.

Ottla honours a setting of Kafka's clients, warns that it has no effect, or refuses it: what is in neither table here is
honoured, and `words` documents it. Given its default value, a setting asks for nothing, so that a pasted list of all settings
is neither refused nor warned of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

from ottla.config.client import checks
from ottla.config.client.given import collect, parse
from ottla.config.client.kinds import ADMIN, CONSUMER, PRODUCER, ClientKind
from ottla.config.client.security import OWN_KEYWORDS, security_settings, unused_warning
from ottla.config.client.settings import AdminSettings, ClientSettings, ConsumerSettings, ProducerSettings
from ottla.config.values import InvalidConfig
from ottla.errors import ConfigError

Settings = TypeVar("Settings", bound=ClientSettings)


def producer_settings(
    bootstrap_servers: object = None, config: Mapping[str, Any] | None = None, keywords: Mapping[str, Any] | None = None
) -> ProducerSettings:
    """The settings of a producer. `config` has Kafka's names, `keywords` Python's; the same setting twice must agree."""
    return _made(ProducerSettings, PRODUCER, checks.check_producer, (bootstrap_servers, config, keywords or {}))


def consumer_settings(
    bootstrap_servers: object = None, config: Mapping[str, Any] | None = None, keywords: Mapping[str, Any] | None = None
) -> ConsumerSettings:
    """The settings of a consumer. `config` has Kafka's names, `keywords` Python's; the same setting twice must agree."""
    return _made(ConsumerSettings, CONSUMER, checks.check_consumer, (bootstrap_servers, config, keywords or {}))


def admin_settings(
    bootstrap_servers: object = None, config: Mapping[str, Any] | None = None, keywords: Mapping[str, Any] | None = None
) -> AdminSettings:
    """The settings of an admin client. `config` has Kafka's names, `keywords` Python's; the same setting twice must agree."""
    return _made(AdminSettings, ADMIN, checks.check_admin, (bootstrap_servers, config, keywords or {}))


def _made(
    settings: type[Settings],
    kind: ClientKind,
    check: Callable[[checks.Draft], None],
    given: tuple[object, Mapping[str, Any] | None, Mapping[str, Any]],
) -> Settings:
    """The checked settings. The error of the tables becomes the error that clients raise."""
    try:
        collected = collect(kind, *given)
        draft = _draft(kind, collected)
        check(draft)
        return _finished(settings, kind, draft, collected)
    except InvalidConfig as error:
        raise ConfigError(str(error), setting=error.name) from None


def _draft(kind: ClientKind, given: Mapping[str, Any]) -> checks.Draft:
    """All values, given or default, with the settings that are refused or have no effect dealt with."""
    notices = _notices(kind, given)
    values: dict[str, Any] = {keyword: given.get(keyword) for keyword in OWN_KEYWORDS}
    for name in kind.table:
        values[name] = given[name] if name in given else _default(kind, name)
    draft = checks.Draft(values, frozenset(given), notices)
    checks.check_common(draft)
    return draft


def _default(kind: ClientKind, name: str) -> Any:
    """A default in the form in which a given value is kept."""
    default = kind.default_of(name)
    if name == "acks" or name == "partition.assignment.strategy":
        return parse(kind.table[name], default)
    if name == "partitioner.class":
        return "default"
    return () if name in ("bootstrap.servers", "interceptor.classes") else default


def _notices(kind: ClientKind, given: Mapping[str, Any]) -> list[str]:
    """A warning for each setting without effect. A refused setting raises `InvalidConfig`."""
    notices = []
    for name in _changed(kind, given):
        treatment, reason = treatment_of(name)
        if treatment is Treatment.REFUSED and given[name] not in ("", ()):
            raise InvalidConfig(name, f"{name} cannot be used: {reason}")
        if treatment is Treatment.WARNED:
            notices.append(f"{name} has no effect: {reason}")
    return notices


def _changed(kind: ClientKind, given: Mapping[str, Any]) -> list[str]:
    """The settings that were given another value than their default."""
    return [name for name, value in given.items() if name in OWN_KEYWORDS or value != kind.table.default_of(name)]


def _finished(settings: type[Settings], kind: ClientKind, draft: checks.Draft, given: Mapping[str, Any]) -> Settings:
    security = security_settings(draft.values, draft.given)
    honoured = [name for name in _changed(kind, given) if treatment_of(name)[0] is Treatment.HONOURED]
    warning = unused_warning(security, honoured)
    notices = (*draft.notices, warning) if warning else (*draft.notices,)
    values = {name.replace(".", "_"): value for name, value in draft.values.items()}
    return settings({**values, "security": security, "notices": notices})


class Treatment(Enum):
    """What a client does with a setting."""

    HONOURED = "honoured"
    WARNED = "warned"
    """Accepted, without effect; one warning when the client is made says why."""
    REFUSED = "refused"
    """An error when the client is made says why and what to do instead."""


_ASSERTION = (
    "tokens are not fetched by JWT assertions here: give client id and secret, or name a Python function that returns a token "
    "as sasl.login.callback.handler.class"
)
_HANDLER = (
    "Java classes cannot be loaded: give the user in sasl.jaas.config, or, for OAUTHBEARER, what fetches tokens as "
    "sasl.login.callback.handler.class: aws-msk-iam, azure, google, oauth or a Python function (package.module:name)"
)
_VALIDATED = "tokens are validated by the broker, not by the client"
_KERBEROS = "Kerberos (GSSAPI) is not supported, so its settings are not used"
_JAVA_TLS = "it configures Java's TLS; Python uses OpenSSL"
_SHARE = "there are no share consumers yet: use group.id with group.protocol=classic or consumer"

WITHOUT_EFFECT: dict[str, str] = {
    "metrics.recording.level": "all metrics are always recorded",
    "sasl.kerberos.kinit.cmd": _KERBEROS,
    "sasl.kerberos.min.time.before.relogin": _KERBEROS,
    "sasl.kerberos.service.name": _KERBEROS,
    "sasl.kerberos.ticket.renew.jitter": _KERBEROS,
    "sasl.kerberos.ticket.renew.window.factor": _KERBEROS,
    "sasl.oauthbearer.clock.skew.seconds": _VALIDATED,
    "sasl.oauthbearer.expected.audience": _VALIDATED,
    "sasl.oauthbearer.expected.issuer": _VALIDATED,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _VALIDATED,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _VALIDATED,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _VALIDATED,
    "sasl.oauthbearer.jwks.endpoint.url": _VALIDATED,
    "sasl.oauthbearer.jwt.validator.class": _VALIDATED,
    "sasl.oauthbearer.scope.claim.name": _VALIDATED,
    "sasl.oauthbearer.sub.claim.name": _VALIDATED,
    "ssl.keymanager.algorithm": _JAVA_TLS,
    "ssl.protocol": "ssl.enabled.protocols decides which versions of TLS are used",
    "ssl.provider": _JAVA_TLS,
    "ssl.secure.random.implementation": _JAVA_TLS,
    "ssl.trustmanager.algorithm": _JAVA_TLS,
}
"""Setting → why it has no effect."""

REFUSED: dict[str, str] = {
    "config.providers": "values such as ${env:NAME} are not resolved: read them in Python and pass the result",
    "metric.reporters": "Java classes cannot be loaded: read the client's metrics(), or export them for Prometheus",
    "sasl.client.callback.handler.class": _HANDLER,
    "sasl.login.class": _HANDLER,
    "sasl.oauthbearer.assertion.algorithm": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.aud": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.exp.seconds": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.iss": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.jti.include": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.nbf.seconds": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.sub": _ASSERTION,
    "sasl.oauthbearer.assertion.file": _ASSERTION,
    "sasl.oauthbearer.assertion.private.key.file": _ASSERTION,
    "sasl.oauthbearer.assertion.private.key.passphrase": _ASSERTION,
    "sasl.oauthbearer.assertion.template.file": _ASSERTION,
    "security.providers": "Java security providers cannot be loaded: Python uses OpenSSL; drop it",
    "share.acknowledgement.mode": _SHARE,
    "share.acquire.mode": _SHARE,
    "ssl.engine.factory.class": "Java classes cannot be loaded: give certificates by ssl.truststore.* and ssl.keystore.*",
}
"""Setting → why it is refused, and what to do instead."""


def treatment_of(name: str) -> tuple[Treatment, str]:
    """What happens to a setting that is given another value than its default, and the reason if it is not honoured."""
    if name in REFUSED:
        return Treatment.REFUSED, REFUSED[name]
    if name in WITHOUT_EFFECT:
        return Treatment.WARNED, WITHOUT_EFFECT[name]
    return Treatment.HONOURED, ""
