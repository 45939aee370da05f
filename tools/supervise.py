"""Runs a service as systemd would, from its unit file: for tests, and for machines where systemd is not the first process.

    python -m tools.supervise ottla.service                    until Ctrl-C; prints what the service tells
    python -m tools.supervise ottla@.service --instance 1
    ottla service install --root DIR --new-settings && python -m tools.supervise DIR/etc/systemd/system/ottla.service --root DIR

    with Supervised(Unit.read(path)) as service:
        service.wait_ready()

It does what these lines of a unit say: ExecStart, Environment, WorkingDirectory, UMask, Type=notify with its socket,
WatchdogSec (SIGABRT to a service that is silent), Restart=on-failure with RestartSec, TimeoutStopSec, and TimeoutStartSec with
the extensions that the service asks for. It ignores users, limits and sandboxes. As with NotifyAccess=main, only the main
process is heard.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

HANG_S = 180.0
_CREDENTIALS = struct.Struct("3i")
_UNITS_S = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 0.001, "min": 60.0, "h": 3600.0, "us": 1e-6}


class Unit:
    """The lines of a unit file, by name; a name with several values keeps all."""

    def __init__(self, text: str, name: str = "", instance: str = "") -> None:
        self.values: dict[str, list[str]] = {}
        specifiers = {
            "%%": "%", "%i": instance, "%I": instance, "%n": name.replace("@", f"@{instance}"), "%E": "/etc", "%S": "/var/lib",
            "%h": str(Path.home()), "%t": os.environ.get("XDG_RUNTIME_DIR", "/run"),
        }  # fmt: skip
        for line in text.replace("\\\n", " ").splitlines():
            key, separator, value = line.strip().partition("=")
            if not separator or key.startswith(("#", ";", "[")):
                continue
            for specifier, meaning in specifiers.items():
                value = value.replace(specifier, meaning)
            self.values.setdefault(key, []).append(value)

    @classmethod
    def read(cls, path: Path, instance: str = "") -> Unit:
        return cls(path.read_text(encoding="utf-8"), path.name, instance)

    def below(self, root: Path) -> Self:
        """For a unit that was installed with --root: its node reads the settings and keeps the data below that folder."""
        state, *_ = self.get("StateDirectory").split()
        command = self.get("ExecStart").replace("/etc/ottla/", f"{root}/etc/ottla/")
        self.values["ExecStart"] = [f"{command} --override log.dirs={shlex.quote(f'{root}/var/lib/{state}')}"]
        return self

    def get(self, name: str, default: str = "") -> str:
        return self.values.get(name, [default])[-1]

    def seconds(self, name: str, default: float | None) -> float | None:
        """A time; None: without limit."""
        text = self.get(name)
        if not text:
            return default
        if text == "infinity":
            return None
        number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
        return float(number) * _UNITS_S[text[len(number) :].strip()]

    @property
    def command(self) -> list[str]:
        return shlex.split(self.get("ExecStart"))

    @property
    def environment(self) -> dict[str, str]:
        words = [word for value in self.values.get("Environment", []) for word in shlex.split(value)]
        return dict(word.split("=", 1) for word in words)


class Message(NamedTuple):
    """One datagram of the service."""

    at_s: float
    """Since its process was started."""
    fields: Mapping[str, str]


class Supervised:
    """A running service. Use as a context manager: it is stopped at the end of the block.

    `environment` is added to the unit's. `abstract`: the socket is in the abstract namespace. `on_event` gets lines for people.
    """

    def __init__(
        self,
        unit: Unit,
        *,
        environment: Mapping[str, str] | None = None,
        abstract: bool = False,
        output: int | None = None,
        on_event: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.unit = unit
        self.messages: list[Message] = []
        """What the process that runs now has told."""
        self.process: subprocess.Popen[bytes] | None = None
        self.exit_codes: list[int] = []
        self.watchdog_kills = 0
        self.foreign_messages = 0
        """Messages of other processes than the main one."""
        self._environment = dict(environment or {})
        self._output = output
        self._on_event = on_event
        self._changed = threading.Condition()
        self._is_stopping = False
        self._is_over = False
        self._folder = tempfile.TemporaryDirectory(prefix="ottla-notify-")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        path = f"{self._folder.name}/notify"
        self._socket.bind("\0" + path if abstract else path)
        self.address = "@" + path if abstract else path
        self._started_s = 0.0
        self._heard_s = 0.0
        self._start_deadline_s: float | None = None
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._listen, self._run)]

    # -- what happens

    def start(self) -> Self:
        self._spawn()
        for thread in self._threads:
            thread.start()
        return self

    def _spawn(self) -> None:
        unit, watchdog_s = self.unit, self.unit.seconds("WatchdogSec", None)
        environment = {**os.environ, **unit.environment, **self._environment, "NOTIFY_SOCKET": self.address}
        if watchdog_s is not None:
            environment["WATCHDOG_USEC"] = str(int(watchdog_s * 1e6))
        timeout_s = unit.seconds("TimeoutStartSec", 90.0)
        with self._changed:
            self.messages = []
            self._started_s = self._heard_s = time.monotonic()
            self._start_deadline_s = None if timeout_s is None else self._started_s + timeout_s
            umask = unit.get("UMask")
            self.process = subprocess.Popen(
                unit.command,
                env=environment,
                cwd=unit.get("WorkingDirectory") or "/",
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                umask=int(umask, 8) if umask else -1,
            )
            self._changed.notify_all()
        self._on_event(f"started process {self.process.pid}: {shlex.join(unit.command)}")

    def _listen(self) -> None:
        while True:
            data, ancillary, _, _ = self._socket.recvmsg(65536, socket.CMSG_SPACE(_CREDENTIALS.size))
            if not data:
                return
            sender = next((_CREDENTIALS.unpack(each[2])[0] for each in ancillary if each[1] == socket.SCM_CREDENTIALS), 0)
            now_s = time.monotonic()
            with self._changed:
                if self.process is None or sender != self.process.pid:
                    self.foreign_messages += 1
                    continue
                fields = dict(line.split("=", 1) for line in data.decode().splitlines())
                self.messages.append(Message(now_s - self._started_s, fields))
                if "WATCHDOG" in fields or "READY" in fields:
                    self._heard_s = now_s
                if "EXTEND_TIMEOUT_USEC" in fields and self._start_deadline_s is not None:
                    self._start_deadline_s = max(self._start_deadline_s, now_s + int(fields["EXTEND_TIMEOUT_USEC"]) / 1e6)
                self._changed.notify_all()
            if fields.keys() != {"WATCHDOG"}:
                self._on_event(f"{now_s - self._started_s:.2f} s: " + ", ".join(f"{name}={fields[name]}" for name in fields))

    def _run(self) -> None:
        """Wait for the end of the process, watch it, and start it again if the unit says so."""
        watchdog_s = self.unit.seconds("WatchdogSec", None)
        while True:
            assert self.process is not None
            try:
                code = self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                now_s = time.monotonic()
                if watchdog_s is not None and self.is_ready and now_s - self._heard_s > watchdog_s and not self._is_stopping:
                    self._kill("the watchdog's time is over", signal.SIGABRT)
                    self.watchdog_kills += 1
                    self._heard_s = now_s + 60  # for the stack of every thread
                elif self._start_deadline_s is not None and not self.is_ready and now_s > self._start_deadline_s:
                    self._kill("the start took too long", signal.SIGTERM)
                    self._start_deadline_s = now_s + 30
                continue
            self._on_event(f"process {self.process.pid} ended with {code}")
            with self._changed:
                self.exit_codes.append(code)
                is_failed = code != 0 and str(code) not in self.unit.get("RestartPreventExitStatus").split()
                if self._is_stopping or not (is_failed and self.unit.get("Restart") in ("on-failure", "always")):
                    self._is_over = True
                    self._changed.notify_all()
                    return
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._is_stopping, self.unit.seconds("RestartSec", 0.1))
                if self._is_stopping:
                    self._is_over = True
                    self._changed.notify_all()
                    return
            self._spawn()

    def _kill(self, why: str, number: signal.Signals) -> None:
        assert self.process is not None
        self._on_event(f"{why}: {number.name} to process {self.process.pid}")
        self.process.send_signal(number)

    # -- what a test asks and does

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def is_ready(self) -> bool:
        return any(each.fields.get("READY") == "1" for each in self.messages)

    @property
    def statuses(self) -> list[str]:
        return [each.fields["STATUS"] for each in self.messages if "STATUS" in each.fields]

    def told(self, name: str) -> list[float]:
        """When the running process has told `name`."""
        return [each.at_s for each in self.messages if name in each.fields]

    def wait_until(self, condition: Callable[[], bool], what: str, timeout_s: float = HANG_S) -> None:
        """Wait for a condition of this object. A service that ends meanwhile, for good, fails it."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition() or self._is_over, timeout_s):
                raise AssertionError(f"{what}: not within {timeout_s:g} s. The service has told {self.messages[-5:]}")
            if not condition():
                raise AssertionError(
                    f"{what}: the service has ended with {self.exit_codes[-1]}; it has told {self.messages[-5:]}"
                )

    def wait_ready(self, timeout_s: float = HANG_S) -> float:
        """Wait until the service is ready; how long that took since its process was started."""
        self.wait_until(lambda: self.is_ready, "READY=1", timeout_s)
        return next(each.at_s for each in self.messages if each.fields.get("READY") == "1")

    def reload(self) -> None:
        """What ExecReload does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGHUP)

    def stop(self) -> int:
        """SIGTERM, after TimeoutStopSec SIGKILL; the exit code."""
        assert self.process is not None
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
            if self.process.poll() is None:
                self.process.terminate()
            if not self._changed.wait_for(lambda: self._is_over, self.unit.seconds("TimeoutStopSec", 90.0)):
                self._kill("the stop took too long", signal.SIGKILL)
                self._changed.wait_for(lambda: self._is_over)
        return self.exit_codes[-1]

    def __enter__(self) -> Self:
        return self.start() if self.process is None else self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process is not None and not self._is_over:
            if error is not None:
                self.process.kill()
            self.stop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self._socket.getsockname())  # ends the thread that listens
        self._threads[0].join()
        self._socket.close()
        self._folder.cleanup()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.supervise", description="Run a systemd unit without systemd.")
    parser.add_argument("unit", type=Path)
    parser.add_argument("--instance", default="", help="what stands for %%i in a template unit")
    parser.add_argument("--root", type=Path, help="what `ottla service install --root` was given")
    given = parser.parse_args(arguments)
    unit = Unit.read(given.unit, given.instance)
    if given.root is not None:
        unit.below(given.root.absolute())
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    started = Supervised(unit, on_event=lambda line: print(line, flush=True))
    with started as service:
        while not stopping.wait(0.1) and not service._is_over:
            pass
        return service.exit_codes[-1] if service._is_over else service.stop()


if __name__ == "__main__":
    sys.exit(main())
