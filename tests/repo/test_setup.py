"""`setup.py` where kernels cannot be compiled."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytest.importorskip("Cython", reason="without Cython nothing is compiled anyway")


@pytest.mark.slow
def test_without_a_compiler_no_kernel_is_built_or_left_over(tmp_path: Path) -> None:
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    stale = tmp_path / "built" / "ottla" / "log" / "fast_path" / f"kernel_append{sysconfig.get_config_var('EXT_SUFFIX')}"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"of an earlier build")
    os.utime(stale, (1, 1))
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--build-lib", "built"],
        cwd=tmp_path,
        env={**os.environ, "CC": "/bin/false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "all kernels run as pure Python" in done.stderr
    assert list((tmp_path / "built").rglob("*.so")) == []
