"""`on_failure` of `ottla.yml`: tells a webhook or a command, once, that a run has failed.

    on_failure: {webhook: "https://…", timeout: 10s}
    on_failure: {command: "mail -s 'pipeline failed' ops@example.org"}

A webhook gets a POST with JSON. A command gets the JSON on its standard input and its fields as variables, such as
OTTLA_ERROR; a text is run by the shell, a list is run as it is. What goes wrong with the hook is a warning: the error of the
run stays the error.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ottla.config.values import parse_duration_ms
from ottla.spark.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from ottla.spark.pipelines.spec import Spec

TIMEOUT_S = 10.0
KEYS = ("webhook", "command", "timeout")


@dataclass(frozen=True)
class FailureHook:
    """What is called when a run fails."""

    webhook: str | None = field(default=None, repr=False)
    command: str | tuple[str, ...] | None = field(default=None, repr=False)
    timeout_s: float = TIMEOUT_S

    def call(self, report: Mapping[str, str | None]) -> str | None:
        """Deliver the report; returns why that failed."""
        if self.webhook is not None:
            return self._post(self.webhook, report)
        assert self.command is not None
        return self._execute(self.command, report)

    def _post(self, url: str, report: Mapping[str, str | None]) -> str | None:
        request = urllib.request.Request(
            url, json.dumps(report).encode(), {"Content-Type": "application/json", "User-Agent": "ottla"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s):
                return None
        except urllib.error.HTTPError as error:
            return f"the webhook answered {error.code} {error.reason}"
        except TimeoutError:
            return f"the webhook did not answer within {self.timeout_s:g} s"
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            return f"the webhook cannot be reached: {getattr(reason, 'strerror', None) or reason}"

    def _execute(self, command: str | tuple[str, ...], report: Mapping[str, str | None]) -> str | None:
        variables = {f"OTTLA_{key.upper()}": value or "" for key, value in report.items()}
        try:
            process = subprocess.Popen(
                command,
                shell=isinstance(command, str),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, **variables},
                start_new_session=True,
            )
        except OSError as error:
            return f"the command cannot be started: {error.strerror}: {error.filename}"
        try:
            _, said = process.communicate(json.dumps(report).encode() + b"\n", timeout=self.timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"the command did not end within {self.timeout_s:g} s"
        if process.returncode:
            last = said.decode(errors="replace").strip().rpartition("\n")[2]
            return f"the command ended with exit code {process.returncode}{f': {last}' if last else ''}"
        return None


def read_hook(given: Any) -> FailureHook | None:
    """The hook that `on_failure` describes, or a `PipelineError`."""
    if given is None:
        return None
    example = "on_failure must be {webhook: URL} or {command: …}, with a timeout such as 10s if you like"
    if not isinstance(given, dict) or set(given) - set(KEYS) or ("webhook" in given) == ("command" in given):
        raise PipelineError(example)
    webhook, command = given.get("webhook"), given.get("command")
    run: str | tuple[str, ...] | None = command if isinstance(command, str) else None
    if webhook is not None and not str(webhook).startswith(("http://", "https://")):
        raise PipelineError("webhook of on_failure must begin with http:// or https://")
    if isinstance(command, list) and command:
        run = tuple(str(part) for part in command)
    elif webhook is None and (not isinstance(command, str) or not command.strip()):
        raise PipelineError(example)
    timeout_ms = parse_duration_ms(str(given.get("timeout", "10s")))
    if not timeout_ms:
        raise PipelineError(f"timeout of on_failure is {given['timeout']!r}: write a time such as 10s")
    return FailureHook(None if webhook is None else str(webhook), run, timeout_ms / 1000)


@contextmanager
def told_on_failure(spec: Spec, warn: Callable[[str], None]) -> Iterator[None]:
    """Calls the pipeline's hook if what is done meanwhile fails. The error goes on as it is."""
    run_id = str(uuid.uuid4())
    try:
        yield
    except Exception as error:
        if spec.on_failure is not None:
            report = {
                "pipeline": spec.name,
                "environment": spec.environment,
                "flow": getattr(error, "flow", None),
                "error": spec.masked(str(error) or type(error).__name__),
                "run_id": run_id,
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            try:
                problem = spec.on_failure.call(report)
            except Exception as other:
                problem = f"{type(other).__name__}: {other}"
            if problem is not None:
                warn(spec.masked(f"on_failure was not told: {problem}"))
        raise
