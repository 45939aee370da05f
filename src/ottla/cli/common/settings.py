"""Client settings of a command: from flags, a properties file, the environment, or Kafka's defaults.

Files and `key=value` flags hold Kafka's client settings, also those of TLS and SASL. Every setting of an admin client can be
given by an environment variable, too: its name in capitals, with `_` for `.`, after `OTTLA_` (`OTTLA_SECURITY_PROTOCOL`).
`OTTLA_COMMAND_CONFIG` names a file for all commands. Flags win over the file, the file over the other variables. A setting of
producers or consumers, which a shared file may have, is ignored with a warning by the commands that are neither.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from ottla.cli.common.output import warn
from ottla.cli.common.references import resolved
from ottla.config.client import AdminSettings, admin_settings
from ottla.config.client.kinds import ADMIN, KINDS
from ottla.config.client.names import replacement
from ottla.config.client.security import HANDLER, PASSWORD, TOKEN, URL, USERNAME
from ottla.config.java_properties import parse_properties
from ottla.errors import ConfigError
from ottla.errors.texts import near_words

DEFAULT_BOOTSTRAP = "localhost:9092"
ENVIRONMENT_PREFIX = "OTTLA_"
ENVIRONMENT_VARIABLE = "OTTLA_BOOTSTRAP_SERVERS"
CONFIG_VARIABLE = "OTTLA_COMMAND_CONFIG"
ADDRESSES = ("bootstrap.servers", "bootstrap.controllers")
"""A client has one of them. Where both are given, a flag wins over the file, the file over the environment."""
LOGIN_VARIABLES = {"OTTLA_SASL_USERNAME": USERNAME, "OTTLA_SASL_PASSWORD": PASSWORD, "OTTLA_SASL_TOKEN": TOKEN}
"""Variables that stand for a whole `sasl.jaas.config`."""
_LOGINS = ("sasl.jaas.config", HANDLER, URL)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The client settings of one command."""

    client: AdminSettings
    properties: Mapping[str, str]
    """All settings that were given, by Kafka's names: some verbs read more of them, such as acks or isolation.level."""

    def changed(self, properties: Mapping[str, object]) -> ClientSettings:
        """These settings with some others, by Kafka's names."""
        merged = {**self.properties, **{name: str(value) for name, value in properties.items()}}
        return ClientSettings(_admin_settings(merged), merged)


def read_properties(path: str) -> dict[str, str]:
    """Read a properties file. Raises a usage error if it cannot be read or parsed."""
    try:
        with open(path, "rb") as file:
            return resolved(parse_properties(file.read()))
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise click.UsageError(f"{path} is not a properties file: {error}") from None


def parse_pairs(pairs: Iterable[str], flag: str) -> dict[str, str]:
    """`key=value` flags as a mapping. The last value of a key wins."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"{flag} takes KEY=VALUE, not {pair!r}")
        found[key.strip()] = value
    return found


def build_settings(
    bootstrap_server: str | None, properties: Mapping[str, str], known: frozenset[str] = frozenset()
) -> ClientSettings:
    """The settings of a command. `known` names the properties that the verb itself reads."""
    for name in properties:
        if name not in ADMIN.table and name not in known:
            warn(f"this command does not use the setting {name}: it is ignored{_instead(name, known)}")
    outside = from_environment()
    if bootstrap_server is not None or any(properties.get(name) for name in ADDRESSES):
        outside = {name: value for name, value in outside.items() if name not in ADDRESSES}
    merged = outside | dict(properties)
    if bootstrap_server is not None:
        merged["bootstrap.servers"] = bootstrap_server
    elif not merged.get("bootstrap.controllers"):
        merged.setdefault("bootstrap.servers", DEFAULT_BOOTSTRAP)
    settings = ClientSettings(_admin_settings(merged), merged)
    for notice in settings.client.notices:
        warn(notice)
    return settings


def _instead(name: str, known: frozenset[str]) -> str:
    """What to write instead of an unused setting, as the end of a sentence; empty if nothing comes near."""
    kinds = [kind for kind in KINDS if known.issuperset(kind.table)] or [ADMIN]
    if advice := replacement(kinds, name):
        return f"; {advice}"
    near = near_words(name, {*ADMIN.table, *known}, cutoff=0.8)
    return f"; did you mean {near[0]}?" if near else ""


def from_environment() -> dict[str, str]:
    """The settings that environment variables give, by Kafka's names."""
    variables = {ENVIRONMENT_PREFIX + name.upper().replace(".", "_"): name for name in ADMIN.table}
    return {name: os.environ[variable] for variable, name in variables.items() if os.environ.get(variable)}


def login() -> dict[str, Any]:
    """The user name, password or token that environment variables give, as keywords of the clients."""
    found: dict[str, Any] = {
        keyword: os.environ[variable] for variable, keyword in LOGIN_VARIABLES.items() if os.environ.get(variable)
    }
    if TOKEN in found:
        token = found[TOKEN]
        found[TOKEN] = lambda: token
    return found


def login_for(properties: Mapping[str, str]) -> dict[str, Any]:
    """The `login` of a client with these properties; nothing if it needs none or names its own."""
    uses_login = properties.get("security.protocol", "").strip().upper().startswith("SASL_")
    return login() if uses_login and not any(name in properties for name in _LOGINS) else {}


_JAAS = 'org.apache.kafka.common.security.{module} required username="{name}" password="{password}";'


def client_properties(settings: ClientSettings) -> dict[str, str]:
    """The settings for Spark's clients, by Kafka's names. A user name from the environment becomes sasl.jaas.config."""
    properties = dict(settings.properties)
    login = login_for(properties)
    if USERNAME in login and PASSWORD in login:
        mechanism = properties.get("sasl.mechanism", "PLAIN").upper()
        module = "scram.ScramLoginModule" if mechanism.startswith("SCRAM") else "plain.PlainLoginModule"
        name, password = (login[each].replace("\\", "\\\\").replace('"', '\\"') for each in (USERNAME, PASSWORD))
        properties["sasl.jaas.config"] = _JAAS.format(module=module, name=name, password=password)
    return properties


def _admin_settings(properties: Mapping[str, str]) -> AdminSettings:
    given = {name: value for name, value in properties.items() if name in ADMIN.table}
    try:
        return admin_settings(config=given, keywords=login_for(given))
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def unknown_property(name: str, properties: Iterable[str]) -> str:
    """What to do about a property that a formatter or reader does not have: the rest of the sentence."""
    given_elsewhere = "give it with --command-property"
    if any(name in kind.table for kind in KINDS):
        return f"it is a setting of the client; {given_elsewhere}"
    if (advice := replacement(KINDS, name)) is not None:
        return f"it was a setting of older or other clients: {advice}; {given_elsewhere}"
    near = near_words(name, properties)
    return f"did you mean {near[0]}?" if near else f"choose from {', '.join(properties)}"


def whole_number(name: str, text: str, least: int = -1) -> int:
    """The value of a whole-number setting, at least `least`."""
    try:
        number = int(text.strip())
    except ValueError:
        number = least - 1
    if number < least:
        raise click.UsageError(f"{name} must be a whole number of at least {least}, not {text!r}")
    return number
