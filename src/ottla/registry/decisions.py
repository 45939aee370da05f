"""What requests decide: the records to append and the answer. Pure; a refusal is a `RegistryError` and writes nothing.

Schemas come parsed: what needs the languages (canonical texts, compatibility) is done before and handed in, because it is
expensive and runs elsewhere (`work.py`). The state may have changed since; `Checked.against` says which versions were compared,
and a decision that would need others raises `Outdated`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.registry import errors, records
from ottla.registry.records import Content, Json, Reference, Stored, compact, stable
from ottla.registry.state import GLOBAL, RegistryState, context_of, newest_first, qualified
from ottla.schemas.languages import MODULES, REFERENCES_MAX, TEXT_BYTES_MAX, Imported, Source

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "FORWARD", "IMPORT")
CONFIG_FIELDS = (
    *("alias", "normalize", "validateFields", "validateNewSchemas", "compatibilityGroup", "compatibilityPolicy"),
    *("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet"),
)
ID_MAX = VERSION_MAX = 2**31 - 1

Record = tuple[bytes, bytes | None]


class Outdated(Exception):
    """The state changed while schemas were compared: compare again."""


class Decision(NamedTuple):
    """The records to append, and the answer when they are committed."""

    records: Sequence[Record]
    answer: Any


class Registration(NamedTuple):
    """The body of a request that names a schema."""

    text: str
    kind: str
    references: tuple[Reference, ...] = ()
    metadata: Json | None = None
    rule_set: Json | None = None
    id: int = -1
    version: int = 0


class Checked(NamedTuple):
    """A registration that was parsed and compared."""

    content: Content
    against: tuple[tuple[int, int], ...] = ()
    """The (version, id) of the versions it was compared with."""
    messages: tuple[str, ...] = ()
    """Why it is incompatible; empty if it is compatible."""


def parse_registration(body: object) -> Registration:
    """Check the fields of a request's body. Unknown fields are accepted: newer clients send more."""
    if not isinstance(body, dict):
        raise errors.RegistryError(422, 422, 'the body is not a JSON object: send {"schema": "…"}')
    text = body.get("schema")
    if text is None:
        raise errors.invalid_schema("the field 'schema' is missing or null")
    if not isinstance(text, str):
        raise errors.invalid_schema(f"the field 'schema' is a {type(text).__name__}: send the schema as a string")
    if len(text.encode(errors="replace")) > TEXT_BYTES_MAX:
        raise errors.schema_too_large(f"its text has more than {TEXT_BYTES_MAX:,} bytes")
    kind = body.get("schemaType") or "AVRO"
    if kind not in MODULES:
        raise errors.invalid_schema(f"schemaType {kind!r} is not known: use {', '.join(MODULES)}")
    references = body.get("references") or []
    if not isinstance(references, list) or len(references) > REFERENCES_MAX:
        raise errors.invalid_schema(f"'references' must be a list of at most {REFERENCES_MAX} references")
    schema_id, version = body.get("id"), body.get("version")
    return Registration(
        text,
        kind,
        tuple(map(_reference, references)),
        _part(body, "metadata"),
        _part(body, "ruleSet"),
        -1 if schema_id is None else _number(schema_id, "id", -1, ID_MAX),
        0 if version is None else _number(version, "version", -1, VERSION_MAX),
    )


def _reference(given: object) -> Reference:
    if not isinstance(given, dict) or not given.get("name") or not given.get("subject"):
        raise errors.invalid_schema("each reference needs 'name', 'subject' and 'version'")
    version = _number(given.get("version"), "version of a reference", -1, VERSION_MAX)
    return Reference(str(given["name"]), str(given["subject"]), version)


def _part(body: Json, field: str) -> Json | None:
    value = body.get(field)
    if value is not None and not isinstance(value, dict):
        raise errors.RegistryError(422, 42210, f"the field '{field}' must be a JSON object")
    return value


def _number(given: object, what: str, lowest: int, highest: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not lowest <= given <= highest:
        raise errors.RegistryError(422, 422, f"the {what} is {given!r}, and must be a whole number from {lowest} to {highest}")
    return given


def check_subject(subject: str) -> None:
    if not subject or any(ord(each) < 32 or ord(each) == 127 for each in subject) or subject in ("__GLOBAL", "__EMPTY"):
        raise errors.invalid_subject(subject)


# References


def source_of(state: RegistryState, context: str, content: Content) -> Source:
    """A stored or new schema with everything that it references. Raises if a reference leads nowhere."""
    found: dict[tuple[str, str, int], Imported] = {}
    _collect(state, context, content.references, found, ())
    return Source(content.kind, content.text, tuple(found.values()))


def _collect(
    state: RegistryState,
    context: str,
    references: Sequence[Reference],
    found: dict[tuple[str, str, int], Imported],
    path: tuple[tuple[str, int], ...],
) -> None:
    for name, subject, version in references:
        subject = qualified(context, subject)
        stored = state.latest(subject) if version == -1 else state.version(subject, version)
        if stored is None:
            raise errors.invalid_schema(f"no schema reference found for subject '{subject}' and version {version} ('{name}')")
        place = (subject, stored.version)
        if place in path:
            raise errors.invalid_schema(f"subject '{subject}' version {stored.version} references itself")
        if (name, *place) in found:
            continue
        _collect(state, context, stored.content.references, found, (*path, place))
        found[name, *place] = Imported(name, *place, stored.content.text)
        if len(found) > REFERENCES_MAX:
            raise errors.schema_too_large(f"it references more than {REFERENCES_MAX} schemas")


def content_of(state: RegistryState, subject: str, wanted: Registration, *, inherits: bool) -> Content:
    """The content that a registration asks for. With `inherits`, the newest version gives metadata and rules that it lacks."""
    config = state.effective_config(subject)
    newest = state.latest(subject) if inherits else None
    metadata, rule_set = wanted.metadata, wanted.rule_set
    if newest is not None:
        if metadata is None and newest.content.metadata:
            metadata = json.loads(newest.content.metadata)
        if rule_set is None and newest.content.rule_set:
            rule_set = json.loads(newest.content.rule_set)
    if inherits:
        metadata = _merged(config.get("defaultMetadata"), metadata, config.get("overrideMetadata"))
        rule_set = _merged(config.get("defaultRuleSet"), rule_set, config.get("overrideRuleSet"))
    references = tuple(
        Reference(name, where, _latest_number(state, subject, where) if version == -1 else version)
        for name, where, version in wanted.references
    )
    return Content(wanted.kind, wanted.text, references, stable(metadata), stable(rule_set))


def _latest_number(state: RegistryState, subject: str, where: str) -> int:
    newest = state.latest(qualified(context_of(subject), where))
    return -1 if newest is None else newest.version


def _merged(*parts: Mapping[str, Any] | None) -> Json | None:
    merged: Json = {}
    for part in parts:
        for name, value in (part or {}).items():
            if isinstance(value, dict) and isinstance(merged.get(name), dict):
                merged[name] = merged[name] | value
            elif isinstance(value, list) and isinstance(merged.get(name), list) and value and isinstance(value[0], dict):
                named = {each.get("name"): each for each in merged[name]} | {each.get("name"): each for each in value}
                merged[name] = list(named.values())
            else:
                merged[name] = value
    return merged or None


# Compatibility


def to_compare(state: RegistryState, subject: str, content: Content) -> tuple[str, list[Stored]]:
    """The level that holds for a subject, and the versions to compare a new schema with, newest first."""
    config = state.effective_config(subject)
    level = config["compatibilityLevel"]
    if level == "NONE":
        return level, []
    versions = newest_first(state.versions(subject))
    group = config.get("compatibilityGroup")
    if group:
        versions = [each for each in versions if _group(each.content, group) == _group(content, group)]
    return level, versions if level.endswith("_TRANSITIVE") else versions[:1]


def _group(content: Content, name: str) -> object:
    metadata = json.loads(content.metadata) if content.metadata else {}
    return (metadata.get("properties") or {}).get(name)


# Repair


def repair(state: RegistryState, kind: str, subject: str, version: int) -> list[Record]:
    """Write a value that is covered (`RegistryState.covered`) again. A schema's tombstone comes first: a reader that took the
    covering record for the schema, as Confluent's registry, refuses another text with the same id.
    """
    match kind:
        case "CONFIG":
            return [_config_record(subject, state.config(subject) or {})]
        case "MODE":
            return [_mode_record(subject, state.mode(subject) or "")]
    stored, key = state.version(subject, version), records.schema_key(subject, version)
    assert stored is not None
    return [(key, None), (key, records.schema_value(stored))]


# Registration


def known(state: RegistryState, subject: str, content: Content) -> Stored | None:
    """The undeleted version of a subject that has this content."""
    schema_id = state.id_of(context_of(subject), content)
    if schema_id is None:
        return None
    return next((each for each in newest_first(state.versions(subject)) if each.id == schema_id), None)


def register(state: RegistryState, subject: str, wanted: Registration, checked: Checked) -> Decision:
    """Give a schema an id and a version of the subject. The same content gets what it has."""
    mode = state.effective_mode(subject)
    is_import = wanted.id >= 0
    if mode in ("READONLY", "READONLY_OVERRIDE"):
        raise errors.not_permitted(f"Subject {subject} is in read-only mode")
    if is_import and mode not in ("IMPORT", "FORWARD"):
        raise errors.not_permitted(f"Subject {subject} is not in import mode: set it with PUT /mode to register with an id")
    content, context = checked.content, context_of(subject)
    existing = known(state, subject, content)
    if existing is not None and (not is_import or existing.id == wanted.id):
        return Decision((), _registered(existing, wanted))
    if not is_import and mode != "READWRITE":
        raise errors.not_permitted(f"Subject {subject} is in {mode.lower()} mode: a schema needs an id there")
    if not is_import:
        level, versions = to_compare(state, subject, content)
        if tuple((each.version, each.id) for each in versions) != checked.against:
            raise Outdated
        if checked.messages:
            raise errors.incompatible([*checked.messages, f"{{compatibility: '{level}'}}"])
    version = state.next_version(subject)
    if wanted.version > 0 and wanted.version != version:
        if not is_import:
            text = f"Version is not one more than previous version: {wanted.version} was given, and {version} is next"
            raise errors.invalid_schema(text)
        version = wanted.version
    schema_id = _new_id(state, context, content, wanted.id)
    stored = Stored(subject, version, schema_id, content)
    replaced = state.version(subject, version)
    if replaced is not None and not replaced.is_deleted and replaced.content != content:
        raise errors.not_permitted(f"version {version} of subject {subject} is another schema")
    written: list[Record] = [(records.schema_key(subject, version), records.schema_value(stored))]
    deleted = [each for each in state.versions(subject, deleted=True) if each.is_deleted and each.version != version]
    unused = [each for each in deleted if each.id == schema_id and not state.referrers(subject, each.version)]
    written += [(records.schema_key(subject, each.version), None) for each in unused]
    return Decision(written, _registered(stored, wanted))


def _registered(stored: Stored, wanted: Registration) -> Json:
    """The answer to a registration. The schema itself comes along only if it got metadata or rules that were not asked for:
    clients keep what is answered in place of what they have sent.
    """
    shown = stored.as_json()
    if stored.content.metadata == stable(wanted.metadata) and stored.content.rule_set == stable(wanted.rule_set):
        return {name: shown[name] for name in ("id", "version", "guid")}
    return shown


def _new_id(state: RegistryState, context: str, content: Content, given: int) -> int:
    owned = state.id_of(context, content)
    if given >= 0:
        owner = state.content(context, given)
        if owner is not None and owner != content:
            raise errors.not_permitted(f"Overwrite new schema with id {given} is not permitted: the id has another schema")
        return given
    if owned is not None:
        return owned
    schema_id = state.max_ids.get(context, 0) + 1
    if schema_id > ID_MAX:
        raise errors.RegistryError(500, 50001, f"all ids of context {context} are used up")
    return schema_id


# Deletion


def delete_subject(state: RegistryState, subject: str, *, is_permanent: bool) -> Decision:
    """Delete all versions: softly, or for good those that are deleted softly."""
    _refuse_read_only(state, subject)
    every, alive = state.versions(subject, deleted=True), state.versions(subject)
    if not every:
        raise errors.subject_not_found(subject)
    if is_permanent and alive:
        raise errors.subject_not_soft_deleted(subject)
    if not is_permanent and not alive:
        raise errors.subject_soft_deleted(subject)
    concerned = every if is_permanent else alive
    own = {(each.subject, each.version) for each in concerned}
    for each in concerned:
        _refuse_referenced(state, each, is_permanent, own)
    numbers = [each.version for each in concerned]
    if not is_permanent:
        value = compact({"subject": subject, "version": numbers[-1]}).encode()
        return Decision([(records.delete_subject_key(subject), value)], numbers)
    written: list[Record] = [(records.schema_key(subject, number), None) for number in reversed(numbers)]
    if state.mode(subject) is not None:
        written.append((records.mode_key(subject), None))
    if state.config(subject) is not None:
        written.append((records.config_key(subject), None))
    return Decision(written, numbers)


def delete_version(state: RegistryState, stored: Stored, *, is_permanent: bool) -> Decision:
    """Delete one version."""
    _refuse_read_only(state, stored.subject)
    if is_permanent and not stored.is_deleted:
        raise errors.version_not_soft_deleted(stored.subject, stored.version)
    if not is_permanent and stored.is_deleted:
        raise errors.version_soft_deleted(stored.subject, stored.version)
    _refuse_referenced(state, stored, is_permanent, set())
    value = None if is_permanent else records.schema_value(stored._replace(is_deleted=True))
    return Decision([(records.schema_key(stored.subject, stored.version), value)], stored.version)


def _refuse_referenced(state: RegistryState, stored: Stored, is_permanent: bool, own: set[tuple[str, int]]) -> None:
    users = state.referrers(stored.subject, stored.version, deleted=is_permanent)
    if any((each.subject, each.version) not in own for each in users):
        raise errors.reference_exists(f"{{subject={stored.subject},version={stored.version}}}")


def _refuse_read_only(state: RegistryState, subject: str) -> None:
    mode = state.effective_mode(subject)
    if mode in ("READONLY", "READONLY_OVERRIDE"):
        raise errors.not_permitted(f"Subject {subject} is in read-only mode")


def delete_context(state: RegistryState, context: str) -> Decision:
    """Remove the settings and the mode of a context that has no subjects."""
    if any(context_of(subject) == context for subject in state.subjects()):
        raise errors.context_not_empty(context)
    scope = f":{context}:"
    written: list[Record] = [(records.config_key(scope), None)] if state.config(scope) is not None else []
    if state.mode(scope) is not None:
        written.append((records.mode_key(scope), None))
    return Decision(written, None)


# Settings and modes


def set_config(state: RegistryState, subject: str, body: object) -> Decision:
    """PUT /config: the given fields over those that are there."""
    if not isinstance(body, dict):
        raise errors.RegistryError(422, 422, 'the body is not a JSON object: send {"compatibility": "BACKWARD"}')
    level = body.get("compatibility") or body.get("compatibilityLevel")
    if level is not None and (not isinstance(level, str) or level.upper() not in LEVELS):
        raise errors.invalid_level(level)
    if level is None and not any(body.get(field) is not None for field in CONFIG_FIELDS):
        raise errors.invalid_level(level)
    _refuse_read_only(state, subject)
    value = dict(state.config(subject) or {})
    if level is not None:
        value["compatibilityLevel"] = level.upper()
    value |= {field: body[field] for field in CONFIG_FIELDS if body.get(field) is not None}
    answer = {("compatibility" if name == "compatibilityLevel" else name): field for name, field in value.items()}
    return Decision([_config_record(subject, value)], answer)


def _config_record(subject: str, value: Json) -> Record:
    stored = {"subject": subject, **value} if subject != GLOBAL else value
    return records.config_key(subject or None), compact(stored).encode()


def delete_config(state: RegistryState, subject: str) -> Decision:
    """DELETE /config: back to what holds above."""
    _refuse_read_only(state, subject)
    old = state.config(subject)
    if old is None:
        if subject != GLOBAL:
            raise errors.config_not_found(subject)
        return Decision((), state.effective_config(subject))
    return Decision([(records.config_key(subject or None), None)], old)


def set_mode(state: RegistryState, subject: str, body: object, *, is_forced: bool) -> Decision:
    """PUT /mode. IMPORT needs a scope without schemas, or `force`, and takes soft-deleted ones away."""
    mode = body.get("mode") if isinstance(body, dict) else None
    if not isinstance(mode, str) or mode.upper() not in MODES:
        raise errors.invalid_mode(mode)
    mode = mode.upper()
    if state.effective_mode(subject) == "READONLY_OVERRIDE" and subject != GLOBAL and mode != "READONLY_OVERRIDE":
        raise errors.not_permitted("the registry is in the mode READONLY_OVERRIDE: change the global mode first")
    written: list[Record] = []
    if mode == "IMPORT" and state.effective_mode(subject) != "IMPORT" and not is_forced:
        covered = [each for each in state.subjects() if _is_below(each, subject)]
        if any(state.has_subject(each) for each in covered):
            raise errors.not_permitted("Cannot import since found existing subjects: add ?force=true to import beside them")
        for each in covered:
            written.append((records.clear_subject_key(each), compact({"subject": each}).encode()))
            written += [(records.schema_key(each, old.version), None) for old in state.versions(each, deleted=True)]
    written.append(_mode_record(subject, mode))
    return Decision(written, {"mode": mode})


def _mode_record(subject: str, mode: str) -> Record:
    value = {"subject": subject, "mode": mode} if subject != GLOBAL else {"mode": mode}
    return records.mode_key(subject or None), compact(value).encode()


def _is_below(subject: str, scope: str) -> bool:
    return scope in (GLOBAL, subject) or (scope.startswith(":.") and scope.endswith(":") and subject.startswith(scope))


def delete_mode(state: RegistryState, subject: str, *, is_recursive: bool) -> Decision:
    """DELETE /mode: back to what holds above."""
    old = state.mode(subject)
    if old is None:
        raise errors.mode_not_found(subject)
    written: list[Record] = [(records.mode_key(subject or None), None)]
    if is_recursive:
        below = [each for each in state.subjects() if _is_below(each, subject) and each != subject]
        written += [(records.mode_key(each), None) for each in below if state.mode(each) is not None]
    return Decision(written, {"mode": old})
