"""The helper process's side of compaction: one pass over one log. `env/work.py` says how jobs run.

It reads closed segments, which do not change, and writes `.cleaned` files, which are not yet read. The node swaps them in. The
job is a `CompactionPlan`; a `CleanedGroup` is reported for each new segment; the result is `CompactionStats`.
"""

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from ottla.env import HelperWorld
from ottla.log.compaction.cleaning import CleaningPass
from ottla.log.compaction.plan import CompactionPlan

MODULE = "ottla.log.compaction.job"


async def run_job(job: Mapping[str, Any], world: HelperWorld) -> dict[str, object]:
    """Do one pass."""
    cleaning = CleaningPass(CompactionPlan.from_json(job), world)
    async with aclosing(cleaning.run()) as groups:
        async for group in groups:
            world.progress(group._asdict())
    return asdict(cleaning.stats)
