"""What Python workers get: Ottla, the packages that it needs there, and a pipeline's modules; and a look at what they have.

Each part is a folder or file that is imported by its own name. A folder becomes an archive `NAME.zip#NAME` in a temporary
folder, which Spark unpacks as NAME beside the other files of the session, at the front of every worker's import path. Compiled
modules load from there, which they cannot from a zip, and what is shipped comes before what is installed. On another platform
Python ignores the compiled kernels and imports the pure ones. The settings `spark.archives` and `spark.files` name all parts;
standalone clusters, YARN and Kubernetes have both.

A Spark Connect session could send the same files as its artifacts, but Spark 4.3 gives those to batch queries only: the workers
of a streaming query do not see them. So a Spark Connect server must have Ottla installed.

Before a pipeline runs, a small job asks each task's worker for its Python, its pyarrow and its Ottla. Its function is pickled
by value and uses the standard library only, so that it runs where nothing else does."""

from __future__ import annotations

import atexit
import json
import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import ottla
from ottla.errors import OttlaError
from ottla.spark.errors import reason_of

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


ARCHIVES, FILES = "spark.archives", "spark.files"
DATA_SOURCES = {
    "ottla.spark.datasource": "OttlaDataSource",
    "ottla.spark.tables.delta": "DeltaDataSource",
    "ottla.spark.tables.iceberg": "IcebergDataSource",
    "ottla.spark.tables.postgres.datasource": "PostgresDataSource",
}
_LEFT_OUT = {"__pycache__", ".mypy_cache", ".pytest_cache"}


@dataclass(frozen=True)
class Shipment:
    """What is sent to workers."""

    archives: tuple[str, ...]
    """`PATH#NAME`: an archive and the name of the folder that it is unpacked to."""
    files: tuple[str, ...]

    def settings(self, given: Mapping[str, str]) -> dict[str, str]:
        """The settings of a session on a cluster, with what the user ships in addition."""
        wanted = {ARCHIVES: self.archives, FILES: self.files}
        return {key: ",".join([*paths, *filter(None, [given.get(key)])]) for key, paths in wanted.items() if paths}


def pack(parts: Iterable[Part]) -> Shipment:
    """Write the archives."""
    folder = temporary_folder()
    archives, files = [], []
    for part in parts:
        if part.path.is_dir():
            archive = folder / f"{part.name}.zip"
            _write(archive, part.path)
            archives.append(f"{archive}#{part.name}")
        else:
            files.append(str(part.path))
    return Shipment(tuple(archives), tuple(files))


def temporary_folder() -> Path:
    """A folder that is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-shipped-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def register_data_sources(spark: Any) -> None:
    """Make our formats known to a session: its driver may be another Python, which cannot find them by itself."""
    from importlib import import_module

    for module, name in DATA_SOURCES.items():
        spark.dataSource.register(getattr(import_module(module), name))


def _write(archive: Path, folder: Path) -> None:
    # Fast rather than small: compiled modules are most of it, and it is sent once for each worker.
    # Archives have no times before 1980, and some installers set all files to 1970.
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1, strict_timestamps=False) as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and _LEFT_OUT.isdisjoint(path.relative_to(folder).parts):
                file.write(path, path.relative_to(folder))


PATIENCE_S = 15.0
"""How long a cluster may give us no executor before we say that we wait for one."""
POLL_S = 0.2
REMEDY = "name a Python that all machines have with PYSPARK_PYTHON"
_MISMATCH = re.compile(r"worker has different version: (\d+\.\d+) than that in driver: (\d+\.\d+)")
_SAID = re.compile(r"Error from python worker:\s*\n\s*(.+)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')

Notice = Callable[[str], None]


class WorkersUnfit(OttlaError):
    """The Python workers of a cluster cannot run our code."""


@dataclass(frozen=True)
class WorkerFacts:
    """What a worker has."""

    host: str
    executable: str
    pyarrow: str | None
    """Its version; None if it is not there."""
    ottla: str | None
    """The version that is imported there; None if that failed."""
    problem: str
    """Why it failed."""
    installed: str | None
    """The version that is installed there, if any: a shipped one comes before it."""


def check_workers(spark: Any, *, is_remote: bool, notice: Notice = lambda text: None) -> None:
    """Raise `WorkersUnfit` if a worker cannot run our code; `notice` gets what is unusual but works."""
    tasks = 2
    if not is_remote:
        await_executor(spark, notice)
        tasks = max(tasks, spark.sparkContext.defaultParallelism)
    try:
        found = look(spark, tasks)
    except Exception as error:
        raise WorkersUnfit(failure(error)) from error
    for sentence in check_facts(found, is_remote=is_remote):
        notice(sentence)


def await_executor(spark: Any, notice: Notice) -> None:
    """Wait until the cluster has given us an executor. It may be busy, so there is no limit."""
    scala_context = spark.sparkContext._jsc.sc()
    begin_s, is_told = time.monotonic(), False
    while scala_context.getExecutorMemoryStatus().size() < 2:  # the driver counts as one
        if scala_context.isStopped():
            raise WorkersUnfit("the cluster has ended the session: its master has gone, or is no Spark master of this version")
        if not is_told and time.monotonic() - begin_s > PATIENCE_S:
            notice("The cluster has given us no executor yet: it has no free worker with enough cores and memory. Waiting.")
            is_told = True
        time.sleep(POLL_S)


def look(spark: Any, tasks: int) -> list[WorkerFacts]:
    """Ask the workers of some tasks."""
    from pyspark.sql.functions import udf

    # Without Arrow: a worker without pyarrow is to say so.
    ask = udf(_question(), "string", useArrow=False).asNondeterministic()
    rows = spark.range(0, tasks, 1, tasks).select(ask().alias("facts")).collect()
    return [WorkerFacts(**json.loads(text)) for text in sorted({row["facts"] for row in rows})]


def _question() -> Callable[[], str]:
    """A function inside a function: it is pickled by value, and needs no Ottla to be loaded."""

    def facts() -> str:
        import json
        import os
        import socket
        import sys
        from importlib import import_module, metadata

        found = {"host": socket.gethostname(), "executable": sys.executable, "problem": ""}
        found |= dict.fromkeys(("pyarrow", "ottla", "installed"))  # type: ignore[arg-type]
        try:
            found["pyarrow"] = import_module("pyarrow").__version__
        except ImportError:
            pass
        place = ""
        try:
            ours = import_module("ottla")
            for name in ("ottla.spark.clients", "ottla.records.columns", "crc32c", "cramjam"):
                import_module(name)
            found["ottla"], place = ours.__version__, os.path.dirname(os.path.dirname(str(ours.__file__)))
        except Exception as error:
            found["problem"] = f"{type(error).__name__}: {error}"
        elsewhere = [path for path in sys.path if path != place]
        for each in metadata.distributions(name="ottla", path=elsewhere):
            found["installed"] = each.version
        return json.dumps(found)

    return facts


def check_facts(found: Iterable[WorkerFacts], *, is_remote: bool = False) -> list[str]:
    """Raise `WorkersUnfit` for a worker that cannot run our code; returns what is unusual, in sentences."""
    notices = []
    for worker in found:
        owner = "the Spark Connect server" if is_remote else "a worker"
        where = f"the Python of {owner} ({worker.executable} on {worker.host})"
        if worker.pyarrow is None:
            raise WorkersUnfit(
                f"{where} has no pyarrow, which Spark needs there: pip install pyarrow 'pandas<3' there, or {REMEDY}"
            )
        if worker.ottla is None and is_remote:
            raise WorkersUnfit(
                f"{where} cannot load ottla ({worker.problem}), and Spark does not hand what a session ships to its streaming "
                f"queries: pip install 'ottla[spark]=={ottla.__version__}' there"
            )
        if worker.ottla is None:
            raise WorkersUnfit(
                f"{where} cannot load ottla ({worker.problem}): where its platform differs from this one, "
                f"pip install 'ottla[spark]=={ottla.__version__}' on the workers and set spark.ottla.ship to false"
            )
        if worker.ottla != ottla.__version__:
            raise WorkersUnfit(f"{where} has ottla {worker.ottla} and this one has {ottla.__version__}: they must be the same")
        if worker.installed not in (None, ottla.__version__):
            notices.append(f"{where} has ottla {worker.installed}; this run ships and uses {ottla.__version__}.")
    return notices


def failure(error: Exception) -> str:
    """A sentence for the pages that Spark writes when its workers do not start."""
    text = str(error)
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if found := _MISMATCH.search(text):
        return f"the workers have Python {found[1]} and this is Python {found[2]}: they must be the same; {REMEDY}"
    if found := _NO_PROGRAM.search(text):
        return f"the workers have no {found[1]}: install Python {ours} with pyarrow there, or {REMEDY}"
    said = _SAID.search(text)
    return f"the workers do not start: {said[1] if said else reason_of(error)}"
