"""Reads JSON files that users give to commands, in the forms of Kafka's tools. A mistake is wrong usage, in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

T = TypeVar("T")


def read_json(path: str, form: str, parse: Callable[[Any], T]) -> T:
    """What `parse` makes of the JSON in a file (`-`: standard input). `form` is an example of what it must look like.

    `parse` may raise `KeyError` and `TypeError` where the content has another form. The version, if there is one, must be 1.
    """
    return parse_json(read_text(path), path, form, parse)


def read_text(path: str) -> str:
    """The text in a file (`-`: standard input)."""
    try:
        with click.open_file(path, encoding="utf-8") as file:
            return str(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def parse_json(text: str, where: str, form: str, parse: Callable[[Any], T]) -> T:
    """What `parse` makes of JSON. `where` names it in errors."""
    try:
        content: Any = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"{where} is not JSON: {error}. It must look like {form}") from None
    try:
        if content.get("version", 1) != 1:
            raise click.UsageError(f"{where} has version {content['version']}: only version 1 is supported")
        return parse(content)
    except (KeyError, TypeError, AttributeError) as problem:
        missing = f" ({problem.args[0]} is missing)" if isinstance(problem, KeyError) else ""
        raise click.UsageError(f"{where} does not have the form expected{missing}: {form}") from None


def typed(value: Any, kind: type[T]) -> T:
    """`value`, if it is of exactly this type: in Python, True is an int as well."""
    if type(value) is not kind:
        raise TypeError(value)
    return value
