"""An Ottla node in a separate process, with the same settings and interface as Apache Kafka's server.

    with start_ottla({"num.partitions": 3}) as server:
        ... server.bootstrap, server.controller_bootstrap, server.data_dir, server.pid ...

`start_ottla` formats the directory if it is not formatted, with `ottla storage format`, and runs `ottla server start` with a
properties file for Kafka. `ottla up` has its own tests.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.servers.apache_kafka import CLUSTER_ID
from tests.support.servers.kafka_server import HANG_S, KafkaServer, ServerFailed, properties_text, start_on_free_ports

StartServer = Callable[..., KafkaServer]
"""`start_ottla` or `ApacheKafka.start_server`."""

OTTLA = (sys.executable, "-m", "ottla.cli.main")
_WITHOUT_LIMITS = (
    "import sys, ottla.broker.requests.fault_log as log; log.LINES_PER_HOST = log.LINES_IN_ALL = 10**9; "
    "import ottla.cli.main as cli; sys.exit(cli.main())"
)
TALKATIVE = (sys.executable, "-c", _WITHOUT_LIMITS)
"""The same without a limit on the log's lines about peers."""


def run_ottla(*arguments: object, stdin: str = "", timeout_s: float = HANG_S) -> subprocess.CompletedProcess[str]:
    """Run one `ottla` command, and wait for its end."""
    command = [*OTTLA, *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False)


def format_ottla(properties: Mapping[str, object], cluster_id: str = CLUSTER_ID, options: Sequence[str] = ()) -> None:
    """Format the directories in `properties` for a node that is its own quorum."""
    with tempfile.TemporaryDirectory(prefix="ottla-format-") as folder:
        config = Path(folder) / "server.properties"
        config.write_text(properties_text(properties))
        done = run_ottla("storage", "format", "--standalone", "-t", cluster_id, "-c", config, *options)
    if done.returncode != 0:
        raise ServerFailed(f"ottla storage format ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")


def start_ottla(
    properties: Mapping[str, object] | None = None, *, data_dir: str | Path | None = None, ready_timeout_s: float = HANG_S
) -> KafkaServer:
    """Start a single-node cluster, formatted if `data_dir` is not; returns when it answers. As `ApacheKafka.start_server`."""
    return start_on_free_ports(
        lambda: KafkaServer([*OTTLA, "server", "start"], properties or {}, data_dir, name="Ottla"),
        lambda server: format_ottla(server.properties),
        ready_timeout_s,
    )
