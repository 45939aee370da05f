"""Makes the settings of a client from what it was given: parsed, complete, checked, with warnings.

A mistake raises `ConfigError`, which names the setting and says what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ottla.config.client import checks
from ottla.config.client.given import collect, parse
from ottla.config.client.kinds import ADMIN, CONSUMER, PRODUCER, ClientKind
from ottla.config.client.security import OWN_KEYWORDS, security_settings, unused_warning
from ottla.config.client.settings import AdminSettings, ClientSettings, ConsumerSettings, ProducerSettings
from ottla.config.client.treatments import Treatment, treatment_of
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
