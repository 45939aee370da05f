"""`on_failure`: a webhook or a command is told once, and the error of the run stays."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline
from tests.support.servers.ottla_cli import run_cli

from ottla.spark.pipelines.errors import FlowFailed, PipelineError
from ottla.spark.pipelines.hooks import FailureHook, read_hook, told_on_failure
from ottla.spark.pipelines.spec import Spec


def fail(spec: Spec, hook: FailureHook) -> list[str]:
    """A failed run with a hook; returns the warnings."""
    warnings: list[str] = []
    with (
        pytest.raises(FlowFailed, match="the flow copy broke"),
        told_on_failure(replace(spec, on_failure=hook, secrets=frozenset({"hunter2"})), warnings.append),
    ):
        raise FlowFailed("copy", "the flow copy broke: hunter2", "")
    return warnings


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    return write_pipeline(tmp_path, {"a.py": ""})


def test_webhook_gets_one_post(spec: Spec) -> None:
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if len(got) == 1 else 500)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    hook = FailureHook(f"http://127.0.0.1:{server.server_port}/")
    assert fail(spec, hook) == []
    (report,) = got
    assert (report["pipeline"], report["flow"], report["error"]) == ("shop", "copy", "the flow copy broke: ***")
    assert report["run_id"]
    assert fail(spec, hook) == ["on_failure was not told: the webhook answered 500 Internal Server Error"]
    server.shutdown()
    server.server_close()
    (refused,) = fail(spec, hook)
    assert refused.startswith("on_failure was not told: the webhook cannot be reached: ")


def test_command_gets_fields_and_is_ended_in_time(spec: Spec, tmp_path: Path) -> None:
    out = tmp_path / "told"
    assert fail(spec, FailureHook(command=f'(echo "$OTTLA_FLOW $OTTLA_RUN_ID"; cat) > {out}')) == []
    first, second = out.read_text().splitlines()
    assert first == f"copy {json.loads(second)['run_id']}"
    assert fail(spec, FailureHook(command="sleep 60", timeout_s=0.05)) == [
        "on_failure was not told: the command did not end within 0.05 s"
    ]
    assert fail(spec, FailureHook(command="echo no mail >&2; exit 3")) == [
        "on_failure was not told: the command ended with exit code 3: no mail"
    ]
    assert "cannot be started" in fail(spec, FailureHook(command=("/no/such/program",)))[0]


@pytest.mark.parametrize("given", [{}, "x", {"webhook": "a:b"}, {"command": ""}, {"webhook": "http://a", "command": "b"}])
def test_mistake_is_one_sentence(given: Any) -> None:
    with pytest.raises(PipelineError, match="on_failure"):
        read_hook(given)


def test_run_that_fails_before_spark_tells_the_hook(tmp_path: Path) -> None:
    ottla = (
        f"on_failure: {{command: [cp, /dev/stdin, {tmp_path}/told]}}\nsources: {{a: {{subscribe: x, subscribePattern: y}}}}\n"
    )
    write_pipeline(tmp_path / "shop", {"a.py": ""}, ottla)
    said = run_cli("pipeline", "run", tmp_path / "shop")
    assert said.rc == 1
    assert said.err == f"ottla: {json.loads((tmp_path / 'told').read_text())['error']}\n"
