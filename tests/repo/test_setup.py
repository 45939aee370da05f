"""`setup.py` where kernels cannot be compiled, or are not wanted."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytest.importorskip("Cython", reason="without Cython nothing is compiled anyway")


def build(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build the kernels of the sources in `folder`, where no C compiler works."""
    return subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--build-lib", "built"],
        cwd=folder,
        env={**os.environ, "CC": "/bin/false"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def one_kernel(folder: Path) -> Path:
    """A project of setup.py with a single small kernel."""
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    begin, end = text.index("KERNELS = ["), text.index("SHARED = ")
    (folder / "setup.py").write_text(text[:begin] + 'KERNELS = ["records.kernel_partition"]\n' + text[end:], encoding="utf-8")
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, folder / name)
    package = folder / "src" / "ottla"
    (package / "records").mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "0.1.0"\n', encoding="utf-8")
    for path in (ROOT / "src" / "ottla" / "records").iterdir():
        if path.suffix == ".pxd" or path.stem in ("__init__", "kernel_partition"):
            shutil.copy(path, package / "records" / path.name)
    return folder


def test_release_build_without_a_compiler_fails(tmp_path: Path) -> None:
    done = build(one_kernel(tmp_path), OTTLA_KERNELS="required")
    assert done.returncode != 0
    assert "OTTLA_KERNELS=required: all kernels cannot be compiled" in done.stderr


def test_pure_build_translates_and_compiles_nothing(tmp_path: Path) -> None:
    done = build(one_kernel(tmp_path), OTTLA_KERNELS="none")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "build" / "cython").exists()
    assert not (tmp_path / "built").exists()


def test_misspelt_choice_of_kernels_is_refused(tmp_path: Path) -> None:
    done = build(one_kernel(tmp_path), OTTLA_KERNELS="no")
    assert done.returncode != 0
    assert "OTTLA_KERNELS=no: it is none, required or empty" in done.stderr


def test_install_that_pip_keeps_silent_tells_the_terminal_once(tmp_path: Path) -> None:
    if shutil.which("setsid") is None:
        pytest.skip("gives the build a terminal with setsid, which this system lacks")
    terminal, child = os.openpty()
    command = [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", "built"]
    done = subprocess.run(
        ["setsid", "--ctty", *command],
        cwd=one_kernel(tmp_path),
        env={**os.environ, "CC": "/bin/false"},
        stdin=child,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(child)
    assert done.returncode == 0, done.stderr
    said = " ".join(os.read(terminal, 10_000).decode().split())
    os.close(terminal)
    assert said.count("run as pure Python") == 1
    assert "times" in said
    assert "install a C compiler" in said


@pytest.mark.slow
def test_without_a_compiler_no_kernel_is_built_or_left_over(tmp_path: Path) -> None:
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    stale = tmp_path / "built" / "ottla" / "log" / "fast_path" / f"kernel_append{sysconfig.get_config_var('EXT_SUFFIX')}"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"of an earlier build")
    os.utime(stale, (1, 1))
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "all kernels run as pure Python" in done.stderr
    assert list((tmp_path / "built").rglob("*.so")) == []
