"""`Where`: the place in the partitions that startingOffsets, endingOffsets and their by-timestamp forms describe."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.spark.errors import SparkOptionError
from ottla.spark.option_names import Options
from ottla.spark.source.offsets import EARLIEST, LATEST, Offsets, parse_numbers

GROUP_PREFIX = "group:"


@dataclass(frozen=True)
class Where:
    """Offsets as an option describes them: a fixed place for all partitions, numbers for each, a time, or a group's offsets."""

    everywhere: int = EARLIEST
    """EARLIEST or LATEST, for partitions that nothing else says anything about."""
    offsets: Offsets | None = None
    time_ms: int | None = None
    times_ms: Offsets | None = None
    group: str | None = None
    is_latest_without_match: bool = False
    """Whether a time after the last record means the end of the partition, instead of an error."""
    option: str = ""
    """The option that says so, for messages."""

    @property
    def is_repeatable(self) -> bool:
        """Whether it means the same offsets when it is looked up again later, as far as the log still holds them."""
        if self.group is not None:
            return False
        if self.time_ms is not None or self.times_ms is not None:
            return not self.is_latest_without_match
        if self.offsets is not None:
            return LATEST not in self.offsets.values()
        return self.everywhere == EARLIEST


FROM_EARLIEST = Where(EARLIEST, option="startingOffsets")
TO_LATEST = Where(LATEST, option="endingOffsets")


def read_where(options: Options, side: str, default: int) -> Where:
    """What the options of `side` (starting, ending) say. As in Spark's own source, a time goes before offsets."""
    strategy = options.get("startingOffsetsByTimestampStrategy") or "error"
    if strategy not in ("error", "latest"):
        raise SparkOptionError(f"startingOffsetsByTimestampStrategy is {strategy!r}: it must be error or latest")
    is_latest = side == "ending" or strategy == "latest"
    name = f"{side}Timestamp"
    time_ms = options.whole_number(name, 0)
    if time_ms is not None:
        return Where(default, time_ms=time_ms, is_latest_without_match=is_latest, option=name)
    name = f"{side}OffsetsByTimestamp"
    text = options.get(name)
    if text is not None:
        times_ms = parse_numbers(name, text, "milliseconds since 1970")
        for each, number in times_ms.items():
            if number < 0:
                raise SparkOptionError(f"{name} has {number} for {each}: give milliseconds since 1970")
        return Where(default, times_ms=times_ms, is_latest_without_match=is_latest, option=name)
    name = f"{side}Offsets"
    text = options.get(name)
    return Where(default, option=name) if text is None else _read_offsets(name, text.strip(), side, default)


def _read_offsets(name: str, text: str, side: str, default: int) -> Where:
    lower = text.lower()
    if lower == "latest" and side == "starting" and default == EARLIEST:
        raise SparkOptionError("startingOffsets is latest, which leaves a batch read nothing to read: use earliest or offsets")
    if lower == "earliest" and side == "ending":
        raise SparkOptionError("endingOffsets is earliest, which leaves nothing to read: use latest or offsets")
    if lower in ("earliest", "latest"):
        return Where(EARLIEST if lower == "earliest" else LATEST, option=name)
    if side == "starting" and lower.startswith(GROUP_PREFIX):
        group = text[len(GROUP_PREFIX) :].strip()
        if not group:
            raise SparkOptionError("startingOffsets is group: without a name: write group:NAME to start where that group is")
        return Where(EARLIEST, group=group, option=name)
    if not text.startswith("{"):
        words = "earliest, latest, group:NAME" if side == "starting" else "latest"
        raise SparkOptionError(f'{name} is {text!r}: it must be {words} or JSON such as {{"orders": {{"0": 23}}}}')
    offsets = parse_numbers(name, text, "an offset (-2 is the earliest, -1 the latest)")
    for each, offset in offsets.items():
        if offset < EARLIEST or (offset == EARLIEST and side == "ending"):
            raise SparkOptionError(f"{name} has {offset} for {each}: give an offset of 0 or more, or -1 for the latest")
        if offset == LATEST and side == "starting" and default == EARLIEST:
            raise SparkOptionError(f"{name} has -1 (latest) for {each}, which leaves a batch read nothing to read there")
    return Where(default, offsets=offsets, option=name)
