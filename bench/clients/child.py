"""One measurement in a process of its own; prints its figures as JSON.

python -m bench.clients.child produce|consume|paced|awaited|waited '{"use": …}'
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from bench.clients.cases import KEYS


def peak_mb() -> float:
    """The most memory that this process had."""
    try:
        # Not getrusage: Linux keeps its maximum over exec, so that it may be that of the process which started this one.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def timed(run: Any, count: int) -> dict[str, float]:
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    run()
    took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    return {"rate": count / took_s, "cpu_us": cpu_s / count * 1e6, "peak_mb": peak_mb()}


def produce(use: str, bootstrap: str, topic: str, size: int, keyed: bool, count: int) -> dict[str, float]:
    from bench.clients.job import ProduceJob
    from bench.clients.produce import USES

    keys = [b"key-%d" % (number % KEYS) for number in range(count)] if keyed else None
    return timed(USES[use](ProduceJob(bootstrap, topic, os.urandom(size), keys, count)), count)


def consume(use: str, bootstrap: str, topic: str, partitions: int, count: int) -> dict[str, float]:
    from bench.clients.consume import USES
    from bench.clients.job import ConsumeJob

    return timed(USES[use](ConsumeJob(bootstrap, topic, partitions, count)), count)


def paced(use: str, bootstrap: str, topic: str, rate: int, count: int) -> dict[str, Any]:
    from bench.clients.latency import PRODUCERS

    return {"us": PRODUCERS[use](bootstrap, topic, rate, count), "peak_mb": peak_mb()}


def awaited(use: str, bootstrap: str, topic: str, partitions: int, count: int) -> dict[str, Any]:
    from bench.clients.latency import CONSUMERS

    return {"us": CONSUMERS[use](bootstrap, topic, partitions, count, lambda: print("ready", flush=True))}


def waited(use: str, bootstrap: str, topic: str, count: int) -> dict[str, Any]:
    from bench.clients.latency import WAITERS

    return {"us": WAITERS[use](bootstrap, topic, count)}


KINDS = {"produce": produce, "consume": consume, "paced": paced, "awaited": awaited, "waited": waited}

if __name__ == "__main__":
    found = KINDS[sys.argv[1]](**json.loads(sys.argv[2]))
    print(json.dumps(found), flush=True)
    os._exit(0)  # clients are not closed: that is not measured, and some take long
