"""What differs between development and production: overlays, settings and parameters of the command line, variables, secrets.

`ottla.prod.yml` is merged over the two files of a pipeline, then `--set`; then variables in values are replaced:

    ${NAME}           a parameter (`-p NAME=value`) or a variable of the environment
    ${NAME:-text}     the text, where NAME is not set
    ${file:PATH}      what a file holds, without the newline at its end; PATH is relative to the pipeline's folder
    $${NAME}          the text ${NAME}

They are replaced in values after the YAML is read, so a value cannot add keys. Secrets are shown nowhere: `masked`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ottla.errors.texts import near_words
from ottla.spark.pipelines.errors import PipelineError

ENVIRONMENT = "OTTLA_ENV"
"""The variable that names the overlay where no --env does: under spark-pipelines too."""
MASK = "***"
MASKED_LENGTH_MIN = 4
"""Shorter secrets are hidden where they are the whole value, and not inside of sentences, which they could garble."""

_VARIABLE = re.compile(r"\$(\$?)\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(
    r"(?i)password|passwd|passphrase|secret|token|jaas|credential|api_?key|access[._]?key|private[._]?key|keystore\.key|user\.info"
)
_URL = re.compile(r"\w+://[^\s/@]*:[^\s/@]+@")
_NAMED = ("sources", "sinks")
"""Sections whose entries have a name and options."""


@dataclass(frozen=True)
class Environment:
    """Where and with what a pipeline runs."""

    name: str | None = None
    """Of the overlay: prod for `ottla.prod.yml`."""
    settings: tuple[str, ...] = ()
    """`path.to.key=value`, over the files."""
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values of variables, before those of the process's environment."""


def environment_of_process() -> Environment:
    """The environment where no command line names one."""
    return Environment(os.environ.get(ENVIRONMENT) or None)


def overlay_file(folder: Path, name: str) -> Path:
    """The overlay of an environment, or a `PipelineError` that says which there are."""
    for suffix in ("yml", "yaml"):
        path = folder / f"ottla.{name}.{suffix}"
        if path.is_file():
            return path
    found = sorted({each.name.split(".")[1] for each in folder.glob("ottla.*.y*ml")})
    there = f"there is {', '.join(found)}" if found else "there is none"
    raise PipelineError(f"there is no environment {name}: {folder} has no ottla.{name}.yml; {there}")


def merged(below: Any, above: Any) -> Any:
    """`above` over `below`: mappings are merged key by key, everything else is replaced. A null takes a key away."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    found = {**below, **{key: merged(below.get(key), value) for key, value in above.items()}}
    return {key: value for key, value in found.items() if value is not None or key not in above}


def overlay_of_setting(text: str, given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """`sources.orders.subscribe=orders-2` as an overlay. `given` is what it comes over, `known` the keys that there are."""
    path, equals, value = text.partition("=")
    section, _, rest = path.strip().partition(".")
    if not equals or not section:
        raise PipelineError(f"--set {path} has no value: write it as --set sources.orders.subscribe=orders")
    if section not in known:
        near = near_words(section, known, cutoff=0.6)
        hint = f"; did you mean {near[0]}?" if near else f": it must begin with one of {', '.join(known)}"
        raise PipelineError(f"--set {path}: a pipeline has no key {section}{hint}")
    if not rest:
        return {section: _parsed(value)}
    if section not in _NAMED:
        # Keys of the configuration have dots themselves, and their values are text.
        return {section: {rest: value if section == "configuration" else _parsed(value)}}
    name, _, option = rest.partition(".")
    there = given.get(section) or {}
    if not option:
        raise PipelineError(f"--set {path}: say which option of {name}: {section}.{name}.OPTION=value")
    if name not in there:
        raise PipelineError(f"--set {path}: {section} has no {name}; there are {', '.join(map(str, there)) or 'none'}")
    return {section: {name: {option: _parsed(value)}}}


def _parsed(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text) if text else ""
    except yaml.YAMLError:
        return text


@dataclass
class Values:
    """Replaces variables, and remembers which values are secret."""

    folder: Path
    environment: Environment
    secrets: set[str] = field(default_factory=set, repr=False)

    def replaced(self, label: str, found: Any, path: str = "") -> Any:
        """A tree of YAML with its variables replaced. `label` names the file, for errors."""
        if isinstance(found, dict):
            return {key: self.replaced(label, value, f"{path}.{key}" if path else str(key)) for key, value in found.items()}
        if isinstance(found, list):
            return [self.replaced(label, each, path) for each in found]
        if isinstance(found, str):
            found = _VARIABLE.sub(lambda match: self._value(label, path, match), found)
            if _SECRET.search(path):
                self._hide(found)
            for url in _URL.findall(found):
                try:
                    self._hide(urlsplit(url).password or "", unquote(urlsplit(url).password or ""))
                except ValueError:
                    self._hide(found)
        return found

    def _value(self, label: str, path: str, match: re.Match[str]) -> str:
        escape, text = match.groups()
        if escape:
            return match[0][1:]
        name, has_default, default = text.partition(":-")
        is_file = name.startswith("file:")
        value = self._file(name.removeprefix("file:")) if is_file else self._variable(label, path, name)
        if value is None:
            if not has_default:
                raise PipelineError(f"{label}: {path} needs {_missing(name, is_file)}")
            return default
        if is_file or _SECRET.search(name):
            self._hide(value, *value.split("\n"))
        return value

    def _variable(self, label: str, path: str, name: str) -> str | None:
        if not _NAME.fullmatch(name):
            raise PipelineError(
                f"{label}: {path} has ${{{name}}}, which is no variable: write ${{NAME}}, ${{NAME:-default}} or "
                f"${{file:PATH}}, or $${{{name}}} for the text itself"
            )
        if name in self.environment.parameters:
            return self.environment.parameters[name]
        return os.environ.get(name)

    def _file(self, name: str) -> str | None:
        path = self.folder / name
        try:
            return path.read_text(encoding="utf-8").removesuffix("\n")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "it is no UTF-8 text"
            raise PipelineError(f"the file {path} of a variable cannot be read: {why}") from None

    def _hide(self, *texts: str) -> None:
        self.secrets.update(text for text in texts if text)


def _missing(name: str, is_file: bool) -> str:
    if is_file:
        return f"the file {name.removeprefix('file:')}, which is not there: mount it, or write a default: ${{{name}:-…}}"
    return f"the variable {name}, which is not set: export it, give -p {name}=…, or write a default: ${{{name}:-…}}"


def masked(text: str, secrets: Iterable[str]) -> str:
    """A text without secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        if text == secret or len(secret) >= MASKED_LENGTH_MIN:
            text = text.replace(secret, MASK)
    return text
