"""Spark's Python processes: the garbage collector leaves out what lives as long as the process.

Spark's daemon forks a process, runs tasks or plans in it one after the other, and calls `gc.collect()` after each. With Spark,
Arrow and Ottla imported such a collection walks 55,000 objects and finds almost nothing. A micro-batch from topic to topic runs
in four of these processes. After the first collections everything that is left moves to the collector's permanent generation
(`gc.freeze`), which later ones do not walk (docs/decisions/0023).
"""

from __future__ import annotations

import gc
import sys
from typing import Any

DAEMON = "pyspark.daemon"
FREEZES = 2
"""The first collection may come amid imports. Few, because cycles that become garbage after a freeze are never freed."""

_left = FREEZES


def spare_loaded_objects() -> None:
    """In a process that Spark's daemon has forked, freeze what the first collections leave. Elsewhere do nothing."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name == DAEMON and _freeze_survivors not in gc.callbacks:
        gc.callbacks.append(_freeze_survivors)


def _freeze_survivors(phase: str, info: dict[str, Any]) -> None:
    global _left
    if phase != "stop" or info["generation"] < 2:
        return
    _left -= 1
    gc.freeze()
    if _left <= 0:
        gc.callbacks.remove(_freeze_survivors)
