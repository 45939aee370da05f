"""How many examples Hypothesis draws where a test needs another number than the default.

    @settings(max_examples=examples(600))

The number is that of `make test-all`. `make test` takes a part of it, as of the default (the profiles in tests/conftest.py):
its examples are the same in every run, so more of them find nothing new after the first.
"""

from hypothesis import settings

DEFAULT = 100
"""Examples of a test that names no number, in `make test-all`."""
FEWEST = 10


def examples(count: int) -> int:
    """`count`, scaled with the profile that is loaded. For a test module's top level."""
    return max(FEWEST, count * settings.default.max_examples // DEFAULT)
