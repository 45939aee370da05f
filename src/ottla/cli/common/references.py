"""References in settings to values that must not stand in a file or on a command line: passwords, keys, whole JAAS strings.

    ${env:NAME}                   an environment variable
    ${file:/path/file:key}        a key of a properties file
    ${directory:/folder:name}     the whole content of a file, as secrets are mounted

Kafka's own names for its config providers, without `config.providers`. Others stay as they are. Values are not resolved again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from ottla.config.java_properties import parse_properties

_REFERENCE = re.compile(r"\$\{(env|file|directory):([^}]*)\}")
_SECRET = re.compile(
    r"(password|passphrase|\.secret\.key|client\.secret|sasl\.jaas\.config|ssl\.keystore\.key|basic\.auth\.user\.info)$"
)
_SECRET_OPTION = re.compile(r"(password|secret|user_[^\s=]+)\s*=", re.IGNORECASE)
"""In the text of a sasl.jaas.config."""
_BYTES_MAX = 1 << 20


def is_secret(name: str) -> bool:
    """Whether a setting holds a password or a key, with the prefix of a listener or without."""
    return _SECRET.search(name) is not None


def plain_secrets(pairs: Iterable[str]) -> list[str]:
    """The names among `NAME=VALUE` whose value is a secret as it is."""
    split = [(name.strip(), value.strip()) for name, _, value in (pair.partition("=") for pair in pairs)]
    given = [(name, value) for name, value in split if is_secret(name) and value and not _REFERENCE.search(value)]
    return [name for name, value in given if not name.endswith("sasl.jaas.config") or _SECRET_OPTION.search(value)]


def refuse_plain_secrets(flag: str, pairs: Iterable[str], instead: str) -> None:
    """A usage error for a secret on the command line: everybody on the machine can read it there."""
    for name in plain_secrets(pairs):
        raise click.UsageError(f"{flag} {name}=…: others on this machine can read command lines: {instead}")


def resolved(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with every reference replaced; a usage error names the setting whose reference leads nowhere."""
    return {name: _resolve(name, text) if "${" in text else text for name, text in settings.items()}


def _resolve(name: str, text: str) -> str:
    def value(found: re.Match[str]) -> str:
        kind, place = found.groups()
        if kind == "env":
            if place in os.environ:
                return os.environ[place]
            raise _missing(name, found, f"there is no environment variable {place}")
        path, _, key = place.rpartition(":")
        if not path:
            raise _missing(name, found, f"write ${{{kind}:PATH:{'KEY' if kind == 'file' else 'NAME'}}}")
        if kind == "directory":
            if os.path.basename(key) != key or key in ("", ".", ".."):
                raise _missing(name, found, f"{key!r} is no name of a file in {path}")
            return _read(name, found, Path(path) / key).decode("utf-8", "replace").rstrip("\r\n")
        try:
            properties = parse_properties(_read(name, found, Path(path)))
        except ValueError as error:
            raise _missing(name, found, f"{path} is not a properties file: {error}") from None
        if key not in properties:
            raise _missing(name, found, f"{path} has no key {key}")
        return properties[key]

    return _REFERENCE.sub(value, text)


def _read(name: str, found: re.Match[str], path: Path) -> bytes:
    try:
        if not path.is_file():
            raise _missing(name, found, f"{path} is no file")
        with path.open("rb") as file:
            return file.read(_BYTES_MAX)
    except OSError as error:
        raise _missing(name, found, f"{path} cannot be read: {error.strerror}") from None


def _missing(name: str, found: re.Match[str], why: str) -> click.UsageError:
    return click.UsageError(f"{name} refers to {found.group()}: {why}")
