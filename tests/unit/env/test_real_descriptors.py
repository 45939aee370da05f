"""The limit on open files is raised, and connections do not get all of it."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.env.real.descriptors import RESERVED_MAX, connection_descriptor_max

PROGRAM = """
import resource
from ottla.env.real.descriptors import raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, 300))
print(raise_descriptor_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize("soft", [100, 300])
def test_the_limit_is_raised_as_far_as_it_may_be(soft: int) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(soft=soft)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["300", "300", "300"]


SHORT = """
import os, resource, sys
from ottla.env import OpenMode
from ottla.env.real import RealDisk
disk, root = RealDisk(), sys.argv[1]
def drive(work):  # an event loop would need descriptors of its own, and nothing here waits
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits")
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
assert disk.can_open(200) and disk.can_open(170, for_growth=True)
assert not disk.can_open(230) and not disk.can_open(180, for_growth=True)
assert not disk.is_short_of_descriptors()
files = []
try:
    while True:
        files.append(disk.open(f"{root}/{len(files)}", OpenMode.CREATE))
except OSError as error:
    assert error.errno == 24, error
assert len(files) > 200 and not disk.can_open(1)
assert disk.is_short_of_descriptors()
for round in range(20):  # more often than there are spares
    async def work():
        await disk.replace_files({f"{root}/x": b"1", f"{root}/y": b"2"})
        await disk.rename(f"{root}/y", f"{root}/z")
        await disk.sync_directory(root)
        os.makedirs(f"{root}/folder/below")
        await disk.remove_directory(f"{root}/folder")
    drive(work())
    assert disk.read_file(f"{root}/x") == b"1"
    assert len(disk.list_directory(root)) == len(files) + 2
files.clear()
assert disk.can_open(100, for_growth=True)
print("done")
"""


def test_brief_opens_succeed_when_all_descriptors_are_taken(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SHORT, str(tmp_path)], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
    said = [line for line in done.stderr.splitlines() if "ulimit -n" in line]
    assert len(said) == 1, "logged once, however often can_open refuses"
    assert "the limit of this process is 256" in said[0]


@pytest.mark.parametrize(("limit", "expected"), [(80, 60), (1024, 768), (1 << 20, (1 << 20) - RESERVED_MAX)])
def test_connections_leave_descriptors_for_files(limit: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert connection_descriptor_max() == expected
