"""Runs confluent-kafka-python's own tests of its registry client and serializers against Ottla's registry.

    git clone https://github.com/confluentinc/confluent-kafka-python && git -C confluent-kafka-python checkout v2.15.0
    .venv/bin/python tools/registry_strangers.py confluent-kafka-python

Runs their `tests/integration/schema_registry`, sync and async, with a broker and a registry of `ottla.testing`. Their fixtures
start clusters with the package trivup; a module of this name that hands out ours stands in for it. One case expects an error of
Confluent's registry 7.0.1 that later versions do not have, and is left out. Further arguments go to pytest.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ottla.testing import Broker

FOLDER = "tests/integration/schema_registry"
OLD_VERSION_ONLY = "kafka_cluster_cp_7_0_1"
TRIVUP = """
import os


class KafkaCluster:
    def __init__(self, **conf):
        self.sr = {"url": os.environ["OTTLA_STRANGERS_REGISTRY"]}

    def wait_operational(self):
        pass

    def client_conf(self):
        return {"bootstrap.servers": os.environ["OTTLA_STRANGERS_BROKERS"]}

    def stop(self, cleanup=False):
        pass
"""


def run(checkout: Path, arguments: list[str]) -> int:
    """Run the tests of a checkout; returns pytest's exit code."""
    if not (checkout / FOLDER).is_dir():
        print(f"{checkout} has no {FOLDER}: give a checkout of confluent-kafka-python", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="ottla-strangers-") as stand_in, Broker() as broker:
        clusters = Path(stand_in) / "trivup" / "clusters"
        clusters.mkdir(parents=True)
        for each in (clusters.parent / "__init__.py", clusters / "__init__.py"):
            each.write_text("")
        (clusters / "KafkaCluster.py").write_text(TRIVUP)
        environment = {
            **os.environ,
            "OTTLA_STRANGERS_BROKERS": broker.bootstrap_servers,
            "OTTLA_STRANGERS_REGISTRY": broker.schema_registry_url,
            "PYTHONPATH": stand_in,
        }
        command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider"]
        command += ["-k", f"not {OLD_VERSION_ONLY}", FOLDER, *arguments]
        return subprocess.run(command, cwd=checkout, env=environment).returncode


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__)
        sys.exit(2)
    sys.exit(run(Path(sys.argv[1]).resolve(), sys.argv[2:]))
