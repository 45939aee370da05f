"""`ottla --version --all`: Python, the packages in use, and which kernels are compiled; for bug reports and releases."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from importlib import import_module, metadata

from ottla.errors import OttlaError
from ottla.records.kernels import PURE_ASKED, is_compiled

KERNELS = (
    "records.kernel",
    "records.kernel_columns",
    "records.kernel_frames",
    "records.kernel_batch",
    "records.kernel_accumulate",
    "records.kernel_many",
    "records.kernel_consume",
    "records.kernel_partition",
    "log.fast_path.kernel_producers",
    "log.fast_path.kernel_append",
    "broker.partitions.kernel",
    "broker.handlers.fast_path.kernel_produce",
    "broker.handlers.fast_path.kernel_commit_records",
    "broker.handlers.fast_path.kernel_commit",
)
"""Those of setup.py; the support code that they share is not counted."""

PURE_COST = (
    "pure Python kernels take 4 to 16 times the processor time for a produce request, and 10 to 50 times for a client's record"
)


def all_versions() -> Iterator[str]:
    """The lines that follow `ottla --version`."""
    build = " free-threaded" if "free-threading" in sys.version else ""
    yield f"python     {platform.python_version()}{build} ({platform.python_implementation()}) at {sys.executable}"
    libc = " ".join(platform.libc_ver()).strip()
    yield f"platform   {platform.system()} {platform.release()} {platform.machine()}{f', {libc}' if libc else ''}"
    for name, extras in _packages().items():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            if extras:
                continue  # of an extra that is not installed
            found = f"MISSING: pip install {name}"
        yield f"package    {name} {found}{' (for ' + ', '.join(extras) + ')' if extras else ''}"
    states = {name: _state(name) for name in KERNELS}
    compiled = sum(state == "compiled" for state in states.values())
    yield f"kernels    {compiled} of {len(states)} compiled{': OTTLA_PURE asks for pure Python' if PURE_ASKED else ''}"
    for name, state in states.items():
        yield f"  {name} {state}"
    if not compiled:
        yield pure_note()


def pure_note() -> str:
    """What pure kernels cost, and how to get compiled ones."""
    if PURE_ASKED:
        return f"note: {PURE_COST}; without OTTLA_PURE the compiled kernels are used, if there are any"
    return (
        f"note: {PURE_COST}. Compiled ones: install a C compiler and Python's header files (apt install gcc python3-dev), then"
        " install ottla again with pip install --force-reinstall --no-deps --no-cache-dir --no-binary ottla"
    )


def _state(name: str) -> str:
    if PURE_ASKED:
        return "pure"
    try:
        return "compiled" if is_compiled(import_module(f"ottla.{name}")) else "pure"
    except (ImportError, OttlaError) as problem:
        return f"CANNOT BE LOADED: {problem}"


def _packages() -> dict[str, list[str]]:
    """The packages that the installed Ottla names, each with the extras that ask for it; none for what it always needs."""
    try:
        requirements = metadata.requires("ottla") or []
    except metadata.PackageNotFoundError:  # a source tree on PYTHONPATH
        return {}
    packages: dict[str, list[str]] = {}
    for requirement in requirements:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        if extra is None:
            packages[name] = []
        elif extra[1] not in ("dev", "peers", "dist", "docs", "demo") and packages.get(name) != []:
            packages.setdefault(name, []).append(extra[1])
    return packages
