"""docs/spark.md: its examples are Python that imports what there is, and its tables name the options that there are."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from ottla.spark.decoding.decode import MODES
from ottla.spark.decoding.formats import FORMATS
from ottla.spark.tables.delta import sink as delta
from ottla.spark.tables.iceberg import sink as iceberg
from ottla.spark.tables.postgres import sink as postgres
from ottla.spark.tables.postgres import source as postgres_source

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_imports_what_there_is(example: str) -> None:
    for node in ast.walk(ast.parse(example)):
        if isinstance(node, ast.ImportFrom):
            module = import_module(str(node.module))
            assert all(hasattr(module, name.name) for name in node.names)


def test_every_format_mode_and_option_is_on_the_page() -> None:
    words = set(re.findall(r"`([\w.*-]+)`", PAGE))
    options = {*postgres.NAMES, *postgres_source.NAMES, *delta.NAMES, *iceberg.NAMES}
    assert {*FORMATS, *MODES, *options} - words == set()
