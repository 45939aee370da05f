"""A node in the foreground that is told to stop before its start is over."""

import os
import signal
import subprocess
from pathlib import Path

from tests.support.servers.kafka_server import HANG_S, free_ports
from tests.support.servers.ottla_server import OTTLA, run_ottla

from ottla.broker.cluster_settings import cluster_settings


def test_a_signal_ends_a_start_that_waits_for_a_quorum(tmp_path: Path) -> None:
    ports = free_ports(6)
    settings = cluster_settings("127.0.0.1", list(zip(ports[:3], ports[3:], strict=True)), str(tmp_path))[0]
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    cluster_id = run_ottla("storage", "random-uuid").stdout.strip()
    assert run_ottla("storage", "format", "-t", cluster_id, "-c", file).returncode == 0
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*OTTLA, "server", "start", str(file)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        assert process.stderr is not None
        said = ""
        while "listening on" not in said and "epoch" not in said:  # the node votes, and no one answers
            line = process.stderr.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGTERM)
        said += process.communicate(timeout=HANG_S)[1]
        assert process.returncode == 0
        assert "SIGTERM: stopping" in said
        assert "told to stop before the start was over" in said
        assert "is up at" not in said
    finally:
        process.kill()
        process.wait()
