"""What the comparison of JSON schemas calls compatible is: values that the old schema takes, the new one takes, too."""

import json
from random import Random
from typing import Any

import pytest
from jsonschema import Draft7Validator

from ottla.schemas.languages import Source
from ottla.schemas.languages.json_schema import differences

PAIRS_QUICK = 1_000
PAIRS = 10_000
VALUES = 60


class Schemas:
    """Schemas, changes of them, and values, from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def schema(self, depth: int = 0) -> Any:
        random = self._random
        kinds = ["string", "integer", "number", "enum", "any"]
        if depth < 3:
            kinds += ["boolean", "null", "object", "array", "oneOf", "anyOf", "allOf", "types"]
        kind = random.choice(kinds)
        if kind == "string":
            return {"type": "string"} | self._some(minLength=random.randint(0, 3), maxLength=random.randint(0, 4))
        if kind in ("integer", "number"):
            bounds = self._some(minimum=random.randint(-2, 3), maximum=random.randint(-2, 4), multipleOf=random.randint(1, 3))
            return {"type": kind} | bounds
        if kind in ("boolean", "null"):
            return {"type": kind}
        if kind == "enum":
            return {"enum": random.sample([1, 2, "a", "b", None, True, 1.5], random.randint(1, 4))}
        if kind == "any":
            return random.choice([True, {}])
        if kind == "types":
            return {"type": random.sample(["string", "integer", "number", "null", "object", "array"], 2)}
        if kind == "array":
            bounds = self._some(minItems=random.randint(0, 2), maxItems=random.randint(0, 3), uniqueItems=True)
            return {"type": "array", "items": self.schema(depth + 1)} | bounds
        if kind == "object":
            properties = {name: self.schema(depth + 1) for name in random.sample("abc", random.randint(0, 3))}
            rest = random.choice([False, self.schema(depth + 1)])
            more = self._some(required=random.sample("abc", random.randint(1, 2)), additionalProperties=rest)
            return {"type": "object", "properties": properties} | more
        return {kind: [self.schema(depth + 1) for _ in range(random.randint(1, 3))]}

    def _some(self, **given: Any) -> dict[str, Any]:
        return {name: each for name, each in given.items() if self._random.random() < 0.35}

    def changed(self, schema: Any) -> Any:
        """The schema with one or two places changed."""
        box = json.loads(json.dumps([schema]))
        for _ in range(self._random.randint(1, 2)):
            holder, name = self._random.choice(_places(box, 0))
            place = holder[name]
            if isinstance(place, dict) and place and self._random.random() < 0.6:
                place.pop(self._random.choice(list(place)))
            else:
                holder[name] = self.schema(1)
        return box[0]

    def value(self, depth: int = 0) -> Any:
        random = self._random
        match random.randint(0, 7 if depth < 3 else 5):
            case 0:
                return None
            case 1:
                return random.random() < 0.5
            case 2:
                return random.randint(-3, 5)
            case 3:
                return random.choice([0.5, 1.5, 2.0])
            case 4:
                return random.choice(["", "a", "b", "abc", "abcde"])
            case 5:
                return random.choice([1, 2, "a"])
            case 6:
                return [self.value(depth + 1) for _ in range(random.randint(0, 3))]
        return {name: self.value(depth + 1) for name in random.sample("abcd", random.randint(0, 3))}


def _places(holder: Any, name: Any) -> list[tuple[Any, Any]]:
    """Where schemas stand in a schema."""
    found, schema = [(holder, name)], holder[name]
    if isinstance(schema, dict):
        for each in schema.get("properties", {}):
            found += _places(schema["properties"], each)
        for each in ("items", "additionalProperties"):
            if each in schema:
                found += _places(schema, each)
        for each in ("oneOf", "anyOf", "allOf"):
            for index in range(len(schema.get(each, ()))):
                found += _places(schema[each], index)
    return found


@pytest.mark.parametrize("count", [PAIRS_QUICK, pytest.param(PAIRS, marks=pytest.mark.slow)])
def test_a_compatible_schema_takes_what_the_old_one_takes(count: int) -> None:
    schemas = Schemas(count)
    compatible = 0
    for _ in range(count):
        old = schemas.schema()
        new = schemas.changed(old)
        if differences(Source("JSON", json.dumps(new)), Source("JSON", json.dumps(old))):
            continue
        compatible += 1
        before, after = Draft7Validator(old), Draft7Validator(new)
        for _ in range(VALUES):
            value = schemas.value()
            if before.is_valid(value) and not after.is_valid(value):
                # `oneOf` also means "not two of them", which registries do not look at.
                assert "oneOf" in json.dumps(new), (old, new, value)
    assert compatible > count / 10
