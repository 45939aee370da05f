"""What `from ottla import …` gives, and what it loads."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ottla

OWN_MODULES_MAX = 90
OWN_MODULES_MADE_MAX = 134
STANDARD_MODULES = {"bisect", "copy", "copyreg", "dataclasses", "fcntl", "importlib.util", "keyword", "resource", "typing"}
"""What a producer needs of the standard library beside asyncio and logging; up to Python 3.13 asyncio has typing, too.
Modules with an underscore are parts of these."""
LATE_MODULES = {
    "ottla.client.producer.arrow",
    "ottla.client_core.producer.prepared_transactions",
    "ottla.client_core.producer.transactions",
    "ottla.client_core.telemetry",
    "ottla.env.real.disk",
    "ottla.env.real.helpers",
    "ottla.env.real.tls",
    "ottla.env.real.workers",
    "ottla.link.login",
    "ottla.link.sasl",
    "ottla.link.scram",
    "ottla.link.tokens",
}
"""What a producer loads only when it uses TLS, SASL, transactions, pushes of metrics or Arrow, and what only nodes use."""
SERVER_ROOMS = {"broker", "log", "raft", "metadata", "coordinator", "cli", "testing", "sim"}


def test_every_public_name_can_be_imported() -> None:
    for name in ottla.__all__:
        assert getattr(ottla, name) is not None
    assert set(ottla.__all__) <= set(dir(ottla))


def test_names_for_type_checkers_and_for_programs_are_the_same() -> None:
    tree = ast.parse(Path(ottla.__file__).read_text())
    [block] = [each for each in tree.body if isinstance(each, ast.If)]
    checked = {alias.name: each.module for each in block.body if isinstance(each, ast.ImportFrom) for alias in each.names}
    assert checked == ottla._HOMES
    assert sorted([*checked, "__version__"]) == sorted(ottla.__all__)


def test_the_types_in_the_signatures_of_the_clients_are_public() -> None:
    """A user annotates a function with what a client returns: the type must be importable from `ottla`."""
    not_types = {
        "Any",
        "Self",
        "None",
        "TracebackType",
        "ClientWorld",
        "K",
        "V",
        "T",
        "Iterator",
        "Iterable",
        "Mapping",
        "Callable",
    }
    missing = set()
    for face in (ottla.Producer, ottla.Consumer):
        for name, member in vars(face).items():
            if name.startswith("_") or not callable(member):
                continue
            for annotation in inspect.get_annotations(inspect.unwrap(member)).values():
                words = set(re.findall(r"\b[A-Z][A-Za-z]*\b", str(annotation)))
                missing |= words - not_types - set(ottla.__all__)
    aliases = {
        "ByPartition",
        "CommitOffsets",
        "PartitionLike",
        "Partitions",
        "TimeLike",
        "Topics",
        "CommitCallback",
        "OnBatch",
        "OnDelivery",
        "Headers",
        "Offsets",
        "Table",
        "ArrowData",
    }
    assert missing <= aliases | {"Handler"}


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Producr"):
        _ = ottla.Producr  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["Producer", "Consumer", "Admin"])
def test_a_client_loads_no_code_of_the_broker(name: str) -> None:
    rooms = {module.split(".")[1] for module in loaded_with(name) if module.startswith("ottla.")}
    assert rooms & SERVER_ROOMS == set()


def loaded_with(name: str, then: str = "") -> set[str]:
    """The modules that `from ottla import {name}` adds to those of asyncio and logging."""
    code = f"import asyncio, logging, sys; before = set(sys.modules); from ottla import {name}\n{then}\n"
    code += "print(*set(sys.modules) - before)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize(
    ("then", "own_max"), [("", OWN_MODULES_MAX), ("Producer('127.0.0.1:1').close(0)", OWN_MODULES_MADE_MAX)]
)
def test_importing_and_making_a_producer_is_cheap(then: str, own_max: int) -> None:
    """What few programs use is loaded when they do; a new module needs a reason."""
    found = loaded_with("Producer", then)
    others = {module for module in found if not module.startswith(("ottla", "_", "importlib._", "cython", "kernel_shared"))}
    assert others <= STANDARD_MODULES
    assert found & LATE_MODULES == set()
    assert len({module for module in found if module.startswith("ottla.")}) <= own_max


def test_importing_the_producer_does_not_load_asyncio() -> None:
    """It takes longer to import than everything of Ottla's. The first producer that is made loads it."""
    code = "import sys; from ottla import Producer; print('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
