"""The records of `_schemas`: keys and values as JSON without spaces, in the order of fields that Confluent's registry writes.

The order in a key matters: a tombstone removes a record only if its key has the same bytes. Unknown fields are ignored, so the
values of newer registries can be read; `seq` and `node` in keys are Redpanda's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

TOPIC = "_schemas"

Json = dict[str, Any]


class Reference(NamedTuple):
    """A schema that another one imports: by what name, and where it is."""

    name: str
    subject: str
    version: int

    def as_json(self) -> Json:
        return {"name": self.name, "subject": self.subject, "version": self.version}


class Content(NamedTuple):
    """What makes a schema distinct: equal contents have one id in a context. JSON parts are kept as their text."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: str = ""
    rule_set: str = ""

    @property
    def md5(self) -> bytes:
        """The hash that is stored beside a schema, and whose form as a UUID is its GUID."""
        digest = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for name, subject, version in self.references:
            digest.update(name.encode() + subject.encode() + version.to_bytes(4, "big", signed=True))
        if self.metadata:
            digest.update(b"\x01" + b"".join(_metadata_parts(json.loads(self.metadata))))
        if self.rule_set:
            digest.update(b"\x01" + b"".join(_rule_parts(json.loads(self.rule_set))))
        return digest.digest()

    @property
    def guid(self) -> str:
        return str(uuid.UUID(bytes=self.md5))


class Stored(NamedTuple):
    """One version of a subject."""

    subject: str
    version: int
    id: int
    content: Content
    is_deleted: bool = False

    def as_json(self) -> Json:
        """The schema object of the REST API. Empty fields are left out."""
        kind, text, references, metadata, rule_set = self.content
        shown: Json = {"subject": self.subject, "version": self.version, "id": self.id, "guid": self.content.guid}
        shown["schemaType"] = kind
        if references:
            shown["references"] = [each.as_json() for each in references]
        if metadata:
            shown["metadata"] = json.loads(metadata)
        if rule_set:
            shown["ruleSet"] = json.loads(rule_set)
        shown["schema"] = text
        if self.is_deleted:
            shown["deleted"] = True
        return shown


def compact(value: object) -> str:
    """JSON without spaces, as the records have it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def stable(value: Mapping[str, Any] | None) -> str:
    """The text under which metadata and rule sets are compared; empty for none."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False) if value else ""


def schema_key(subject: str, version: int) -> bytes:
    return compact({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}).encode()


def config_key(subject: str | None) -> bytes:
    return compact({"keytype": "CONFIG", "subject": subject, "magic": 0}).encode()


def mode_key(subject: str | None) -> bytes:
    return compact({"keytype": "MODE", "subject": subject, "magic": 0}).encode()


def delete_subject_key(subject: str) -> bytes:
    return compact({"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0}).encode()


def clear_subject_key(subject: str) -> bytes:
    return compact({"keytype": "CLEAR_SUBJECT", "subject": subject, "magic": 0}).encode()


def schema_value(stored: Stored) -> bytes:
    kind, text, references, metadata, rule_set = stored.content
    value: Json = {"subject": stored.subject, "version": stored.version, "id": stored.id}
    value["md5"] = base64.b64encode(stored.content.md5).decode()
    if kind != "AVRO":
        value["schemaType"] = kind
    if references:
        value["references"] = [each.as_json() for each in references]
    if metadata:
        value["metadata"] = json.loads(metadata)
    if rule_set:
        value["ruleSet"] = json.loads(rule_set)
    value["schema"] = text
    value["deleted"] = stored.is_deleted
    return compact(value).encode()


def parse_schema_value(value: Json, subject: str, version: int) -> Stored:
    """The version that the value of a schema's record describes. Raises KeyError, TypeError or ValueError if it is none."""
    given = value.get("references")
    references = tuple(Reference(str(each["name"]), str(each["subject"]), int(each["version"])) for each in given or ())
    kind, text = str(value.get("schemaType") or "AVRO"), str(value["schema"])
    content = Content(kind, text, references, stable(value.get("metadata")), stable(value.get("ruleSet")))
    return Stored(subject, version, int(value["id"]), content, bool(value.get("deleted")))


def _metadata_parts(metadata: Json) -> list[bytes]:
    parts = []
    for key, tags in sorted((metadata.get("tags") or {}).items()):
        parts += [key.encode(), *(tag.encode() for tag in sorted(tags))]
    for key, value in sorted((metadata.get("properties") or {}).items()):
        parts += [key.encode(), str(value).encode()]
    return parts + [name.encode() for name in sorted(metadata.get("sensitive") or ())]


def _rule_parts(rule_set: Json) -> list[bytes]:
    parts = []
    for group in ("migrationRules", "domainRules", "encodingRules"):
        for rule in rule_set.get(group) or ():
            parts += [str(rule.get(field) or "").encode() for field in ("name", "doc", "kind", "mode", "type")]
            parts += [str(tag).encode() for tag in sorted(rule.get("tags") or ())]
            for key, value in sorted((rule.get("params") or {}).items()):
                parts += [key.encode(), str(value).encode()]
            parts += [str(rule.get(field) or "").encode() for field in ("expr", "onSuccess", "onFailure")]
            parts.append(b"\x01" if rule.get("disabled") else b"\x00")
    return parts
