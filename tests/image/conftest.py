"""The image's root file system, built once from the Containerfile and run without a container engine.

That needs root, debootstrap, packages from Debian and PyPI, and a wheel in dist/ (`make dist`). OTTLA_IMAGE names a folder with
one that `python -m tools.image build` has made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.jars.java_classes import compiled
from tests.support.jars.maven_jars import JarsUnavailable, cache_folder, fetch_with_maven
from tools.image.build import BuildFailed, build

ROOT = Path(__file__).parents[2]
TESTCONTAINERS = "org.testcontainers:testcontainers-kafka:2.0.5"


@pytest.fixture(scope="session")
def image() -> Path:
    """The folder of a built image."""
    if os.geteuid() != 0:
        pytest.skip("containers without an engine need root: chroot, mounts and users")
    for program in ("unshare", "nsenter", "ip", "chroot"):
        if shutil.which(program) is None:
            pytest.skip(f"containers without an engine need {program}: install util-linux, iproute2 and coreutils")
    if given := os.environ.get("OTTLA_IMAGE"):
        return Path(given).resolve()
    if shutil.which("debootstrap") is None:
        pytest.skip("the image's base is made by debootstrap: install it, or name a built image in OTTLA_IMAGE")
    if not list((ROOT / "dist").glob("*.whl")):
        pytest.skip("there is no wheel in dist/: run `make dist`, or name a built image in OTTLA_IMAGE")
    folder = cache_folder() / "image"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        build(folder, {})
    except BuildFailed as failed:
        pytest.fail(str(failed))
    return folder


@pytest.fixture(scope="session")
def java_start() -> list[str]:
    """The beginning of the command that prints how testcontainers for Java starts the image."""
    java = shutil.which("java")
    if java is None:
        pytest.skip("there is no java on the PATH")
    try:
        jars = fetch_with_maven("testcontainers", "testcontainers-2.0.5", [TESTCONTAINERS])
    except JarsUnavailable as reason:
        pytest.skip(str(reason))
    classpath = os.pathsep.join(map(str, jars))
    classes = compiled(java, classpath, ROOT / "tests" / "support" / "java" / "StartScripts.java")
    if classes is None:
        pytest.skip("there is no javac")
    return [java, "-cp", f"{classes}{os.pathsep}{classpath}", "StartScripts"]


@pytest.fixture(scope="session")
def python_start() -> list[str]:
    """The beginning of the command that prints how testcontainers for Python starts the image."""
    command = [sys.executable, str(Path(__file__).with_name("python_start_script.py"))]
    if subprocess.run([sys.executable, "-c", "import testcontainers"], check=False).returncode != 0:
        pytest.skip("testcontainers is not installed: pip install 'ottla[peers]'")
    return command
