"""Requests to a schema registry and what Confluent's REST API answers: stories of steps that run in order, on subjects of their
own. `tests/compat/registry` runs them against Ottla's registry and, for a second opinion, against Apicurio's.

Answers are compared
field by field: a dict must have at least the fields given, with these values; lists and scalars must be equal.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class Anything:
    """Equal to every value that is there."""

    def __repr__(self) -> str:
        return "…"


class Kept(str):
    """Equal to the id that an earlier step has kept under this name."""

    __slots__ = ()


ANY = Anything()


@dataclass(frozen=True)
class Says:
    """Equal to a text in which the pattern is found."""

    pattern: str


@dataclass(frozen=True)
class Step:
    """One request and its answer. `S` in paths and bodies is the story's subject."""

    method: str
    path: str
    body: Any = None
    status: int = 200
    answer: Any = ANY
    keep: str = ""
    """Keep the answer under this name: `{name}` in later paths is its id, `{name.field}` another field."""


@dataclass(frozen=True)
class Story:
    """Steps that belong together."""

    name: str
    steps: list[Step] = field(default_factory=list)


def refusal(code: int, pattern: str = "") -> Any:
    return {"error_code": code, "message": Says(pattern) if pattern else ANY}


def avro(*fields: Any, name: str = "R") -> str:
    """A record; a field is `name:type` or `name:type=default`."""
    made = []
    for each in fields:
        own, _, kind = each.partition(":")
        kind, has_default, default = kind.partition("=")
        one: dict[str, Any] = {"name": own, "type": json.loads(kind) if kind[0] in '["{' else kind}
        made.append(one | ({"default": json.loads(default)} if has_default else {}))
    return json.dumps({"type": "record", "name": name, "fields": made}, separators=(",", ":"))


DRAFT = "http://json-schema.org/draft-07/schema#"


def closed(properties: dict[str, Any], *required: str, is_open: bool = False) -> str:
    made: dict[str, Any] = {"$schema": DRAFT, "type": "object", "properties": properties, "additionalProperties": is_open}
    return json.dumps(made | ({"required": list(required)} if required else {}), separators=(",", ":"))


def proto(*lines: str, package: str = "p", message: str = "M") -> str:
    return (
        f'syntax = "proto3";\npackage {package};\n\nmessage {message} {{\n' + "".join(f"  {each};\n" for each in lines) + "}\n"
    )


def body(text: str, kind: str = "AVRO", **more: Any) -> dict[str, Any]:
    return {"schema": text, **({} if kind == "AVRO" else {"schemaType": kind}), **more}


A, AB, ABD = avro("a:int"), avro("a:int", "b:int"), avro("a:int", "b:int=0")
STRING = body('"string"')
BAD = "ABC" * 100


def compatibility_of(level: str) -> dict[str, str]:
    return {"compatibility": level}


@dataclass(frozen=True)
class Change:
    """A schema and a changed one: whether the new one reads the old one's data, and the other way; what the reason names."""

    kind: str
    name: str
    old: str
    new: str
    is_backward: bool
    is_forward: bool
    place: str = ""


CHANGES = [
    Change("AVRO", "same", A, A, True, True),
    Change("AVRO", "field-with-default", A, ABD, True, True),
    Change("AVRO", "field-without-default", A, AB, False, True, "'b'"),
    Change("AVRO", "field-removed", AB, A, True, False, "'b'"),
    Change("AVRO", "int-to-long", A, avro("a:long"), True, False, "/fields/0/type"),
    Change("AVRO", "int-to-string", A, avro("a:string"), False, False, "/fields/0/type"),
    Change("AVRO", "renamed", A, avro("a:int", name="Other"), False, False, "Other"),
    Change("AVRO", "into-union", A, avro('a:["int","null"]'), True, False, "/fields/0/type"),
    Change(
        "AVRO",
        "enum-symbol-added",
        avro('e:{"type":"enum","name":"E","symbols":["X"]}'),
        avro('e:{"type":"enum","name":"E","symbols":["X","Y"]}'),
        True,
        False,
        "Y",
    ),
    Change(
        "AVRO",
        "fixed-size",
        avro('f:{"type":"fixed","name":"F","size":1}'),
        avro('f:{"type":"fixed","name":"F","size":2}'),
        False,
        False,
        "/fields/0/type",
    ),
    Change("AVRO", "kind", A, "JSON", False, False, "JSON"),
    Change("JSON", "same", closed({"a": {"type": "string"}}), closed({"a": {"type": "string"}}), True, True),
    Change(
        "JSON",
        "property-added-closed",
        closed({"a": {"type": "string"}}),
        closed({"a": {"type": "string"}, "b": {"type": "integer"}}),
        True,
        False,
        "/properties/b",
    ),
    Change(
        "JSON",
        "property-added-open",
        closed({"a": {"type": "string"}}, is_open=True),
        closed({"a": {"type": "string"}, "b": {"type": "integer"}}, is_open=True),
        False,
        True,
        "'b'",
    ),
    Change(
        "JSON",
        "integer-to-number",
        closed({"a": {"type": "integer"}}),
        closed({"a": {"type": "number"}}),
        True,
        False,
        "/properties/a",
    ),
    Change(
        "JSON",
        "max-length-decreased",
        closed({"a": {"type": "string", "maxLength": 9}}),
        closed({"a": {"type": "string", "maxLength": 5}}),
        False,
        True,
        "/properties/a/maxLength",
    ),
    Change(
        "JSON",
        "required-added",
        closed({"a": {"type": "string"}}),
        closed({"a": {"type": "string"}}, "a"),
        False,
        True,
        "'a'",
    ),
    Change(
        "JSON", "enum-extended", closed({"a": {"enum": [1]}}), closed({"a": {"enum": [1, 2]}}), True, False, "/properties/a"
    ),
    Change(
        "JSON",
        "type-changed",
        closed({"a": {"type": "string"}}),
        closed({"a": {"type": "boolean"}}),
        False,
        False,
        "/properties/a",
    ),
    Change("PROTOBUF", "same", proto("int32 a = 1"), proto("int32 a = 1"), True, True),
    Change("PROTOBUF", "field-added", proto("int32 a = 1"), proto("int32 a = 1", "string b = 2"), True, True),
    Change("PROTOBUF", "field-renamed", proto("int32 a = 1"), proto("int32 z = 1"), True, True),
    Change("PROTOBUF", "int32-to-int64", proto("int32 a = 1"), proto("int64 a = 1"), True, True),
    Change("PROTOBUF", "int32-to-string", proto("int32 a = 1"), proto("string a = 1"), False, False, "'a'"),
    Change("PROTOBUF", "package", proto("int32 a = 1"), proto("int32 a = 1", package="q"), False, False, "package"),
    Change("PROTOBUF", "numeric-label", proto("int32 a = 1"), proto("repeated int32 a = 1"), False, False, "'a'"),
    Change(
        "PROTOBUF",
        "message-removed",
        proto("int32 a = 1") + "message N {}\n",
        proto("int32 a = 1"),
        False,
        True,
        "N",
    ),
    Change(
        "PROTOBUF",
        "into-existing-oneof",
        proto("int32 a = 1", "oneof o { int32 b = 2; }"),
        proto("oneof o { int32 b = 2; int32 a = 1; }"),
        False,
        True,
        "'a'",
    ),
]
EXTRAS, SAME_EXTRAS = (
    '{"fields":[],"name":"R","type":"record","b":1,"a":2}',
    '{"type":"record","name":"R","fields":[],"a":2,"b":1}',
)
CLOSED = '{"type":"object","additionalProperties":false}'
RULES = {"domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "a > 0"}]}
PART = {"name": "Part", "subject": "S-part", "version": 1}
LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")


def is_allowed(change: Change, level: str) -> bool:
    backward = change.is_backward or not level.startswith(("BACKWARD", "FULL"))
    return backward and (change.is_forward or not level.startswith(("FORWARD", "FULL")))


def compatibility_stories() -> list[Story]:
    """Every change at every level: checked, and registered or refused."""
    stories = []
    for change in CHANGES:
        new = body("{}", "JSON") if change.new == "JSON" else body(change.new, change.kind)
        steps = [Step("POST", "/subjects/S/versions", body(change.old, change.kind))]
        for level in LEVELS:
            fits = is_allowed(change, level)
            steps.append(Step("PUT", "/config/S", compatibility_of(level), answer=compatibility_of(level)))
            answer: dict[str, Any] = {"is_compatible": fits}
            if not fits:
                answer["messages"] = Says(re.escape(change.place))
            steps.append(Step("POST", "/compatibility/subjects/S/versions/latest?verbose=true", new, answer=answer))
            if not fits:
                refused = refusal(409, re.escape(change.place))
                steps.append(Step("POST", "/subjects/S/versions", new, status=409, answer=refused))
        stories.append(Story(f"{change.kind.lower()}-{change.name}", steps))
    first = (avro("a:int"), closed({"a": {"type": "integer"}}), proto("int32 a = 1"))
    second = (avro("a:long"), closed({"a": {"type": ["integer", "string"]}}), proto("int32 b = 2"))
    third = (avro("a:double"), closed({"a": {"type": ["integer", "string"]}}), proto("string a = 1", "int32 b = 2"))
    for kind, *texts in zip(("AVRO", "JSON", "PROTOBUF"), first, second, third, strict=True):
        one, two, three = (body(each, kind) for each in texts)
        steps = [Step("PUT", "/config/S", compatibility_of("NONE"))]
        steps += [Step("POST", "/subjects/S/versions", each) for each in (one, two)]
        for level in LEVELS:
            transitive = level.endswith("TRANSITIVE")
            fits_first = {"AVRO": level.startswith(("NONE", "BACKWARD")), "JSON": level.startswith(("NONE", "BACKWARD"))}
            fits = level == "NONE" or (kind == "PROTOBUF" and not transitive)
            fits = fits or (kind != "PROTOBUF" and fits_first[kind]) or (kind == "JSON" and not transitive)
            steps.append(Step("PUT", "/config/S", compatibility_of(level)))
            answer = {"is_compatible": fits}
            steps.append(Step("POST", "/compatibility/subjects/S/versions", three, answer=answer))
        stories.append(Story(f"{kind.lower()}-transitive", steps))
    return stories


def _register(text: str = A, subject: str = "S", keep: str = "", **more: Any) -> Step:
    return Step("POST", f"/subjects/{subject}/versions", body(text, **more), keep=keep)


STORIES = [
    Story(
        "what-it-is",
        [
            Step("GET", "/", answer={}),
            Step("POST", "/", answer={}),
            Step("GET", "/v1/metadata/version", answer={"version": ANY, "commitId": ANY}),
            Step("GET", "/v1/metadata/id", answer={"scope": {"path": ANY, "clusters": ANY}}),
            Step("GET", "/v1/metadata/deployment"),
            Step("GET", "/schemas/types", answer=ANY),
            Step("GET", "/nothing", status=404, answer=refusal(404)),
            Step("GET", "/associations", status=404, answer=refusal(404)),
            Step("PATCH", "/subjects", status=405, answer=refusal(405)),
        ],
    ),
    Story(
        "register",
        [
            Step("GET", "/subjects/S/versions", status=404, answer=refusal(40401, "S")),
            _register(keep="a"),
            Step("POST", "/subjects/S/versions", body(A), answer={"id": Kept("a")}),
            Step("POST", "/subjects/S/versions", body(A.replace(":", " : ")), answer={"id": Kept("a")}),
            Step("GET", "/subjects/S/versions", answer=[1]),
            Step("GET", "/subjects/S/versions/1", answer={"subject": "S", "version": 1, "id": Kept("a"), "schema": A}),
            Step("GET", "/subjects/S/versions/latest", answer={"version": 1, "schema": A}),
            Step("GET", "/subjects/S/versions/-1", answer={"version": 1, "schema": A}),
            Step("GET", "/subjects/S/versions/1/schema", answer=json.loads(A)),
            Step("GET", "/schemas/ids/{a}", answer={"schema": A}),
            Step("GET", "/schemas/ids/{a}?fetchMaxId=true", answer={"schema": A, "maxId": ANY}),
            Step("GET", "/schemas/ids/{a}/schema", answer=json.loads(A)),
            Step("GET", "/subjects?subjectPrefix=S", answer=["S"]),
            Step("POST", "/subjects/S", body(A), answer={"subject": "S", "version": 1, "id": Kept("a"), "schema": A}),
            Step("POST", "/subjects/S", body(AB), status=404, answer=refusal(40403)),
            Step("POST", "/subjects/S-none", body(A), status=404, answer=refusal(40401)),
            _register(ABD, keep="b"),
            Step("GET", "/subjects/S/versions", answer=[1, 2]),
            Step("GET", "/subjects/S/versions?offset=1", answer=[2]),
            Step("GET", "/subjects/S/versions?limit=1", answer=[1]),
            Step("POST", "/subjects/S/versions", body(ABD) | {"unknown": 1, "schemaTagsToAdd": []}, answer={"id": Kept("b")}),
        ],
    ),
    Story(
        "one-id-per-schema",
        [
            _register(avro("one_id:int"), keep="a"),
            Step("POST", "/subjects/S-2/versions", body(avro("one_id:int")), answer={"id": Kept("a")}),
            Step("GET", "/schemas/ids/{a}/subjects", answer=["S", "S-2"]),
            Step("GET", "/schemas/ids/{a}/versions", answer=[{"subject": "S", "version": 1}, {"subject": "S-2", "version": 1}]),
            Step("GET", "/schemas/ids/{a}/subjects?subject=S-2", answer=["S-2"]),
            Step("GET", "/schemas/ids/999999", status=404, answer=refusal(40403, "not found")),
            Step("GET", "/schemas/ids/999999/subjects", status=404, answer=refusal(40403)),
            Step("GET", "/schemas/ids/999999/versions", status=404, answer=refusal(40403)),
            Step("GET", "/schemas/ids/999999/schema", status=404, answer=refusal(40403)),
            Step("GET", "/schemas/ids/x", status=404, answer=refusal(404)),
        ],
    ),
    Story(
        "texts",
        [
            Step("POST", "/subjects/S-1/versions", body('{"type":"string"}'), keep="s"),
            Step("GET", "/schemas/ids/{s}", answer={"schema": '"string"'}),
            Step("POST", "/subjects/S-1", body('"string"'), answer={"id": Kept("s")}),
            Step("POST", "/subjects/S-1", body("string"), answer={"id": Kept("s")}),
            Step(
                "POST",
                "/subjects/S-2/versions",
                body('{"type":"record","name":"R","namespace":"a.b","doc":"d","x":1,"fields":[]}'),
                keep="n",
            ),
            Step(
                "GET",
                "/schemas/ids/{n}",
                answer={"schema": '{"type":"record","name":"R","namespace":"a.b","doc":"d","fields":[],"x":1}'},
            ),
            Step("POST", "/subjects/S-3/versions", body('{"type":"object"}', "JSON"), keep="j"),
            Step("GET", "/schemas/ids/{j}", answer={"schemaType": "JSON", "schema": '{"type":"object"}'}),
            Step("POST", "/subjects/S-4/versions", body(proto("int32 a = 1"), "PROTOBUF"), keep="p"),
            Step("GET", "/schemas/ids/{p}", answer={"schemaType": "PROTOBUF", "schema": proto("int32 a = 1")}),
            Step("GET", "/schemas/ids/{p}?format=serialized", answer={"schema": Says("^[A-Za-z0-9+/=]+$")}),
        ],
    ),
    Story(
        "bad-schemas",
        [
            Step("POST", "/subjects/S/versions", {}, status=422, answer=refusal(42201)),
            Step("POST", "/subjects/S/versions", body(BAD + "{"), status=422, answer=refusal(42201)),
            Step("POST", "/subjects/S/versions", body('{"type":"bad"}'), status=422, answer=refusal(42201)),
            Step("POST", "/subjects/S/versions", body("{}", "XML"), status=422, answer=refusal(42201)),
            Step("POST", "/subjects/S/versions", body("{", "JSON"), status=422, answer=refusal(42201)),
            Step("POST", "/subjects/S/versions", body('{"type":7}', "JSON"), status=422, answer=refusal(42201)),
            Step("POST", "/subjects/S/versions", body("message {", "PROTOBUF"), status=422, answer=refusal(42201)),
            Step("POST", "/subjects/S/versions", body(avro("a:int", "a:int")), status=422, answer=refusal(42201, "a")),
            Step("POST", "/subjects/S/versions", body(avro('a:int="x"')), status=422, answer=refusal(42201, "default")),
            Step("POST", "/subjects/S", body('{"type":"bad"}'), status=404, answer=refusal(40401)),
            Step(
                "POST",
                "/subjects/S/versions",
                body(A, references=[{"name": "x", "subject": "S-nowhere", "version": 1}]),
                status=422,
                answer=refusal(42201, "S-nowhere"),
            ),
            Step("GET", "/subjects/S/versions", status=404, answer=refusal(40401)),
        ],
    ),
    Story(
        "versions",
        [
            _register(),
            Step("GET", "/subjects/S/versions/2", status=404, answer=refusal(40402)),
            Step("GET", "/subjects/S/versions/0", status=422, answer=refusal(42202)),
            Step("GET", "/subjects/S/versions/x", status=422, answer=refusal(42202)),
            Step("GET", "/subjects/S/versions/99999999999", status=422, answer=refusal(42202)),
            Step("GET", "/subjects/S-none/versions/1", status=404, answer=refusal(40401)),
            Step("GET", "/subjects/S-none/versions/latest", status=404, answer=refusal(40401)),
            Step("DELETE", "/subjects/S/versions/2", status=404, answer=refusal(40402)),
            Step("DELETE", "/subjects/S/versions/x", status=422, answer=refusal(42202)),
            Step("POST", "/subjects/S/versions", body(ABD, version=5), status=422, answer=refusal(42201, "5")),
            Step("POST", "/subjects/S/versions", body(ABD, version=2)),
            Step("GET", "/subjects/S/versions", answer=[1, 2]),
        ],
    ),
    Story(
        "deletion-of-versions",
        [
            _register(keep="a"),
            _register(ABD),
            Step("DELETE", "/subjects/S/versions/1?permanent=true", status=404, answer=refusal(40407)),
            Step("DELETE", "/subjects/S/versions/1", answer=1),
            Step("DELETE", "/subjects/S/versions/1", status=404, answer=refusal(40406)),
            Step("GET", "/subjects/S/versions", answer=[2]),
            Step("GET", "/subjects/S/versions?deleted=true", answer=[1, 2]),
            Step("GET", "/subjects/S/versions?deletedOnly=true", answer=[1]),
            Step("GET", "/subjects/S/versions?deletedAsNegative=true", answer=[-1, 2]),
            Step("GET", "/subjects/S/versions/1", status=404, answer=refusal(40402)),
            Step("GET", "/subjects/S/versions/1?deleted=true", answer={"version": 1, "schema": A}),
            Step("GET", "/schemas/ids/{a}", answer={"schema": A}),
            Step("POST", "/subjects/S", body(A), status=404, answer=refusal(40403)),
            Step("POST", "/subjects/S?deleted=true", body(A), answer={"version": 1}),
            Step("DELETE", "/subjects/S/versions/1?permanent=true", answer=1),
            Step("GET", "/subjects/S/versions?deleted=true", answer=[2]),
            Step("DELETE", "/subjects/S/versions/latest", answer=2),
            Step("GET", "/subjects/S/versions", status=404, answer=refusal(40401)),
        ],
    ),
    Story(
        "deletion-of-subjects",
        [
            Step("DELETE", "/subjects/S", status=404, answer=refusal(40401)),
            _register(keep="a"),
            _register(ABD),
            Step("DELETE", "/subjects/S?permanent=true", status=404, answer=refusal(40405)),
            Step("DELETE", "/subjects/S", answer=[1, 2]),
            Step("DELETE", "/subjects/S", status=404, answer=refusal(40404)),
            Step("GET", "/subjects?subjectPrefix=S", answer=[]),
            Step("GET", "/subjects?subjectPrefix=S&deleted=true", answer=["S"]),
            Step("GET", "/subjects?subjectPrefix=S&deletedOnly=true", answer=["S"]),
            Step("GET", "/schemas/ids/{a}", answer={"schema": A}),
            Step("POST", "/subjects/S/versions", body(A), answer={"id": Kept("a")}),
            Step("GET", "/subjects/S/versions", answer=[3]),
            Step("DELETE", "/subjects/S", answer=[3]),
            Step("DELETE", "/subjects/S?permanent=true", answer=[2, 3]),
            Step("GET", "/subjects?subjectPrefix=S&deleted=true", answer=[]),
            Step("DELETE", "/subjects/S?permanent=true", status=404, answer=refusal(40401)),
        ],
    ),
    Story(
        "a-deleted-version-does-not-stand-in-the-way",
        [
            _register(),
            Step("DELETE", "/subjects/S/versions/1", answer=1),
            Step("POST", "/subjects/S/versions", body(avro("a:string"))),
            Step("GET", "/subjects/S/versions", answer=[2]),
        ],
    ),
    Story(
        "references",
        [
            Step("POST", "/subjects/S-part/versions", body(avro("x:int", name="Part")), keep="part"),
            Step(
                "POST",
                "/subjects/S-whole/versions",
                body(avro('p:"Part"', name="Whole"), references=[PART]),
                keep="whole",
            ),
            Step(
                "GET",
                "/subjects/S-whole/versions/1",
                answer={"references": [PART]},
            ),
            Step("GET", "/subjects/S-part/versions/1/referencedby", answer=[Kept("whole")]),
            Step("GET", "/subjects/S-part/versions/latest/referencedby", answer=[Kept("whole")]),
            Step("GET", "/subjects/S-whole/versions/1/referencedby", answer=[]),
            Step("GET", "/subjects/S-part/versions/7/referencedby", status=404, answer=refusal(40402)),
            Step("DELETE", "/subjects/S-part/versions/1", status=422, answer=refusal(42206)),
            Step("DELETE", "/subjects/S-part", status=422, answer=refusal(42206)),
            Step(
                "POST",
                "/subjects/S-newest/versions",
                body(avro('p:"Part"', name="Newest"), references=[{"name": "Part", "subject": "S-part", "version": -1}]),
            ),
            Step(
                "GET",
                "/subjects/S-newest/versions/1",
                answer={"references": [PART]},
            ),
            Step("DELETE", "/subjects/S-newest", answer=[1]),
            Step("DELETE", "/subjects/S-whole", answer=[1]),
            Step("DELETE", "/subjects/S-part", answer=[1]),
            Step("DELETE", "/subjects/S-part?permanent=true", status=422, answer=refusal(42206)),
            Step("DELETE", "/subjects/S-whole?permanent=true", answer=[1]),
            Step("DELETE", "/subjects/S-newest?permanent=true", answer=[1]),
            Step("DELETE", "/subjects/S-part?permanent=true", answer=[1]),
        ],
    ),
    Story(
        "references-of-json-and-protobuf",
        [
            Step("POST", "/subjects/S-item/versions", body('{"$id":"item.json","type":"string"}', "JSON")),
            Step(
                "POST",
                "/subjects/S-list/versions",
                body(
                    '{"type":"array","items":{"$ref":"item.json"}}',
                    "JSON",
                    references=[{"name": "item.json", "subject": "S-item", "version": 1}],
                ),
            ),
            Step(
                "POST",
                "/subjects/S-list/versions",
                body('{"type":"array","items":{"$ref":"http://127.0.0.1:1/x.json"}}', "JSON"),
                status=422,
                answer=refusal(42201, "nothing is fetched"),
            ),
            Step("POST", "/subjects/S-q.proto/versions", body(proto("int32 a = 1", package="q", message="Q"), "PROTOBUF")),
            Step(
                "POST",
                "/subjects/S-m/versions",
                body(
                    'syntax = "proto3";\nimport "q.proto";\nmessage M { q.Q q = 1; }\n',
                    "PROTOBUF",
                    references=[{"name": "q.proto", "subject": "S-q.proto", "version": 1}],
                ),
            ),
            Step(
                "POST",
                "/subjects/S-m/versions",
                body('syntax = "proto3";\nimport "other.proto";\nmessage M {}\n', "PROTOBUF"),
                status=422,
                answer=refusal(42201, r"other\.proto"),
            ),
            Step(
                "POST",
                "/subjects/S-w/versions",
                body(
                    'syntax = "proto3";\nimport "google/protobuf/timestamp.proto";\n'
                    "message M { google.protobuf.Timestamp t = 1; }\n",
                    "PROTOBUF",
                ),
            ),
        ],
    ),
    Story(
        "config",
        [
            Step("GET", "/config/S", status=404, answer=refusal(40408)),
            Step("GET", "/config/S?defaultToGlobal=true", answer={"compatibilityLevel": "BACKWARD"}),
            Step("PUT", "/config/S", compatibility_of("FULL"), answer=compatibility_of("FULL")),
            Step("GET", "/config/S", answer={"compatibilityLevel": "FULL"}),
            Step("PUT", "/config/S", compatibility_of("none"), answer=compatibility_of("NONE")),
            Step("PUT", "/config/S", compatibility_of("SOMETIMES"), status=422, answer=refusal(42203)),
            Step("PUT", "/config/S", {}, status=422, answer=refusal(42203)),
            Step("DELETE", "/config/S", answer={"compatibilityLevel": "NONE"}),
            Step("DELETE", "/config/S", status=404, answer=refusal(40408)),
            Step("GET", "/config/S", status=404, answer=refusal(40408)),
            Step("GET", "/config", answer={"compatibilityLevel": "BACKWARD"}),
            Step("PUT", "/config", compatibility_of("FORWARD"), answer=compatibility_of("FORWARD")),
            Step("GET", "/config", answer={"compatibilityLevel": "FORWARD"}),
            Step("GET", "/config/S?defaultToGlobal=true", answer={"compatibilityLevel": "FORWARD"}),
            Step("PUT", "/config", compatibility_of("BACKWARD"), answer=compatibility_of("BACKWARD")),
            Step("PUT", "/config", compatibility_of("x"), status=422, answer=refusal(42203)),
            Step("PUT", "/config/S", {"normalize": True}, answer={"normalize": True}),
            Step("GET", "/config/S?defaultToGlobal=true", answer={"compatibilityLevel": "BACKWARD", "normalize": True}),
            Step(
                "PUT", "/config/S", {"compatibilityGroup": "major"}, answer={"compatibilityGroup": "major", "normalize": True}
            ),
        ],
    ),
    Story(
        "compatibility-groups",
        [
            Step("PUT", "/config/S", {"compatibility": "BACKWARD", "compatibilityGroup": "major"}),
            Step("POST", "/subjects/S/versions", body(A, metadata={"properties": {"major": "1"}})),
            Step("POST", "/subjects/S/versions", body(avro("z:string"), metadata={"properties": {"major": "2"}})),
            Step(
                "POST",
                "/subjects/S/versions",
                body(avro("z:int"), metadata={"properties": {"major": "2"}}),
                status=409,
                answer=refusal(409),
            ),
        ],
    ),
    Story(
        "checks",
        [
            Step("POST", "/compatibility/subjects/S/versions/latest", body(A), answer={"is_compatible": True}),
            Step("POST", "/compatibility/subjects/S/versions", body(A), answer={"is_compatible": True}),
            Step("POST", "/compatibility/subjects/S/versions/1", body(A), status=404, answer=refusal(40401)),
            _register(),
            Step("POST", "/compatibility/subjects/S/versions/1", body(AB), answer={"is_compatible": False}),
            Step("POST", "/compatibility/subjects/S/versions/2", body(AB), status=404, answer=refusal(40402)),
            Step("POST", "/compatibility/subjects/S/versions/x", body(AB), status=422, answer=refusal(42202)),
            Step("POST", "/compatibility/subjects/S/versions/latest", body("{"), status=422, answer=refusal(42201)),
            Step(
                "POST",
                "/compatibility/subjects/S/versions/latest?verbose=true",
                body(AB),
                answer={"is_compatible": False, "messages": Says("READER_FIELD_MISSING_DEFAULT_VALUE")},
            ),
        ],
    ),
    Story(
        "modes",
        [
            Step("GET", "/mode", answer={"mode": "READWRITE"}),
            Step("GET", "/mode/S", status=404, answer=refusal(40409)),
            Step("GET", "/mode/S?defaultToGlobal=true", answer={"mode": "READWRITE"}),
            Step("PUT", "/mode/S", {"mode": "x"}, status=422, answer=refusal(42204)),
            Step("PUT", "/mode/S", {"mode": "READONLY"}, answer={"mode": "READONLY"}),
            Step("GET", "/mode/S", answer={"mode": "READONLY"}),
            Step("POST", "/subjects/S/versions", body(A), status=422, answer=refusal(42205, "S")),
            Step("DELETE", "/subjects/S", status=422, answer=refusal(42205)),
            Step("DELETE", "/mode/S", answer={"mode": "READONLY"}),
            Step("DELETE", "/mode/S", status=404, answer=refusal(40409)),
            _register(),
            Step("PUT", "/mode/S", {"mode": "READONLY"}, answer={"mode": "READONLY"}),
            Step("DELETE", "/subjects/S", status=422, answer=refusal(42205)),
            Step("DELETE", "/subjects/S/versions/1", status=422, answer=refusal(42205)),
            Step("PUT", "/mode/S", {"mode": "READWRITE"}, answer={"mode": "READWRITE"}),
            Step("PUT", "/mode/S", {"mode": "IMPORT"}, status=422, answer=refusal(42205)),
            Step("PUT", "/mode/S?force=true", {"mode": "IMPORT"}, answer={"mode": "IMPORT"}),
        ],
    ),
    Story(
        "import",
        [
            Step("POST", "/subjects/S/versions", body(A, id=70001, version=3), status=422, answer=refusal(42205)),
            Step("PUT", "/mode/S", {"mode": "IMPORT"}, answer={"mode": "IMPORT"}),
            Step("POST", "/subjects/S/versions", body(A), status=422, answer=refusal(42205)),
            Step("POST", "/subjects/S/versions", body(avro("imported:int"), id=70001, version=3), answer={"id": 70001}),
            Step("GET", "/subjects/S/versions", answer=[3]),
            Step("GET", "/schemas/ids/70001", answer={"schema": avro("imported:int")}),
            Step(
                "POST",
                "/subjects/S/versions",
                body(avro("other:string"), id=70001, version=4),
                status=422,
                answer=refusal(42205),
            ),
            Step("POST", "/subjects/S/versions", body(avro("imported:string"), id=70002, version=1), answer={"id": 70002}),
            Step("GET", "/subjects/S/versions", answer=[1, 3]),
            Step("POST", "/subjects/S/versions", body(avro("imported:string"), id=70002, version=1), answer={"id": 70002}),
            Step("PUT", "/mode/S", {"mode": "READWRITE"}, answer={"mode": "READWRITE"}),
            Step("POST", "/subjects/S/versions", body(avro("imported:int", "after:int=0")), answer={"id": 70003}),
            Step("GET", "/subjects/S/versions", answer=[1, 3, 4]),
        ],
    ),
    Story(
        "normalize",
        [
            Step("POST", "/subjects/S/versions", body(EXTRAS), keep="n"),
            Step(
                "POST",
                "/subjects/S",
                body(SAME_EXTRAS),
                status=404,
                answer=refusal(40403),
            ),
            Step("POST", "/subjects/S-n/versions?normalize=true", body(EXTRAS)),
            Step(
                "POST",
                "/subjects/S-n?normalize=true",
                body(SAME_EXTRAS),
                answer={"version": 1},
            ),
            Step("POST", "/subjects/S-j/versions?normalize=true", body(CLOSED, "JSON")),
            Step(
                "POST",
                "/subjects/S-j?normalize=true",
                body('{"additionalProperties":false,"type":"object"}', "JSON"),
                answer={"schema": '{"additionalProperties":false,"type":"object"}'},
            ),
        ],
    ),
    Story(
        "metadata-and-rules",
        [
            Step(
                "POST",
                "/subjects/S/versions",
                body(
                    A,
                    metadata={"properties": {"owner": "ada"}, "tags": {"R.a": ["PII"]}, "sensitive": ["owner"]},
                    ruleSet={
                        "domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "a > 0"}]
                    },
                ),
            ),
            Step(
                "GET",
                "/subjects/S/versions/latest",
                answer={
                    "metadata": {"properties": {"owner": "ada"}, "tags": {"R.a": ["PII"]}, "sensitive": ["owner"]},
                    "ruleSet": {
                        "domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "a > 0"}]
                    },
                },
            ),
            Step("GET", "/subjects/S/metadata?key=owner&value=ada", answer={"version": 1}),
            Step("GET", "/subjects/S/metadata?key=owner&value=bob", status=404, answer=refusal(40403)),
            Step("GET", "/subjects/S-none/metadata?key=owner&value=ada", status=404, answer=refusal(40401)),
            Step("POST", "/subjects/S/versions", body(ABD)),
            Step("GET", "/subjects/S/versions/2", answer={"metadata": {"properties": {"owner": "ada"}}}),
            Step("POST", "/subjects/S/versions", body(ABD, ruleSet=7), status=422, answer=refusal(42210)),
        ],
    ),
    Story(
        "guids",
        [
            Step("POST", "/subjects/S/versions", body(avro("guid:int")), keep="a", answer={"guid": ANY}),
            Step("GET", "/schemas/ids/{a}", answer={"guid": Says("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")}, keep="whole"),
            Step("GET", "/schemas/guids/{whole.guid}", answer={"schema": avro("guid:int"), "guid": ANY}),
            Step("GET", "/schemas/guids/{whole.guid}/ids", answer=[{"context": ".", "id": Kept("a")}]),
            Step("GET", "/schemas/guids/00000000-0000-0000-0000-000000000000", status=404, answer=refusal(40403)),
            Step("GET", "/schemas/guids/00000000-0000-0000-0000-000000000000/ids", status=404, answer=refusal(40403)),
        ],
    ),
    Story(
        "contexts",
        [
            Step("POST", "/subjects/:.S:a/versions", body(avro("ctx:int")), answer={"id": 1}),
            Step("POST", "/contexts/.S/subjects/b/versions", body(avro("ctx:long")), answer={"id": 2}),
            Step("GET", "/contexts/.S/subjects", answer=[":.S:a", ":.S:b"]),
            Step("GET", "/contexts/.S/subjects/a/versions", answer=[1]),
            Step("GET", "/contexts/.S/schemas/ids/1", answer={"schema": avro("ctx:int")}),
            Step("GET", "/schemas/ids/2?subject=:.S:", answer={"schema": avro("ctx:long")}),
            Step("GET", "/subjects?subjectPrefix=:.S:", answer=[":.S:a", ":.S:b"]),
            Step("GET", "/subjects?subjectPrefix=a", answer=ANY),
            Step("PUT", "/contexts/.S/config", compatibility_of("NONE"), answer=compatibility_of("NONE")),
            Step("GET", "/config/:.S:", answer={"compatibilityLevel": "NONE"}),
            Step("GET", "/contexts/.S/config/a?defaultToGlobal=true", answer={"compatibilityLevel": "NONE"}),
            Step("GET", "/contexts", answer=ANY),
            Step("DELETE", "/contexts/.S", status=422, answer=refusal(42211)),
            Step("DELETE", "/contexts/.S/subjects/a", answer=[1]),
            Step("DELETE", "/contexts/.S/subjects/a?permanent=true", answer=[1]),
            Step("DELETE", "/contexts/.S/subjects/b", answer=[1]),
            Step("DELETE", "/contexts/.S/subjects/b?permanent=true", answer=[1]),
            Step("DELETE", "/contexts/.S", status=204, answer=None),
        ],
    ),
    Story(
        "names",
        [
            Step("POST", "/subjects/S%2Fwith%20all%3F/versions", body(A)),
            Step("GET", "/subjects/S%2Fwith%20all%3F/versions", answer=[1]),
            Step("GET", "/subjects?subjectPrefix=S%2F", answer=["S/with all?"]),
            Step("POST", "/subjects/__GLOBAL/versions", body(A), status=422, answer=refusal(42208)),
            Step("POST", "/subjects/__EMPTY/versions", body(A), status=422, answer=refusal(42208)),
            Step("POST", "/subjects/S%0A/versions", body(A), status=422, answer=refusal(42208)),
        ],
    ),
    Story(
        "lists",
        [
            _register(),
            _register(ABD),
            Step("GET", "/schemas?subjectPrefix=S", answer=[{"subject": "S", "version": 1}, {"subject": "S", "version": 2}]),
            Step("GET", "/schemas?subjectPrefix=S&latestOnly=true", answer=[{"version": 2}]),
            Step("GET", "/schemas?subjectPrefix=S&offset=1&limit=1", answer=[{"version": 2}]),
            Step("DELETE", "/subjects/S/versions/2", answer=2),
            Step("GET", "/schemas?subjectPrefix=S", answer=[{"version": 1}]),
            Step("GET", "/schemas?subjectPrefix=S&deleted=true", answer=[{"version": 1}, {"version": 2}]),
            Step("GET", "/schemas?limit=x", status=422, answer=ANY),
        ],
    ),
    Story(
        "aliases",
        [
            _register(),
            Step("PUT", "/config/S-alias", {"alias": "S"}, answer={"alias": "S"}),
            Step("GET", "/subjects/S-alias/versions", answer=[1]),
            Step("GET", "/subjects/S-alias/versions/latest", answer={"version": 1, "schema": A}),
            Step("POST", "/subjects/S-alias", body(A), answer={"version": 1}),
        ],
    ),
]


def asked(url: str, step: Step, subject: str, kept: dict[str, Any]) -> tuple[int, Any, str]:
    """The status, the body and the type of an answer."""
    data = None if step.body is None else put_in(json.dumps(step.body), subject, kept).encode()
    request = Request(url + put_in(step.path, subject, kept), data, {"Content-Type": CONTENT_TYPE}, method=step.method)
    try:
        with urlopen(request, timeout=60) as response:
            text, status, kind = response.read(), response.status, response.headers["Content-Type"]
    except HTTPError as refusal:
        text, status, kind = refusal.read(), refusal.code, refusal.headers["Content-Type"]
    return status, json.loads(text) if text else None, kind


def mismatch(wanted: Any, found: Any, kept: dict[str, Any], path: str = "") -> str:
    """Where an answer differs from what was wanted; empty if it does not."""
    if isinstance(wanted, Anything):
        return ""
    if isinstance(wanted, Kept):
        wanted = kept[wanted]["id"]
    if isinstance(wanted, Says):
        text = found if isinstance(found, str) else json.dumps(found)
        return "" if re.search(wanted.pattern, text) else f"{path}: {text} does not say {wanted.pattern}"
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name, each in wanted.items():
            if name not in found:
                return f"{path}/{name} is missing in {found}"
            if different := mismatch(each, found[name], kept, f"{path}/{name}"):
                return different
        return ""
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return next(filter(None, (mismatch(*each, kept, f"{path}/{index}") for index, each in pairs)), "")
    return "" if wanted == found else f"{path}: {found!r}, not {wanted!r}"


def put_in(text: str, subject: str, kept: dict[str, Any]) -> str:
    """A path or a body with the subject and the kept values of a story."""
    text = re.sub(r"(?<![A-Za-z0-9_])S(?![A-Za-z0-9_])", subject, text)
    for name, answer in kept.items():
        text = text.replace(f"{{{name}}}", str(answer.get("id")))
        for own, each in answer.items():
            text = text.replace(f"{{{name}.{own}}}", str(each))
    return text


def named(wanted: Any, subject: str) -> Any:
    """An expected answer with the subject of a story."""
    if isinstance(wanted, Says):
        return Says(put_in(wanted.pattern, subject, {}))
    if isinstance(wanted, Kept):
        return wanted
    if isinstance(wanted, dict):
        return {name: each if name == "schema" else named(each, subject) for name, each in wanted.items()}
    if isinstance(wanted, list):
        return [named(each, subject) for each in wanted]
    return put_in(wanted, subject, {}) if isinstance(wanted, str) else wanted
