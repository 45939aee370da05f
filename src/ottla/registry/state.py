"""What `_schemas` says: subjects with their versions, ids by context, settings and modes. Pure: `replay` takes its records.

A subject `:.ctx:name` belongs to the context `.ctx`, any other to the default context `.`. Ids are unique in a context: the
same content has one id in all its subjects.

Records of Ottla's registries say whether they count (`topic.py`). A stray changes nothing here, but compaction may keep it in
place of the record that counts, because that has the same key and is older: `covered` names what must be written again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from ottla.registry.records import Content, Json, Stored, parse_schema_value

logger = logging.getLogger("ottla.registry")

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
GLOBAL = ""
"""The subject under which the settings and the mode of the whole registry are kept."""


def context_of(subject: str) -> str:
    """The context of a qualified subject."""
    if subject.startswith(":."):
        return subject[1:].partition(":")[0]
    return DEFAULT_CONTEXT


def qualified(context: str, subject: str) -> str:
    """A subject as it is stored: with its context, unless that is the default one or the subject names one itself."""
    return subject if context == DEFAULT_CONTEXT or subject.startswith(":.") else f":{context}:{subject}"


class RegistryState:
    """The registry as of the last record that was replayed."""

    def __init__(self) -> None:
        self._subjects: dict[str, dict[int, Stored]] = {}
        self._highest: dict[str, int] = {}
        """The highest version that a subject ever had, as far as the topic still says."""
        self._by_id: dict[str, dict[int, dict[tuple[str, int], Stored]]] = {}
        self._ids: dict[str, dict[Content, int]] = {}
        self._guids: dict[str, Content] | None = None
        """Made when a GUID is first asked for: hashes of all schemas would be a fifth of a start."""
        self.max_ids: dict[str, int] = {}
        self._referrers: dict[tuple[str, int], set[tuple[str, int]]] = {}
        self._configs: dict[str, Json] = {}
        self._modes: dict[str, str] = {}
        self.covered: set[tuple[str, str, int]] = set()
        """What a later record of the same key covers that was passed over: (SCHEMA, subject, version), (CONFIG, subject, 0) or
        (MODE, subject, 0). Everything here has a value in this state.
        """
        self.skipped = 0
        """Records that are no records of a registry."""

    # Reading

    def version(self, subject: str, version: int) -> Stored | None:
        return self._subjects.get(subject, {}).get(version)

    def versions(self, subject: str, *, deleted: bool = False) -> list[Stored]:
        """The versions of a subject in order, with `deleted` also the soft-deleted ones."""
        found = self._subjects.get(subject, {})
        return [found[number] for number in sorted(found) if deleted or not found[number].is_deleted]

    def latest(self, subject: str) -> Stored | None:
        alive = self.versions(subject)
        return alive[-1] if alive else None

    def subjects(self) -> Iterator[str]:
        """Every subject that has a version, deleted or not, in order."""
        return iter(sorted(self._subjects))

    def has_subject(self, subject: str, *, deleted: bool = False) -> bool:
        return bool(self.versions(subject, deleted=deleted))

    def next_version(self, subject: str) -> int:
        return self._highest.get(subject, 0) + 1

    def id_of(self, context: str, content: Content) -> int | None:
        return self._ids.get(context, {}).get(content)

    def content(self, context: str, schema_id: int) -> Content | None:
        """The schema that has an id, also when all its versions are soft-deleted."""
        uses = self._by_id.get(context, {}).get(schema_id)
        return next(iter(uses.values())).content if uses else None

    def uses(self, context: str, schema_id: int) -> list[Stored]:
        """The versions that have an id, by subject."""
        uses = self._by_id.get(context, {}).get(schema_id, {})
        return [uses[place] for place in sorted(uses)]

    def content_of_guid(self, guid: str) -> Content | None:
        if self._guids is None:
            self._guids = {each.guid: each for ids in self._ids.values() for each in ids}
        return self._guids.get(guid)

    def ids_of_guid(self, guid: str) -> list[tuple[str, int]]:
        content = self.content_of_guid(guid)
        return [] if content is None else [(name, ids[content]) for name, ids in sorted(self._ids.items()) if content in ids]

    def referrers(self, subject: str, version: int, *, deleted: bool = False) -> list[Stored]:
        """The versions that reference one."""
        places = sorted(self._referrers.get((subject, version), ()))
        found = [self._subjects[name][number] for name, number in places]
        return [each for each in found if deleted or not each.is_deleted]

    def contexts(self) -> list[str]:
        return sorted({DEFAULT_CONTEXT, *map(context_of, self._subjects)})

    def config(self, subject: str) -> Json | None:
        """The settings of exactly this subject, context (`:.ctx:`) or, for `GLOBAL`, the registry."""
        return self._configs.get(subject)

    def effective_config(self, subject: str) -> Json:
        """A subject's settings over its context's, over the registry's, field by field."""
        merged: Json = {"compatibilityLevel": "BACKWARD"}
        for scope in reversed(scopes(subject)):
            merged |= self._configs.get(scope, {})
        return merged

    def mode(self, subject: str) -> str | None:
        return self._modes.get(subject)

    def effective_mode(self, subject: str) -> str:
        for scope in scopes(subject):
            if scope in self._modes:
                return self._modes[scope]
        return "READWRITE"

    # Replay

    def replay(self, key: bytes | None, value: bytes | None, counts: bool | None = None) -> None:
        """Apply one record. `counts` is False for a stray, None if the record does not say. A record that is none of a
        registry's is counted and passed over: others may write here, too.
        """
        try:
            name = json.loads((key or b"").decode())
            body = None if value is None else json.loads(value.decode())
            if counts is False:
                self._pass_over(name, body)
            else:
                self._apply(name, body, is_proven=counts is True)
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            self.skipped += 1
            if self.skipped <= 10:
                logger.warning("a record of _schemas was passed over: its key is %.200r: %s", key, problem)

    def _apply(self, key: Json, value: Json | None, *, is_proven: bool) -> None:
        match key["keytype"]:
            case "SCHEMA":
                subject, version = str(key["subject"]), int(key["version"])
                if value is None:
                    self._forget(subject, version)
                else:
                    self._keep(parse_schema_value(value, subject, version), is_proven=is_proven)
            case "CONFIG":
                subject = key.get("subject") or GLOBAL
                _set(self._configs, subject, None if value is None else _config(value))
                self.covered.discard(("CONFIG", subject, 0))
            case "MODE":
                subject = key.get("subject") or GLOBAL
                _set(self._modes, subject, None if value is None else str(value["mode"]))
                self.covered.discard(("MODE", subject, 0))
            case "DELETE_SUBJECT" if value is not None:
                last = int(value.get("version") or 0)
                for stored in self.versions(str(value["subject"])):
                    if stored.version <= last:
                        self._replace(stored._replace(is_deleted=True))
            case "CLEAR_SUBJECT" if value is not None:
                for stored in self.versions(str(value["subject"]), deleted=True):
                    self._forget(stored.subject, stored.version)

    def _pass_over(self, key: Json, value: Json | None) -> None:
        """Note what a stray covers. The id that it names is not given to another schema: it may be that of a schema whose own
        record was compacted away.
        """
        kind, subject = key["keytype"], key.get("subject") or GLOBAL
        logger.warning("a stray record of _schemas is passed over: %s of subject %r", kind, subject)
        match kind:
            case "SCHEMA":
                version, context = int(key["version"]), context_of(subject)
                if self.version(subject, version) is not None:
                    self.covered.add((kind, subject, version))
                if value is not None:
                    self._reserve(context, int(value["id"]))
            case "CONFIG" | "MODE":
                if subject in (self._configs if kind == "CONFIG" else self._modes):
                    self.covered.add((kind, subject, 0))
            case "DELETE_SUBJECT" | "CLEAR_SUBJECT":
                self.covered |= {("SCHEMA", subject, each.version) for each in self.versions(subject, deleted=True)}

    def _reserve(self, context: str, schema_id: int) -> None:
        self.max_ids[context] = max(self.max_ids.get(context, 0), schema_id)
        if self.content(context, schema_id) is None:
            logger.warning(
                "schema id %d of context %s is given to nobody. If consumers ask for it, compaction has taken its schema away: "
                "register it again with this id, in the mode IMPORT",
                *(schema_id, context),
            )

    def _keep(self, stored: Stored, *, is_proven: bool) -> None:
        context = context_of(stored.subject)
        if is_proven:  # what its key had before is of no account, also if that took the id of another schema
            self._forget(stored.subject, stored.version)
        owner = self.content(context, stored.id)
        if owner is not None and owner != stored.content:
            logger.error(
                "schema id %d of context %s is used by two different schemas: %s version %d is ignored",
                *(stored.id, context, stored.subject, stored.version),
            )
            if self.version(stored.subject, stored.version) is not None:
                self.covered.add(("SCHEMA", stored.subject, stored.version))
            return
        self._forget(stored.subject, stored.version)
        self._subjects.setdefault(stored.subject, {})[stored.version] = stored
        self._highest[stored.subject] = max(self._highest.get(stored.subject, 0), stored.version)
        self._by_id.setdefault(context, {}).setdefault(stored.id, {})[stored.subject, stored.version] = stored
        self._ids.setdefault(context, {})[stored.content] = stored.id
        if self._guids is not None:
            self._guids[stored.content.guid] = stored.content
        self.max_ids[context] = max(self.max_ids.get(context, 0), stored.id)
        for _, subject, version in stored.content.references:
            place = (qualified(context, subject), version)
            self._referrers.setdefault(place, set()).add((stored.subject, stored.version))

    def _replace(self, stored: Stored) -> None:
        self._subjects[stored.subject][stored.version] = stored
        self._by_id[context_of(stored.subject)][stored.id][stored.subject, stored.version] = stored

    def _forget(self, subject: str, version: int) -> None:
        versions = self._subjects.get(subject, {})
        stored = versions.pop(version, None)
        if stored is None:
            return
        self.covered.discard(("SCHEMA", subject, version))
        context = context_of(subject)
        if not versions:
            del self._subjects[subject]
        uses = self._by_id[context][stored.id]
        del uses[subject, version]
        if not uses:
            del self._by_id[context][stored.id]
            del self._ids[context][stored.content]
            if self._guids is not None and not any(stored.content in ids for ids in self._ids.values()):
                self._guids.pop(stored.content.guid, None)
        for _, name, number in stored.content.references:
            place = (qualified(context, name), number)
            self._referrers[place].discard((subject, version))
            if not self._referrers[place]:
                del self._referrers[place]


def scopes(subject: str) -> list[str]:
    """Where settings and modes of a subject are looked up, nearest first."""
    context = context_of(subject)
    found = [] if subject == GLOBAL else [subject]
    if context != DEFAULT_CONTEXT and subject != f":{context}:":
        found.append(f":{context}:")
    if context == DEFAULT_CONTEXT:
        found.append(GLOBAL)
    return [*found, f":{GLOBAL_CONTEXT}:"]


def _config(value: Json) -> Json:
    kept = {name: field for name, field in value.items() if name != "subject" and field is not None}
    if "compatibilityLevel" not in kept and "compatibility" in kept:
        kept["compatibilityLevel"] = kept.pop("compatibility")
    return kept


def _set(table: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def newest_first(versions: Iterable[Stored]) -> list[Stored]:
    return sorted(versions, key=lambda each: -each.version)
