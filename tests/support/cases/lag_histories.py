"""Twenty histories of a group in a partition, for the rules of `ottla.client_core.lag`.

What Burrow itself says of each is in `tests/support/recorded/burrow_statuses.json`; `tools/burrow_oracle.py` writes that file
with Burrow's own evaluator.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.client_core.lag import Commit, Limits

NOW_MS: Final = 1_700_000_000_000


class History(NamedTuple):
    """Commits and recent end offsets, oldest first, the lag of now, and the limits."""

    name: str
    commits: tuple[Commit, ...]
    ends: tuple[int, ...]
    lag: int
    limits: Limits = Limits()


def commits(offsets: list[int], lags: list[int], *, every_s: int = 10, last_s: int = 5) -> tuple[Commit, ...]:
    """One commit each `every_s`, the last of which is `last_s` old."""
    count = len(offsets)
    return tuple(
        Commit(offset, NOW_MS - 1000 * (last_s + every_s * (count - 1 - number)), lag)
        for number, (offset, lag) in enumerate(zip(offsets, lags, strict=True))
    )


UP: Final = list(range(100, 200, 10))
SAME: Final = [100] * 10
FAR: Final = [500] * 10
ENDS: Final = tuple(range(600, 700, 10))

HISTORIES: Final = (
    History("nothing was ever committed", (), ENDS, 600),
    History("caught up", commits(UP, [0] * 10), (190,), 0),
    History("reads as fast as it is written, far behind", commits(UP, FAR), ENDS, 500),
    History("falls behind", commits(UP, list(range(10, 110, 10))), ENDS, 100),
    History("catches up", commits(UP, list(range(500, 400, -10))), ENDS, 410),
    History("fell once within the window", commits(UP, [50, 60, 70, 65, 70, 80, 90, 100, 110, 120]), ENDS, 120),
    History("was at the end within the window", commits(UP, [50, 60, 0, 10, 20, 30, 40, 50, 60, 70]), ENDS, 70),
    History("commits the same offset", commits(SAME, list(range(10, 110, 10))), ENDS, 100),
    History("commits the same offset, and was at the end before", commits(SAME, [0, *range(10, 100, 10)]), ENDS, 90),
    History("stopped committing", commits(UP, FAR, last_s=100), ENDS, 500),
    History("stopped, and nothing has been written since", commits(UP, [0] * 10, last_s=1000), (190,) * 10, 0),
    History("stopped at the end, and records came lately", commits(UP, [0] * 10, last_s=1000), (190, 190, 200), 10),
    History("stopped at the end, and records came long ago", commits(UP, [0] * 10, last_s=1000), ENDS, 500),
    History("late, but not longer than the window", commits(UP, FAR, last_s=90), ENDS, 500),
    History("one commit long ago", commits([100], [500], last_s=60), ENDS, 500),
    History("went back", commits([*UP[:8], 100, 110], FAR), ENDS, 500),
    History("went back and came again", commits([100, 110, 120, 100, 110, 120, 130, 140, 150, 160], FAR), ENDS, 500),
    History("went back in two steps", commits([150, 140, 150, 120, 130, 135, 140, 141, 142, 143], FAR), ENDS, 500),
    History("behind by no more than is allowed", commits(SAME, [40] * 10), ENDS, 40, Limits(lag=50)),
    History("too few commits to tell", commits(SAME[:4], FAR[:4]), ENDS, 500, Limits(complete=0.5)),
)
