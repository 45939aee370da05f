"""The twins of the record kernels, for tests that hold for both."""

from types import ModuleType
from typing import NamedTuple

import pytest

from ottla.records.kernels import load_twin


class Twin(NamedTuple):
    """One twin of the kernels."""

    kernel: ModuleType
    columns: ModuleType
    batch: ModuleType


def load(plain: bool) -> Twin | None:
    modules = [load_twin(name, plain=plain) for name in ("kernel", "kernel_columns", "kernel_batch")]
    return None if None in modules else Twin(*modules)  # type: ignore[arg-type]  # just checked


PLAIN = load(plain=True)
COMPILED = load(plain=False)


@pytest.fixture(scope="session", params=["plain", "compiled"])
def twin(request: pytest.FixtureRequest) -> Twin:
    """Each twin in turn."""
    found = PLAIN if request.param == "plain" else COMPILED
    if found is None:
        pytest.skip("the kernels are not compiled in this install: no C compiler was found when it was made")
    return found


@pytest.fixture(scope="session")
def twins() -> tuple[Twin, Twin]:
    """Both twins, plain first."""
    if COMPILED is None or PLAIN is None:
        pytest.skip("the kernels are not compiled in this install: no C compiler was found when it was made")
    return PLAIN, COMPILED
