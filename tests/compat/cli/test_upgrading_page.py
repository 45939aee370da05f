"""The commands of docs/upgrading.md, on a node whose cluster has the levels of an earlier release."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.servers.kafka_server import HANG_S, KafkaServer
from tests.support.servers.ottla_server import OTTLA, format_ottla, run_ottla

PAGE = (Path(__file__).parents[3] / "docs" / "upgrading.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)


def test_levels_are_raised_and_the_way_back_is_shown(tmp_path: Path) -> None:
    tool = tmp_path / "ottla"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m ottla.cli.main "$@"\n')
    tool.chmod(0o755)
    server = KafkaServer([*OTTLA, "server", "start"], {}, tmp_path / "data", name="Ottla")
    format_ottla(server.properties, options=["--release-version", "4.2"])
    server.start()
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "OTTLA_BOOTSTRAP_SERVERS": server.bootstrap}

    def run(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", "-ec", text], env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)

    with server:
        upgrade, back = BLOCKS
        done = run(upgrade)
        assert done.returncode == 0, done.stderr
        first, *_, last = re.findall(r"Feature: metadata.version .*FinalizedVersionLevel: (\S+)", done.stdout)
        assert (first, last) == ("4.2-IV1", "4.3-IV0")
        metadata, group = back.strip().splitlines()
        refused = run(metadata)
        assert refused.returncode == 1
        assert "what 4.3-IV0 has stored could not be read under 4.2-IV1" in refused.stderr
        assert "group.version can be downgraded to 0." in run(group).stdout


def test_the_features_of_the_table_are_those_there_are() -> None:
    named = set(re.findall(r"^\| `(\S+\.version)` \|", PAGE, flags=re.MULTILINE))
    shown = run_ottla("features", "version-mapping", "--release-version", "4.3").stdout
    unserved = {"share.version", "streams.version"}
    assert named == set(re.findall(r"^(\S+)=", shown, flags=re.MULTILINE)) - unserved
