"""`Catalog`: the declared streams and tables of one cluster, remembered in a small JSON file.

Names are found in any case, as in Spark SQL, and kept as they were written. Every change is written at once, to a new file that
replaces the old one: another shell that reads meanwhile sees one or the other. Changes of another shell are seen at the next
change of the file's time. A lock on its folder makes reading and writing one step: two shells that change it at the same time
both keep their change.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ottla.errors.texts import near_words
from ottla.spark.sql.declarations import Declaration, from_json
from ottla.spark.sql.errors import SqlError

VERSION = 1


def default_path(bootstrap_servers: str, environment: Mapping[str, str] | None = None) -> Path:
    """Where the declarations for a cluster are remembered: one file for each address that it is reached by."""
    variables = os.environ if environment is None else environment
    base = Path(variables.get("XDG_CONFIG_HOME") or Path(variables.get("HOME", "~")).expanduser() / ".config")
    addresses = sorted(each.strip().lower() for each in bootstrap_servers.split(",") if each.strip())
    return base / "ottla" / "sql" / f"{re.sub(r'[^a-z0-9.]+', '-', '_'.join(addresses)).strip('-') or 'default'}.json"


class Catalog:
    """The declarations, by name. Without a path they are kept in memory only."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._found: dict[str, Declaration] = {}
        self._stamp: tuple[int, int] | None = None
        self._refresh()

    def __iter__(self) -> Any:
        self._refresh()
        return iter(sorted(self._found.values(), key=lambda each: each.name.lower()))

    def find(self, name: str) -> Declaration | None:
        """The declaration with this name."""
        self._refresh()
        return self._found.get(name.lower())

    def add(self, declaration: Declaration, *, is_replacing: bool = False) -> None:
        """Remember a declaration."""
        with self._changing():
            before = self._found.get(declaration.name.lower())
            if before is not None and not is_replacing:
                raise SqlError(
                    f"the {before.kind} {before.name} is declared already: write CREATE OR REPLACE {declaration.kind.upper()}, "
                    f"or DROP {before.kind.upper()} {before.name} first"
                )
            self._found[declaration.name.lower()] = declaration
            self._write()

    def drop(self, kind: str, name: str, *, if_exists: bool = False) -> bool:
        """Forget a declaration; the topic stays. Returns whether there was one."""
        with self._changing():
            return self._drop(kind, name, if_exists)

    def _drop(self, kind: str, name: str, if_exists: bool) -> bool:
        found = self._found.get(name.lower())
        if found is None:
            if if_exists:
                return False
            near = near_words(name.lower(), self._found)
            hint = f"did you mean {self._found[near[0]].name}?" if near else f"SHOW {kind.upper()}S lists them"
            raise SqlError(f"there is no {kind} {name}: {hint}")
        if found.kind != kind:
            raise SqlError(f"{found.name} is a {found.kind}: write DROP {found.kind.upper()} {found.name}")
        del self._found[name.lower()]
        self._write()
        return True

    def copy(self) -> Catalog:
        """The same declarations in memory only, to try statements on."""
        made = Catalog()
        self._refresh()
        made._found = dict(self._found)
        return made

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock, with what the file has now."""
        if self.path is None:
            yield
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            folder = os.open(self.path.parent, os.O_RDONLY)
        except OSError as error:
            raise SqlError(f"{self.path} cannot be written: {error.strerror}; name another file with --catalog") from None
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self._refresh()
            yield
        finally:
            os.close(folder)

    def _refresh(self) -> None:
        if self.path is None:
            return
        try:
            state = self.path.stat()
        except OSError:
            return
        stamp = (state.st_mtime_ns, state.st_ino)
        if stamp != self._stamp:
            self._found = self._read(self.path)
            self._stamp = stamp

    def _read(self, path: Path) -> dict[str, Declaration]:
        remedy = "correct it, or delete it and declare the streams and tables again"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            version = content["version"]
            if version != VERSION:
                raise SqlError(
                    f"{path} is of version {version}, and this ottla reads version {VERSION}: update ottla, or {remedy}"
                )
            return {each["name"].lower(): from_json(each) for each in content["declarations"]}
        except (ValueError, KeyError, TypeError) as error:
            raise SqlError(f"{path} cannot be read as declarations of streams and tables ({error}): {remedy}") from None
        except OSError as error:
            raise SqlError(f"{path} cannot be read: {error.strerror}") from None

    def _write(self) -> None:
        if self.path is None:
            return
        content = {
            "version": VERSION,
            "declarations": [each.as_json() for each in sorted(self._found.values(), key=lambda d: d.name)],
        }
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", dir=self.path.parent, prefix=self.path.name, delete=False, encoding="utf-8"
            ) as file:
                json.dump(content, file, indent=2, ensure_ascii=False)
            os.replace(file.name, self.path)
            state = self.path.stat()
        except OSError as error:
            raise SqlError(f"{self.path} cannot be written: {error.strerror}; name another file with --catalog") from None
        self._stamp = (state.st_mtime_ns, state.st_ino)
