"""The limit on open files is raised, and connections do not get all of it."""

import resource
import subprocess
import sys

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


@pytest.mark.parametrize(("limit", "expected"), [(80, 60), (1024, 768), (1 << 20, (1 << 20) - RESERVED_MAX)])
def test_files_get_a_share(limit: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert connection_descriptor_max() == expected
