"""Imports within functions: `tools/lazy_modules.py` has the table, with the starts that they make faster."""

import ast
from pathlib import Path

import pytest
from tools.lazy_modules import EXCEPTIONS, STARTS, loaded_by

PACKAGE = Path(__file__).parents[2] / "src" / "ottla"
TABLES_OF_NAMES = {"", "errors", "testing"}
"""Packages whose names are loaded one by one: an import from them within a function is late for the sake of the name."""


def imported_late() -> set[str]:
    """The modules of Ottla that are imported within functions, without the leading `ottla.`."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        functions = (
            each for each in ast.walk(ast.parse(path.read_bytes())) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        )
        for node in (inner for function in functions for inner in ast.walk(function)):
            if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] == "ottla":
                package = node.module.removeprefix("ottla").removeprefix(".")
                for alias in node.names:
                    inner = f"{package}.{alias.name}"
                    found.add(inner if (PACKAGE / f"{inner.replace('.', '/')}.py").exists() else package)
    return found


def test_what_is_imported_late_is_in_the_table() -> None:
    known = {target for start in STARTS.values() for target in start.spared} | set(EXCEPTIONS)
    late = imported_late() - TABLES_OF_NAMES
    assert late - known == set(), "import it at the head of the file, or give it a row, with a start that it makes slower"
    assert known - late - {"errors", "testing.broker"} == set(), "no longer imported late: remove the row"


@pytest.mark.parametrize("name", STARTS)
def test_start_is_spared_its_modules(name: str) -> None:
    start = STARTS[name]
    loaded = loaded_by(start)
    assert loaded
    assert {f"ottla.{target}" for target in start.spared} & set(loaded) == set()
