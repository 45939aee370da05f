"""A Spark that stays for the next `ottla sql` of the same user: that one starts none, and has its first row in a second or two.

A process in the background (the keeper) starts Spark's JVM and answers on a Unix socket in a folder that only the user can
open. A call connects, gets the port and the secret of the JVM, and makes a new session in it: settings and temporary views are
its own. It stays connected while it uses Spark. One call has Spark at a time; another starts one of its own meanwhile. When the
call is gone, whatever way it ended, the keeper cancels what it has left running. It ends after some minutes without a call.

A call uses a Spark only if it would have started the same one: same folder, environment, programs and options (`Wanted.key`).
Whatever fails here, the call starts a Spark of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import selectors
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from ottla.errors import OttlaError
from ottla.spark.java import find_java

SWITCH = "OTTLA_SQL_WARM"
"""`off`, or how many minutes Spark stays without a call."""
OFF = ("off", "no", "false", "0")
IDLE_MINUTES = 10.0
CALLS_MAX = 200
"""Each call leaves some objects behind in the JVM."""
START_LIMIT_S = 120.0
ANSWER_LIMIT_S = 10.0
"""For what takes no time: the keeper's first sign of life, and its end."""
HANG_S = 60
POLL_S = 0.02
WATCH_S = 1.0
"""How often the keeper looks whether the JVM lives."""
OWN_VARIABLES = re.compile(
    r"PWD|OLDPWD|SHLVL|_|COLUMNS|LINES|COLORTERM|NO_COLOR|WINDOWID|TMUX.*|STY|SSH_.*|TERM.*|VTE_.*|ITERM_.*|LC_TERMINAL.*"
    rf"|XDG_SESSION_.*|DISPLAY|WAYLAND_DISPLAY|PS[0-9]|LS_COLORS|HIST.*|LESS.*|PAGER|EDITOR|VISUAL|{SWITCH}"
)
"""Variables that differ between terminals and mean nothing to Spark."""
USE, BUSY, OTHER = "use", "busy", "other"


@dataclass(frozen=True)
class Wanted:
    """The Spark that a call needs."""

    master: str | None
    configuration: dict[str, str]
    log: str
    idle_s: float

    def key(self) -> str:
        """The same for calls that would start the same Spark."""
        import pyspark

        parts = [
            self.master,
            sorted(self.configuration.items()),
            self.log,
            sys.executable,
            sys.version,
            pyspark.__file__,
            pyspark.__version__,
            _newest_source(),
            os.getcwd(),
            sorted((name, value) for name, value in os.environ.items() if not OWN_VARIABLES.fullmatch(name)),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class Attached:
    """A session in the Spark that stays, for one call."""

    def __init__(self, spark: Any, link: socket.socket, *, is_new: bool) -> None:
        self.spark = spark
        self.is_new = is_new
        """Whether this call has started it."""
        self._link = link

    def is_lost(self) -> bool:
        """Whether the keeper has ended, as it does when its JVM has."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._link, selectors.EVENT_READ)
            try:
                return bool(selector.select(2 * WATCH_S)) and not self._link.recv(1)
            except OSError:
                return True

    def close(self) -> None:
        """Leave it to the next call."""
        from pyspark.core.context import SparkContext
        from pyspark.sql import SparkSession

        self._link.close()
        classes: list[Any] = [SparkContext, SparkSession]
        for owner in classes:
            for name in ("_gateway", "_jvm", "_active_spark_context", "_instantiatedSession", "_activeSession"):
                if hasattr(owner, name):
                    setattr(owner, name, None)


def minutes_idle(environment: Mapping[str, str] | None = None) -> float:
    """How long Spark stays without a call."""
    value = (os.environ if environment is None else environment).get(SWITCH, "")
    if not value or value.lower() in OFF:
        return IDLE_MINUTES
    try:
        return float(value)
    except ValueError:
        raise OttlaError(f"{SWITCH} is {value!r}: it must be off, or how many minutes Spark stays, such as 10") from None


def is_usual(environment: Mapping[str, str] | None = None) -> bool:
    """Whether Spark stays without being asked to: for somebody at a terminal, not for scripts, tests and CI."""
    variables = os.environ if environment is None else environment
    is_automatic = "CI" in variables or "PYTEST_CURRENT_TEST" in variables
    return sys.stderr.isatty() and not is_automatic and variables.get(SWITCH, "").lower() not in OFF


# The call


def attach(wanted: Wanted) -> Attached | None:
    """A session in the Spark that stays, which is started if there is none. None: the caller starts one of its own."""
    try:
        return _attach(wanted)
    except Exception:  # whatever it is: the caller's own Spark works, or says what is wrong
        return None


def _attach(wanted: Wanted) -> Attached | None:
    folder = runtime_folder()
    key = wanted.key()
    is_new = False
    for _ in range(2):
        link = _connect(folder)
        if link is None:
            is_new = True
            link = _start_keeper(folder, wanted, key)
            if link is None:
                return None
        try:
            answer = _ask(link, key, START_LIMIT_S if is_new else ANSWER_LIMIT_S)
            if "port" in answer:
                return Attached(_session(int(answer["port"]), str(answer["secret"])), link, is_new=is_new)
            if answer.get("refused") != OTHER:
                link.close()
                return None
            _wait_for_end(link)
        except BaseException:
            link.close()
            raise
        link.close()
    return None


def _connect(folder: Path) -> socket.socket | None:
    link = socket.socket(socket.AF_UNIX)
    try:
        link.connect(str(folder / "sql.sock"))
    except OSError:
        link.close()
        return None
    return link


def _start_keeper(folder: Path, wanted: Wanted, key: str) -> socket.socket | None:
    """Start a keeper and connect to it; it listens before it starts Spark."""
    with open(wanted.log, "ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla.spark.warm"],
            stdin=subprocess.PIPE,
            stdout=log,  # else the JVM would hold the call's output open, and a pipe behind it would not end
            stderr=log,
            start_new_session=True,
        )
    assert process.stdin is not None
    with process.stdin:
        process.stdin.write(json.dumps({**asdict(wanted), "key": key}).encode())
    end_s = time.monotonic() + ANSWER_LIMIT_S
    while time.monotonic() < end_s:
        if (link := _connect(folder)) is not None:
            return link
        if process.poll() is not None:
            return None
        time.sleep(POLL_S)
    return None


def _ask(link: socket.socket, key: str, limit_s: float) -> dict[str, Any]:
    link.settimeout(limit_s)
    link.sendall(json.dumps({"verb": USE, "key": key}).encode() + b"\n")
    with link.makefile("rb") as lines:
        answer: dict[str, Any] = json.loads(lines.readline() or b"{}")
    return answer


def _wait_for_end(link: socket.socket) -> None:
    """The keeper of another Spark ends, with its lock and its socket, before it closes the connection."""
    link.settimeout(ANSWER_LIMIT_S)
    while link.recv(1):
        pass


def _session(port: int, secret: str) -> Any:
    """A new session in the JVM of the keeper."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    from ottla.spark.session import use_python

    use_python({}, sys.executable)
    given = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(given)
    try:
        gateway: Any = launch_gateway()
    finally:
        for name in given:
            del os.environ[name]
    jvm: Any = gateway.jvm
    java_context = jvm.JavaSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    maker: Any = SparkContext
    context = maker(gateway=gateway, jsc=java_context, conf=SparkConf(_jvm=jvm, _jconf=java_context.getConf()))
    session: Any = SparkSession
    return session(context, session._get_j_spark_session_class(jvm).builder().getOrCreate().newSession())


def is_there() -> bool:
    """Whether a Spark seems to be there."""
    try:
        return (runtime_folder() / "sql.sock").exists()
    except (OSError, OttlaError):
        return False


def stop_keeper() -> bool:
    """End the Spark that stays. Returns whether there was one."""
    lock_file = runtime_folder() / "sql.lock"
    try:
        with open(lock_file, "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
            except BlockingIOError:
                os.kill(int(lock.read()), signal.SIGTERM)
                fcntl.flock(lock, fcntl.LOCK_SH)  # it lets go of the lock when it ends
                return True
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return False


def runtime_folder() -> Path:
    """The user's folder for sockets. Made if it is not there; an OttlaError if others can open it."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(base) / "ottla" if base else Path(tempfile.gettempdir()) / f"ottla-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise OttlaError(f"{folder} must be a folder of yours that nobody else can open: chmod 700 {folder}")
    return folder


def _newest_source() -> int:
    """When Ottla's code was changed last: processes that Spark has started have the code of that time."""
    root = Path(__file__).parents[1]
    return max(
        os.stat(os.path.join(folder, name)).st_mtime_ns
        for folder, _, names in os.walk(root)
        for name in names
        if name.endswith((".py", ".so"))
    )


# The keeper


class _Ended(Exception):
    """SIGTERM, or nothing more to do."""


class Keeper:
    """Starts Spark and hands it to one call at a time."""

    def __init__(self, server: socket.socket, wanted: Wanted, key: str) -> None:
        self._server = server
        self._wanted = wanted
        self._key = key
        self._spark: Any = None
        self._error: BaseException | None = None
        self._caller: socket.socket | None = None
        self._is_answered = False
        self._calls = 0
        self._idle_since_s = time.monotonic()

    def run(self) -> None:
        """Serve calls until the last one is some minutes ago, the JVM has ended, or another Spark is wanted."""
        starting = threading.Thread(target=self._start, daemon=True)
        starting.start()
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            while True:
                if self._caller is None and time.monotonic() - self._idle_since_s > self._wanted.idle_s:
                    return
                ready = [key.fileobj for key, _ in selector.select(POLL_S if starting.is_alive() else WATCH_S)]
                if not starting.is_alive() and not self._is_alive():
                    return
                if self._server in ready and (caller := self._greet()) is not None:
                    selector.register(caller, selectors.EVENT_READ)
                    self._caller, self._is_answered = caller, False
                if self._caller in ready and self._caller is not None:
                    selector.unregister(self._caller)
                    self._caller.close()
                    self._caller = None
                    if self._is_answered:
                        self._tidy()
                    self._idle_since_s = time.monotonic()
                if self._caller is not None and not self._is_answered and not starting.is_alive():
                    self._answer()

    def _start(self) -> None:
        from ottla.spark.session import local_session

        try:
            self._spark = local_session(
                "ottla sql",
                master=self._wanted.master,
                configuration=self._wanted.configuration,
                log_file=Path(self._wanted.log),
                is_brief=True,
            )
        except BaseException as error:
            self._error = error

    def _is_alive(self) -> bool:
        return self._error is None and self._spark.sparkContext._gateway.proc.poll() is None

    def _greet(self) -> socket.socket | None:
        """Take a new call, or refuse it."""
        caller, _ = self._server.accept()
        caller.settimeout(ANSWER_LIMIT_S)
        try:
            if not _is_mine(caller):
                raise OSError("another user")
            with caller.makefile("rb") as lines:
                request = json.loads(lines.readline())
            if self._caller is not None:
                _send(caller, {"refused": BUSY})
                raise OSError("busy")
        except (OSError, ValueError):
            caller.close()
            return None
        if request.get("key") != self._key:
            _send(caller, {"refused": OTHER})
            self._caller = caller  # closed when this process ends: the other waits for that
            raise _Ended
        return caller

    def _answer(self) -> None:
        parameters = self._spark.sparkContext._gateway.gateway_parameters
        assert self._caller is not None
        with contextlib.suppress(OSError):  # a call that is gone is seen by its closed socket
            _send(self._caller, {"port": parameters.port, "secret": parameters.auth_token})
        self._is_answered = True
        self._calls += 1

    def _tidy(self) -> None:
        """After a call: nothing of it goes on."""
        from ottla.spark.class_archive import make_in_background

        signal.alarm(HANG_S)  # a JVM that hangs would keep this process and its socket: the signal ends both
        context = self._spark.sparkContext
        if context._jsc.sc().isStopped() or self._calls >= CALLS_MAX:
            raise _Ended
        context.cancelAllJobs()
        context._jvm.System.gc()  # gives memory back to the machine
        signal.alarm(0)
        if self._calls == 1:
            make_in_background(find_java())


def _is_mine(caller: socket.socket) -> bool:
    """Whether the same user calls, where the kernel says who does. The folder keeps others out in any case."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    found = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(found[4:8], sys.byteorder) == os.getuid()


def _send(caller: socket.socket, answer: dict[str, Any]) -> None:
    caller.sendall(json.dumps(answer).encode() + b"\n")


@contextlib.contextmanager
def _listening(folder: Path) -> Iterator[socket.socket]:
    """The socket, and the lock that says that this process has it; BlockingIOError if another one has."""
    path = folder / "sql.sock"
    with open(os.open(folder / "sql.lock", os.O_RDWR | os.O_CREAT, 0o600), "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.truncate()
        lock.write(str(os.getpid()).encode())
        lock.flush()
        path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            server = socket.socket(socket.AF_UNIX)
            server.bind(str(path))
        finally:
            os.umask(before)
        try:
            server.listen(8)
            yield server
        finally:
            path.unlink(missing_ok=True)
            server.close()


def main() -> int:
    """Keep a Spark as standard input describes it."""

    def end(signal_number: int, frame: FrameType | None) -> None:
        raise _Ended

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    request = json.loads(sys.stdin.buffer.read())
    key = request.pop("key")
    with contextlib.suppress(_Ended, BlockingIOError), _listening(runtime_folder()) as server:
        Keeper(server, Wanted(**request), key).run()
    # The JVM ends with its standard input. Nothing else that this process holds is worth a slow end.
    os._exit(0)


if __name__ == "__main__":
    main()
