"""The variants of the record kernels, for tests that hold for both."""

from types import ModuleType
from typing import NamedTuple

import pytest

from ottla.records.kernels import load_variant


class Variant(NamedTuple):
    """One variant of the kernels."""

    kernel: ModuleType
    columns: ModuleType
    batch: ModuleType
    partition: ModuleType
    consume: ModuleType
    frames: ModuleType


def load(pure: bool) -> Variant | None:
    names = ("kernel", "kernel_columns", "kernel_batch", "kernel_partition", "kernel_consume", "kernel_frames")
    modules = [load_variant(name, pure=pure) for name in names]
    return None if None in modules else Variant(*modules)  # type: ignore[arg-type]  # just checked


PURE = load(pure=True)
COMPILED = load(pure=False)


@pytest.fixture(scope="session", params=["pure", "compiled"])
def variant(request: pytest.FixtureRequest) -> Variant:
    """Each variant in turn."""
    found = PURE if request.param == "pure" else COMPILED
    if found is None:
        pytest.skip("the kernels are not compiled in this install: no C compiler was found when it was made")
    return found


@pytest.fixture(scope="session")
def variants() -> tuple[Variant, Variant]:
    """Both variants, pure first."""
    if COMPILED is None or PURE is None:
        pytest.skip("the kernels are not compiled in this install: no C compiler was found when it was made")
    return PURE, COMPILED
