"""Facts of the machine that a reader needs to judge the figures. No host names, no dates."""

import os
import platform
import subprocess
from pathlib import Path

from tests.support.jars.kafka_jars import KAFKA_VERSION

ON_LINUX = platform.system() == "Linux"


def machine_facts() -> dict[str, str]:
    return {
        "cpu": f"{_cpu_model()}, {os.cpu_count()} cores",
        "memory": f"{_memory_gb():.0f} GB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}, {platform.machine()}",
        "python": platform.python_version(),
        "kafka": KAFKA_VERSION,
    }


def _cpu_model() -> str:
    if ON_LINUX:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
        return platform.machine()
    told = subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False)
    return told.stdout.strip() or platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
