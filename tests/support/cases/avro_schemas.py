"""Random Avro schemas, changes of them, and values, from a seed."""

import json
from random import Random
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEFAULTS = {"null": None, "boolean": True, "int": 1, "long": 2, "float": 0.5, "double": 1.5, "bytes": "ab", "string": "s"}


class Schemas:
    """Schemas, changes of them, and values, from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._names = 0

    def schema(self, depth: int = 0, *, in_union: bool = False) -> Any:
        random = self._random
        kinds = ["primitive"] * 5 + ["enum", "fixed"]
        if depth < 4:
            kinds += ["array", "map", "record", "record"] + ([] if in_union else ["union", "union"])
        kind = "record" if depth == 0 else random.choice(kinds)
        self._names += 1
        match kind:
            case "primitive":
                return random.choice(PRIMITIVES)
            case "enum":
                made: Any = {"type": "enum", "name": f"E{self._names}", "symbols": random.sample("ABCD", random.randint(1, 4))}
                return made | ({"default": made["symbols"][0]} if random.random() < 0.3 else {})
            case "fixed":
                return {"type": "fixed", "name": f"F{self._names}", "size": random.randint(1, 3)}
            case "array":
                return {"type": "array", "items": self.schema(depth + 1)}
            case "map":
                return {"type": "map", "values": self.schema(depth + 1)}
            case "record":
                names = random.sample("abcde", random.randint(1, 4))
                return {"type": "record", "name": f"R{self._names}", "fields": [self._field(each, depth) for each in names]}
        branches: dict[str, Any] = {}
        for _ in range(random.randint(1, 4)):
            one = self.schema(depth + 1, in_union=True)
            branches.setdefault(one if isinstance(one, str) else one.get("name") or one["type"], one)
        return list(branches.values())

    def _field(self, name: str, depth: int) -> Any:
        kind = self.schema(depth + 1)
        first = kind[0] if isinstance(kind, list) else kind
        if isinstance(first, str) and self._random.random() < 0.4:
            return {"name": name, "type": kind, "default": DEFAULTS[first]}
        return {"name": name, "type": kind}

    def changed(self, schema: Any) -> Any:
        """The schema with one to three places changed: fields added, removed, reordered and renamed; other types."""
        schema = json.loads(json.dumps(schema))
        for _ in range(self._random.randint(1, 3)):
            box = [schema]
            self._change(*self._random.choice(_places(box, 0, is_branch=False)))
            schema = box[0]
        return schema

    def _change(self, holder: Any, key: Any, is_branch: bool) -> None:
        random, place = self._random, holder[key]
        if isinstance(place, list):
            random.shuffle(place)
            if random.random() < 0.5 and len(place) > 1:
                place.pop()
            _drop_default(holder)
            return
        if isinstance(place, str):
            if not is_branch:
                holder[key] = random.choice([random.choice(PRIMITIVES), ["null", place] if place != "null" else "null"])
                _drop_default(holder)
            return
        match place["type"]:
            case "enum":
                place["symbols"] = random.sample("ABCDE", random.randint(1, 5))
                place.pop("default", None)
                if random.random() < 0.4:
                    place["default"] = place["symbols"][0]
            case "fixed":
                place["size"] = random.choice([place["size"], 2])
            case "record":
                match random.randint(0, 3):
                    case 0:
                        place["fields"].append(self._field(f"new{len(place['fields'])}", 3))
                    case 1 if len(place["fields"]) > 1:
                        place["fields"].pop(random.randrange(len(place["fields"])))
                    case 2:
                        random.shuffle(place["fields"])
                    case _:
                        renamed = random.choice(place["fields"])
                        renamed["aliases"] = [renamed["name"]]
                        renamed["name"] = f"was_{renamed['name']}"

    def value(self, schema: Any) -> Any:
        random = self._random
        if isinstance(schema, list):
            return self.value(random.choice(schema))
        kind = schema if isinstance(schema, str) else schema["type"]
        match kind:
            case "null":
                return None
            case "boolean":
                return random.random() < 0.5
            case "int" | "long":
                return random.randint(-1000, 1000)
            case "float" | "double":
                return random.choice([0.5, -2.25, 3.0])
            case "bytes":
                return random.choice([b"", b"xyz"])
            case "string":
                return random.choice(["", "hello"])
            case "enum":
                return random.choice(schema["symbols"])
            case "fixed":
                return b"x" * schema["size"]
            case "array":
                return [self.value(schema["items"]) for _ in range(random.randint(0, 2))]
            case "map":
                return {each: self.value(schema["values"]) for each in random.sample("xyz", random.randint(0, 2))}
        return {each["name"]: self.value(each["type"]) for each in schema["fields"]}


def _drop_default(holder: Any) -> None:
    if isinstance(holder, dict):
        holder.pop("default", None)


def _places(holder: Any, key: Any, *, is_branch: bool) -> list[tuple[Any, Any, bool]]:
    """Where types stand in a schema, and whether a union is around them."""
    found, schema = [(holder, key, is_branch)], holder[key]
    if isinstance(schema, list):
        for index in range(len(schema)):
            found += _places(schema, index, is_branch=True)
    elif isinstance(schema, dict):
        for each in schema.get("fields", ()):
            found += _places(each, "type", is_branch=False)
        for part in ("items", "values"):
            if part in schema:
                found += _places(schema, part, is_branch=False)
    return found
