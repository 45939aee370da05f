"""Schemas as plain objects: messages, structs, fields and version ranges.

Defines what the schema table means: which fields a version has, their defaults and their names in Python. The parser fills
these objects; the compiler, the interpreter, the JSON form and the class generator read them.
"""

from typing import Final, NamedTuple

from ottla.ids import ZERO_UUID

INTEGER_RANGES: Final = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint16": (0, (1 << 16) - 1),
    "uint32": (0, (1 << 32) - 1),
}

FIXED_FORMATS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""The types whose size does not depend on their value, with their letters for `struct`."""

FIXED_SIZES: Final = {"?": 1, "b": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}

STRING_BYTES_MAX: Final = 0x7FFF
"""Kafka refuses longer strings in every version, the flexible ones included."""

NEWEST: Final = 0x7FFF
"""The end of an open range such as `3+`, before it is clipped to its message's newest version."""


class Versions(NamedTuple):
    """A range of versions, both ends included; empty where `low` > `high`."""

    low: int
    high: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def clip(self, other: "Versions") -> "Versions":
        return Versions(max(self.low, other.low), min(self.high, other.high))

    @property
    def is_empty(self) -> bool:
        return self.low > self.high


NO_VERSIONS: Final = Versions(0, -1)


class FieldSchema:
    """One field of a struct. `type` is the element's type where `is_array`; `struct` is set where that type is a struct."""

    __slots__ = (
        "attribute",
        "entity",
        "flexible",
        "ignorable",
        "is_array",
        "is_key",
        "name",
        "nullable",
        "struct",
        "tag",
        "tagged",
        "type",
        "versions",
        "written_default",
        "zerocopy",
    )

    def __init__(self, name: str, type_: str, versions: Versions) -> None:
        self.name = name
        self.attribute = snake_case(name)
        self.is_array = type_.startswith("[]")
        self.type = type_.removeprefix("[]")
        self.versions = versions
        self.nullable = NO_VERSIONS
        self.tag = -1
        self.tagged = NO_VERSIONS
        self.written_default: str | None = None
        self.ignorable = False
        self.is_key = False
        self.flexible = True
        self.zerocopy = False
        self.entity = ""
        self.struct: StructSchema | None = None

    @property
    def is_hole(self) -> bool:
        """Whether the value is not copied: encoding places it as a part of its own, decoding gives a view."""
        return self.type == "records" or self.zerocopy

    @property
    def absent_as_none(self) -> bool:
        """A tagged struct that cannot be null: None means its default, so that the common case allocates no object."""
        return self.struct is not None and not self.is_array and self.tag >= 0 and self.nullable.is_empty

    def default(self) -> object:
        """The value of a field that was not set or is not in a version.

        The caller copies mutable ones: `[]` means a new empty list, and a `StructSchema` means a new struct of that schema.
        """
        written = self.written_default
        if written == "null" or self.absent_as_none:
            return None
        if self.is_array:
            return []
        if self.struct is not None:
            return self.struct
        match self.type:
            case "string":
                return written.strip('"') if written else ""
            case "bytes":
                return b""
            case "records":
                return None if not self.nullable.is_empty else b""
            case "uuid":
                return ZERO_UUID
            case "bool":
                return written == "true"
            case "float64":
                return float(written or 0)
            case _:
                return int(written or "0", 0)


class StructSchema:
    """A named list of fields. `fields_in` gives those of one version, in wire order."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: list[FieldSchema] = []

    def fields_in(self, version: int) -> list[FieldSchema]:
        """The fields of `version` that are not tagged, in order."""
        return [field for field in self.fields if version in field.versions and version not in field.tagged]

    def tagged_in(self, version: int) -> list[FieldSchema]:
        """The tagged fields of `version`, in tag order."""
        return sorted((field for field in self.fields if version in field.tagged), key=lambda field: field.tag)

    def absent_in(self, version: int) -> list[FieldSchema]:
        """The fields that `version` does not have."""
        return [field for field in self.fields if version not in field.versions]


class MessageSchema:
    """One message: its struct, the structs below it in order of appearance, and what its head line says."""

    __slots__ = ("flexible", "is_latest_unstable", "key", "kind", "listeners", "name", "root", "structs", "versions")

    def __init__(self, name: str) -> None:
        self.name = name
        self.root = StructSchema(name)
        self.structs: dict[str, StructSchema] = {}
        self.kind = ""
        self.key = -1
        self.listeners: tuple[str, ...] = ()
        self.versions = NO_VERSIONS
        self.flexible = NO_VERSIONS
        self.is_latest_unstable = False

    def is_flexible(self, version: int) -> bool:
        return version in self.flexible


def snake_case(name: str) -> str:
    """`TransactionalId` as `transactional_id`; `KRaft` counts as one word."""
    name = name.replace("KRaft", "Kraft")
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
