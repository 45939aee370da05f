"""What is shipped to Python workers: Ottla, the packages that it needs there, and the modules of a pipeline.

Each part is a folder or file that is imported by its own name. Spark unpacks a folder beside the other files of the session,
and every Python worker has that place at the front of its import path. Compiled modules load from there, which they cannot from
a zip, and what is shipped comes before what is installed. On another platform Python ignores the compiled kernels and imports
the pure ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import ottla
from ottla.errors import OttlaError

ALWAYS = ("crc32c", "cramjam", "fastavro")
"""The packages that clients and decoding use in workers. Ottla's others belong to brokers and commands."""
OF_FORMATS = {"ottla_postgres": ("psycopg", "psycopg-binary"), "ottla_iceberg": ("pyiceberg",)}
"""The packages that tasks of a table format need. Those of ottla_delta need none: deltalake is used in the driver only."""
_PROVIDED = frozenset(
    ("pyspark", "py4j", "pyarrow", "numpy", "pandas", "python-dateutil", "pytz", "tzdata", "six", "grpcio", "grpcio-status")
)
"""What Spark's Python workers have of their own, and what is too large to ship."""
_PACKAGE_FILES = (".py", ".so", ".pyd")


class CannotShip(OttlaError):
    """Something that workers need is not here to be shipped."""


class Part(NamedTuple):
    """Something that is imported by its name."""

    name: str
    """Its name among the files of a worker: `crc32c`, `pricing.py`."""
    path: Path
    """The folder or file that it is here."""


@dataclass(frozen=True)
class Wishes:
    """What workers need beyond Ottla itself."""

    formats: tuple[str, ...] = ()
    """Table formats, such as ottla_postgres."""
    packages: tuple[str, ...] = ()
    """Installed packages by name; they are shipped with all that they require."""
    folder: Path | None = None
    """The folder of a pipeline, whose modules are shipped."""
    modules_only: bool = False
    """Ship no packages: the workers have all of them installed."""


def parts_to_ship(wishes: Wishes) -> list[Part]:
    """Ottla and all that `wishes` name."""
    found = [] if wishes.folder is None else modules_of(wishes.folder)
    if not wishes.modules_only:
        wanted = [*ALWAYS, *(name for each in wishes.formats for name in OF_FORMATS.get(each, ()))]
        found += [Part("ottla", Path(ottla.__file__).parent), *_parts_of(wanted)]
        found += _parts_of(wishes.packages, is_required=True)
    return list({part.name: part for part in found}.values())


def modules_of(folder: Path) -> list[Part]:
    """The modules and packages that lie in a pipeline's folder itself."""
    return [
        Part(path.name, path)
        for path in sorted(folder.iterdir())
        if (path.suffix == ".py" and path.is_file()) or (path / "__init__.py").is_file()
    ]


def formats_named(texts: Iterable[str]) -> list[str]:
    """The table formats whose names occur in the texts of a pipeline's files."""
    return sorted({name for text in texts for name in OF_FORMATS if name in text})


def _parts_of(names: Iterable[str], *, is_required: bool = False) -> list[Part]:
    """The parts of installed packages and of all that they require. An optional one that is not here is left out."""
    found: list[Part] = []
    waiting, seen = [(name, is_required) for name in names], set(_PROVIDED)
    while waiting:
        name, must = waiting.pop()
        if _normal(name) in seen:
            continue
        seen.add(_normal(name))
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if must:
                raise CannotShip(f"the package {name} is to be shipped but is not installed here: pip install {name}") from None
            continue
        found += _files_of(package)
        # A requirement of an extra is left out; others that do not apply here are not installed here.
        waiting += [(_required_name(each), False) for each in package.requires or () if "extra" not in each.partition(";")[2]]
    return found


def _files_of(package: metadata.Distribution) -> list[Part]:
    """The top-level folders and files of a package, with its metadata: some packages read their own version from it."""
    tops = {each.parts[0] for each in package.files or () if each.parts[0] not in ("..", "/", "__pycache__")}
    found = [Part(top, Path(str(package.locate_file(top)))) for top in sorted(tops)]
    return [part for part in found if part.path.is_dir() or part.path.suffix in _PACKAGE_FILES]


def _required_name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return found[0] if found else requirement


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
