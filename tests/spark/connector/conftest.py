"""Spark's own Kafka connector, unchanged, with a broker of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Unavailable
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.spark_connector import JarsUnavailable, connector_jars

PROGRAM = Path(__file__).with_name("session.py")
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def connector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """`connector("read", options={…})` does an action of `session.py` and returns its result."""
    try:
        jars = ",".join(map(str, connector_jars()))
    except JarsUnavailable as reason:
        raise Unavailable(str(reason)) from None
    folder = tmp_path_factory.mktemp("connector")
    log = folder / "log"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder), jars],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            text=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    commands, answers = process.stdin, process.stdout

    def ask(action: str, **arguments: Any) -> Any:
        commands.write(json.dumps({"action": action, **arguments}) + "\n")
        commands.flush()
        line = answers.readline()
        assert line, f"the session has ended:\n{log.read_text(errors='replace')[-3000:]}"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    try:
        yield ask
    finally:
        commands.close()
        try:
            process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            answers.close()
