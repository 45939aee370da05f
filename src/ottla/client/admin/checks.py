"""Checks of the Admin's arguments. Every error names the argument and is raised before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TypeVar

from ottla.errors import ArgumentError
from ottla.ids import TopicPartition, Uuid, topic_name_fault

E = TypeVar("E", bound=IntEnum)
T = TypeVar("T")

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1


def member(kind: type[E], value: E | str, argument: str) -> E:
    """The member that `value` is or names: `"read"`, `"READ"` and `AclOperation.READ` are the same."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        found = kind.__members__.get(value.strip().upper().replace("-", "_").replace(" ", "_"))
        if found is not None:
            return found
    names = ", ".join(name.lower() for name in kind.__members__ if name != "UNKNOWN")
    raise ArgumentError(f"{argument} is {value!r}, but must be one of {names}")


def member_or_unknown(kind: type[E], number: int) -> E:
    """The member of a number in a response; the kind's UNKNOWN for one of a newer broker."""
    return kind._value2member_map_.get(number) or kind["UNKNOWN"]  # type: ignore[return-value]  # the map is typed by Enum


def listed(values: Iterable[T] | None, argument: str) -> list[T]:
    """`values` as a list. A single text is refused: it would be taken apart into letters."""
    if isinstance(values, str | bytes):
        raise TypeError(f"{argument} must be a list, not the single value {values!r}: write [{values!r}]")
    if values is None:
        raise TypeError(f"{argument} must be a list, not None")
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{argument} must be a list, not {values!r}") from None


def texts(values: Iterable[str], argument: str) -> list[str]:
    """`values` as a list of texts that are not empty, each once."""
    found = list(dict.fromkeys(listed(values, argument)))
    for value in found:
        text(value, argument)
    return found


def text(value: str, argument: str) -> str:
    """`value`, if it is a text and not empty."""
    if not isinstance(value, str):
        raise TypeError(f"{argument} must be a text, not {value!r}")
    if not value:
        raise ArgumentError(f"{argument} must not be empty")
    return value


def topic_name(value: str, argument: str) -> str:
    """`value`, if it can be the name of a topic that exists. The broker judges its characters."""
    if not isinstance(value, str):
        raise TypeError(f"{argument}: a topic's name is a text, not {value!r}")
    return text(value, f"{argument}: a topic's name")


def new_topic_name(value: str, argument: str) -> str:
    """`value`, if a topic of this name can be created."""
    fault = topic_name_fault(topic_name(value, argument))
    if fault is not None:
        raise ArgumentError(f"{argument}: {fault}")
    return value


def topic_or_id(value: str | Uuid, argument: str) -> str | Uuid:
    """`value`, if it can be a topic's name or is an id of 16 bytes."""
    if isinstance(value, bytes):
        if len(value) != 16 or not any(value):
            raise ArgumentError(f"{argument}: a topic id is 16 bytes that are not all zero, not {value!r}")
        return value
    return topic_name(value, argument)


def number(value: int, argument: str, least: int = 0, most: int = INT32_MAX) -> int:
    """`value`, if it is a whole number within the bounds."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{argument} must be a whole number, not {value!r}")
    if not least <= value <= most:
        raise ArgumentError(f"{argument} is {value}, but must be from {least} to {most}")
    return value


def numbers(values: Iterable[int], argument: str, least: int = 0) -> list[int]:
    """`values` as a list of whole numbers."""
    return [number(value, argument, least) for value in listed(values, argument)]


def partition(value: TopicPartition | tuple[str, int], argument: str) -> TopicPartition:
    """`value` as a `TopicPartition`; a pair of topic and number will do."""
    if isinstance(value, str) or not isinstance(value, tuple) or len(value) != 2:
        raise TypeError(f"{argument}: a partition is TopicPartition(topic, number), not {value!r}")
    return TopicPartition(topic_name(value[0], argument), number(value[1], argument))


def partitions(values: Iterable[TopicPartition | tuple[str, int]], argument: str) -> list[TopicPartition]:
    """`values` as a list of `TopicPartition`, each once."""
    return list(dict.fromkeys(partition(value, argument) for value in listed(values, argument)))


def mapping(values: Mapping[T, object], argument: str) -> None:
    """Refuse what is no mapping."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{argument} must be a mapping, such as a dict, not {values!r}")


def config_text(value: object, argument: str) -> str:
    """A setting's value as Kafka writes it: texts as they are, booleans in lower case, lists with commas."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return ",".join(config_text(each, argument) for each in value)
    raise TypeError(f"{argument} must be a text, a number, a boolean or a list of those, not {value!r}")
