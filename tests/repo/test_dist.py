"""What tools/dist.py refuses to publish, and that two builds are equal."""

import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
INFO = "ottla-0.1.0.dist-info"


@pytest.fixture(scope="module")
def dist() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dist", ROOT / "tools" / "dist.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["dist"] = module  # dataclasses look for their module there
    spec.loader.exec_module(module)
    return module


def contents_of(dist: ModuleType, tag: str) -> dict[str, bytes]:
    """What a wheel for `tag` must contain, in few bytes."""
    contents = {
        "ottla/py.typed": b"",
        "ottla/records/kernel.py": b"",
        "ottla/records/kernel.pxd": b"",
        "ottla/wire/schema/rpc.txt": b"",
        f"{INFO}/METADATA": b"Metadata-Version: 2.4\nName: ottla\nVersion: 0.1.0\n",
        f"{INFO}/WHEEL": f"Wheel-Version: 1.0\nTag: {tag}\n".encode(),
        f"{INFO}/licenses/LICENSE": b"",
        f"{INFO}/licenses/NOTICE": b"",
    }
    if tag != "py3-none-any":
        for kernel in dist.kernels():
            contents[f"ottla/{kernel.replace('.', '/')}.cpython-311-x86_64-linux-gnu.so"] = b"\x7fELF of _cython_3_3_1"
    contents[f"{INFO}/sboms/ottla.cdx.json"] = dist.sbom(contents, INFO)
    return contents


Change = Callable[[dict[str, bytes]], None]
PLATFORM = "cp311-cp311-manylinux_2_28_x86_64"
KERNEL = "ottla/log/fast_path/kernel_append.cpython-311-x86_64-linux-gnu.so"


def drop(name: str) -> Change:
    return lambda contents: contents.pop(name) and None


def put(name: str, data: bytes) -> Change:
    return lambda contents: contents.update({name: data})


@pytest.mark.parametrize("tag", [PLATFORM, "py3-none-any"])
def test_complete_wheel_is_fit_to_be_published(dist: ModuleType, tmp_path: Path, tag: str) -> None:
    wheel = tmp_path / f"ottla-0.1.0-{tag}.whl"
    dist.write_wheel(wheel, contents_of(dist, tag), 1_700_000_000)
    dist.check_wheel(wheel)


@pytest.mark.parametrize(
    ("tag", "change", "said"),
    [
        (PLATFORM, drop(KERNEL), r"without log\.fast_path\.kernel_append"),
        (PLATFORM, put(KERNEL, f"from {ROOT}/build".encode()), "kernel_append.*names a folder of the machine"),
        (PLATFORM, put("ottla/x.cpython-312-x86_64-linux-gnu.so", b""), "cpython-312.* is not of cp311"),
        (PLATFORM, drop(f"{INFO}/sboms/ottla.cdx.json"), "lacks .*sboms"),
        (PLATFORM, drop(f"{INFO}/licenses/NOTICE"), "lacks .*NOTICE"),
        (PLATFORM, drop("ottla/py.typed"), r"lacks ottla/py\.typed"),
        (PLATFORM, put("ottla/large", os.urandom(5_100_000)), r"has 5\.1 MB; the budget is 5 MB"),
        ("cp311-cp311-linux_x86_64", drop("ottla/py.typed"), "no index takes a wheel for linux"),
        ("py3-none-any", put(KERNEL, b""), "a pure wheel must not contain .*kernel_append"),
        ("py3-none-any", put(f"{INFO}/WHEEL", b"Tag: cp311-cp311-linux_x86_64\n"), "the tag of the name is not that of"),
    ],
)
def test_unfit_wheel_is_refused(dist: ModuleType, tmp_path: Path, tag: str, change: Change, said: str) -> None:
    contents = contents_of(dist, tag)
    change(contents)
    wheel = tmp_path / f"ottla-0.1.0-{tag}.whl"
    dist.write_wheel(wheel, contents, 1_700_000_000)
    with pytest.raises(dist.DistFailed, match=said):
        dist.check_wheel(wheel)


def test_wheel_bytes_do_not_depend_on_order_and_record_is_complete(dist: ModuleType, tmp_path: Path) -> None:
    contents = contents_of(dist, PLATFORM)
    one, two = tmp_path / "one.whl", tmp_path / "two.whl"
    dist.write_wheel(one, contents, 1_700_000_000)
    dist.write_wheel(two, dict(reversed(contents.items())), 1_700_000_000)
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as archive:
        recorded = {line.split(",")[0] for line in archive.read(f"{INFO}/RECORD").decode().splitlines()}
        assert recorded == set(archive.namelist())
        assert archive.getinfo(KERNEL).external_attr >> 16 == 0o100755


def test_sbom_names_cython_only_where_kernels_are_compiled(dist: ModuleType) -> None:
    platform = json.loads(contents_of(dist, PLATFORM)[f"{INFO}/sboms/ottla.cdx.json"])
    assert [(each["name"], each["version"]) for each in platform["components"]] == [("Cython", "3.3.1")]
    pure = json.loads(contents_of(dist, "py3-none-any")[f"{INFO}/sboms/ottla.cdx.json"])
    assert pure["components"] == []
    assert pure["metadata"]["component"]["purl"] == "pkg:pypi/ottla@0.1.0"


FITS: dict[str, Any] = {
    "overall_tag": "manylinux_2_17_x86_64",
    "versioned_symbols": {"libc.so.6": ["GLIBC_2.14", "GLIBC_2.2.5"]},
    "external_libs": {},
    "unsupported_isa": False,
}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"versioned_symbols": {"libc.so.6": ["GLIBC_2.28", "GLIBC_2.34"]}}, r"needs GLIBC_2\.34, which manylinux_2_28"),
        ({"versioned_symbols": {"libstdc++.so.6": ["GLIBCXX_3.4.30"]}}, r"needs GLIBCXX_3\.4\.30"),
        ({"external_libs": {"libfoo.so.1": None}}, r"needs libfoo\.so\.1"),
        ({"unsupported_isa": True}, "needs newer processors"),
        ({"overall_tag": "linux_x86_64"}, "needs linux_x86_64"),
    ],
)
def test_kernel_that_needs_a_newer_system_is_refused(dist: ModuleType, found: dict[str, Any], said: str) -> None:
    dist.judge("a.whl", FITS)
    with pytest.raises(dist.DistFailed, match=said):
        dist.judge("a.whl", FITS | found)


def test_sdist_without_docs_or_with_compiled_files_is_refused(dist: ModuleType, tmp_path: Path) -> None:
    names = {*dist.SDIST_PARTS, *(path for kernel in dist.kernels()[:-1] for path in dist._sources(kernel))}

    def sdist(*names: str) -> Path:
        path = tmp_path / "ottla-0.1.0.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name in names:
                archive.addfile(tarfile.TarInfo(f"ottla-0.1.0/{name}"), io.BytesIO())
        return path

    dist.check_sdist(sdist(*names))
    with pytest.raises(dist.DistFailed, match=r"lacks docs/README\.md"):
        dist.check_sdist(sdist(*(names - {"docs/README.md"})))
    with pytest.raises(dist.DistFailed, match=r"has src/x\.so: no source"):
        dist.check_sdist(sdist(*names, "src/x.so"))


def test_archive_that_lacks_a_file_of_the_repository_is_refused(dist: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "chart.yaml").write_text("")
    dist.check_complete(Path("a.tar.gz"), tmp_path, {"deploy/chart.yaml", "PKG-INFO"})
    with pytest.raises(dist.DistFailed, match=r"a\.tar\.gz lacks deploy/chart\.yaml .*see MANIFEST\.in"):
        dist.check_complete(Path("a.tar.gz"), tmp_path, {"PKG-INFO"})
    with pytest.raises(dist.DistFailed, match="see package-data"):
        dist.check_complete(Path("a.whl"), tmp_path, {"PKG-INFO"})


def test_rules_of_the_sdist_cover_the_repository() -> None:
    """As setuptools reads them. Only `make dist` builds an sdist, and fails minutes later."""
    rules = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines() if line and not line.startswith("#")]
    assert {rule[0] for rule in rules} == {"include", "graft", "global-exclude"}
    patterns = [pattern for rule in rules if rule[0] == "include" for pattern in rule[1:]]
    folders = {rule[1] for rule in rules if rule[0] == "graft"}
    always = {"MANIFEST.in", "pyproject.toml", "setup.py"}
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    names = [name for name in listed.stdout.split("\0") if name]
    lost = {
        name
        for name in names
        if name.partition("/")[0] not in folders
        and name not in always
        and ("/" in name or not any(fnmatchcase(name, pattern) for pattern in patterns))
    }
    assert lost == set()


def test_tag_must_be_the_version_and_in_the_changelog(dist: ModuleType) -> None:
    dist.check_tag("v1.2.3", "# Changelog\n\n## 1.2.3, 2026-01-31\n", "1.2.3")
    for tag, changelog, said in [
        ("v1.2.4", "## 1.2.3\n", r"a release is tagged v1\.2\.3"),
        ("v1.2.3", "## 1.2.30\n", "no heading"),
        ("v1.2.3", "## 1.2.3, unreleased\n", "write the day"),
    ]:
        with pytest.raises(dist.DistFailed, match=said):
            dist.check_tag(tag, changelog, "1.2.3")


def test_kernels_that_version_lists_are_those_of_setup(dist: ModuleType) -> None:
    from ottla.cli.versions import KERNELS

    assert list(KERNELS) == dist.kernels()[:-1]


def test_wrong_kernels_in_use_are_refused(dist: ModuleType) -> None:
    check = dist.first_hour.check_kernels
    check("ottla 0.1.0\nkernels    14 of 14 compiled\n", "compiled")
    check("kernels    0 of 14 compiled\n", "pure")
    for line, wanted in [("13 of 14 compiled", "compiled"), ("14 of 14 compiled", "pure"), ("", "any")]:
        with pytest.raises(dist.first_hour.StepFailed, match=f"wanted {wanted} kernels"):
            check(f"kernels    {line}" if line else "", wanted)


def test_first_hour_goes_through_with_what_is_installed(
    dist: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTTLA_PURE", "1")
    with pytest.raises(dist.first_hour.StepFailed, match="wanted compiled kernels"):
        dist.first_hour.installed_hour([sys.executable, "-m", "ottla"], None, "compiled")
    said = capsys.readouterr().out
    assert "node up at 127.0.0.1:" in said
    assert "first record produced and consumed" in said


def test_release_workflow_builds_the_pythons_that_the_classifiers_name(dist: ModuleType) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = re.findall(r"Python :: (3)\.(\d+)", " ".join(project["project"]["classifiers"]))
    assert [(int(major), int(minor)) for major, minor in named] == list(dist.SUPPORTED)
    assert project["tool"]["cibuildwheel"]["build"] == [f"cp{major}{minor}-*" for major, minor in named]


def test_actions_of_the_release_are_pinned() -> None:
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)", workflow)
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", action)] == []


@pytest.mark.slow
def test_two_builds_are_equal() -> None:
    pytest.importorskip("auditwheel", reason="make dist installs it")
    if not (ROOT / ".git").exists():
        pytest.skip("an sdist is made of a git checkout")
    command = [sys.executable, "tools/dist.py", "twice", "--python", sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("Both builds are equal.\n")
