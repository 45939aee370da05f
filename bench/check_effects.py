"""What each warning of `ottla check` costs: the same load with the bad and with the good setting, one row each.

    python -m bench.check_effects [NAME …] [--write docs/check.md]

Needs root, on Linux: settings are changed in network namespaces, control groups, mounts of its own and for single processes.
Three belong to the whole machine and are changed for seconds, then restored, whatever happens: swap in a file of its own,
vm.dirty_bytes and net.core.rmem_max. A row that this machine does not allow says why; what no row can show is in `NOT_SHOWN`.

Long links are two TUN devices in two network namespaces with a process between them that delays packets, or drops large ones.
"""

import argparse
import asyncio
import fcntl
import heapq
import json
import os
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

PYTHON = sys.executable
CGROUP = "ottla-effects"
REQUEST = b"\x00\x00\x00\x0c\x00\x12\x00\x00\x00\x00\x00\x07\x00\x02me"
"""ApiVersions version 0, as a frame."""
BEGIN, END = "<!-- effects:begin -->", "<!-- effects:end -->"

NOT_SHOWN = {
    "swappiness": "in a control group of 100 to 160 MB a node was swapped out or not, whatever the value (1 or 100)",
    "system-files": "fs.file-max holds for every process of the machine; root passes it, so a test as root shows nothing",
    "overcommit": "vm.overcommit_memory=2 holds for every process of the machine",
    "stolen-time": "only the machine's host can take time from it",
    "clock": "changing the clock changes it for every process; a namespace has no clock of its own",
    "clock-source": "this machine offers no slow one: its clock sources are tsc and kvm-clock",
    "numa": "this machine has one node of memory",
    "connection-tracking": "net.netfilter.nf_conntrack_max can be set only for all namespaces together",
    "peer-clock": "as clock",
}


class Row(NamedTuple):
    """One effect."""

    check: str
    bad: str
    good: str
    measured: str
    bad_value: str
    good_value: str


class Impossible(Exception):
    """This machine does not allow it."""


# -- the programs under test


class Node:
    """An `ottla up` in a process of its own."""

    def __init__(
        self, folder: Path, *settings: str, host: str = "127.0.0.1", before: tuple[str, ...] = (),
        setup: Callable[[], None] | None = None,
        env: dict[str, str] | None = None, python: str = PYTHON,
    ) -> None:  # fmt: skip
        flags = [word for each in settings for word in ("--set", each)]
        command = [*before, python, "-m", "ottla", "up", "--json", "--host", host, "--data", str(folder), *flags]
        self.process = subprocess.Popen(
            [*command, "--port", "0" if not before else "9092"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=setup, env={**os.environ, **(env or {})},
        )  # fmt: skip
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        line = self.process.stdout.readline() if ready else ""
        self.is_up = line.startswith("{")
        self.address = json.loads(line)["bootstrap_servers"] if self.is_up else ""

    def swapped_kb(self) -> int:
        match = re.search(r"VmSwap:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(match[1]) if match else 0

    def stop(self) -> str:
        """End it; returns what it said on standard error."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            said = self.process.communicate(timeout=30)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            said = self.process.communicate()[1]
        return str(said)


@contextmanager
def node(folder: Path, *settings: str, **how: object) -> Iterator[Node]:
    started = Node(folder, *settings, **how)  # type: ignore[arg-type]
    try:
        yield started
    finally:
        started.stop()


def probe(name: str, *arguments: object, before: tuple[str, ...] = (), timeout_s: float = 120) -> dict[str, float]:
    """Run a load in a process of its own, perhaps in a namespace."""
    command = [*before, PYTHON, "-m", "bench.check_effects", "--probe", name, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if ran.returncode:
        raise Impossible(f"the load failed: {ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else ran.returncode}")
    found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return found


# -- loads


def load_latency(address: str, seconds: str, pause_s: str = "0.002") -> dict[str, float]:
    """Records one by one with acks=all: milliseconds each."""
    from ottla import Producer

    took: list[float] = []
    with Producer(address, linger_ms=0) as producer:
        producer.send("latency", b"x" * 100).result(60)
        until_s = time.perf_counter() + float(seconds)
        while time.perf_counter() < until_s:
            begun_s = time.perf_counter()
            producer.send("latency", b"x" * 100).result(60)
            took.append((time.perf_counter() - begun_s) * 1000)
            time.sleep(float(pause_s))
    took.sort()
    return {"p50": took[len(took) // 2], "p99": took[int(len(took) * 0.99)], "max": took[-1], "count": len(took)}


def load_rate(address: str, megabytes: str, value_bytes: str = "1000", *more: str) -> dict[str, float]:
    """Megabytes per second of records that are acknowledged."""
    from ottla import Producer

    size, config = int(value_bytes), dict(each.split("=") for each in more)
    total = int(float(megabytes) * 1e6)
    with Producer(address, buffer_memory=64 << 20, batch_size=512 << 10, linger_ms=5, **config) as producer:  # type: ignore[arg-type]
        producer.send("rate", b"first").result(60)
        begun_s = time.perf_counter()
        per_call = max(1, 4_000_000 // size)
        sent = [producer.send_many("rate", [b"x" * size] * per_call) for _ in range(max(1, total // (size * per_call)))]
        for each in sent:
            each[len(each) - 1].result(90)
        return {"rate": total / 1e6 / (time.perf_counter() - begun_s)}


def load_once(address: str, size: str, seconds: str) -> dict[str, float]:
    """Whether one record of a size is acknowledged in time, and when."""
    from ottla import Producer

    begun_s = time.perf_counter()
    limit_ms = int(float(seconds) * 1000)
    producer = Producer(
        address, max_request_size=4 << 20, buffer_memory=8 << 20, linger_ms=0, delivery_timeout_ms=limit_ms,
        request_timeout_ms=limit_ms * 4 // 5, max_block_ms=limit_ms,
    )  # fmt: skip
    try:
        producer.send("once", os.urandom(int(size))).result(float(seconds) + 5)
        return {"ok": 1, "ms": (time.perf_counter() - begun_s) * 1000}
    except Exception as error:
        print(type(error).__name__, error, file=sys.stderr)
        return {"ok": 0, "ms": (time.perf_counter() - begun_s) * 1000}
    finally:
        producer.close(0)


def load_storm(address: str, clients: str, seconds: str) -> dict[str, float]:
    """So many clients that connect at the same moment, as after a restart: how many were answered, and when the last was."""
    host, _, port = address.rpartition(":")
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(clients) + 200,) * 2)

    async def client(begun_s: float) -> float | None:
        try:
            async with asyncio.timeout(float(seconds)):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(REQUEST)
                await reader.readexactly(4)
                held.append(writer)
                return time.perf_counter() - begun_s
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return None

    held: list[asyncio.StreamWriter] = []

    async def run() -> list[float | None]:
        begun_s = time.perf_counter()
        return await asyncio.gather(*(client(begun_s) for _ in range(int(clients))))

    times = asyncio.run(run())
    answered = sorted(each for each in times if each is not None)
    return {"answered": len(answered), "last_s": answered[-1] if answered else 0.0}


def load_flush(folder: str, seconds: str) -> dict[str, float]:
    """Appends of 4 kB, each with an fdatasync: milliseconds."""
    took = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        until_s = time.perf_counter() + float(seconds)
        while time.perf_counter() < until_s:
            os.write(file.fileno(), bytes(4096))
            begun_s = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - begun_s) * 1000)
            time.sleep(0.02)
    took.sort()
    return {"p50": took[len(took) // 2], "max": took[-1]}


def load_topics(address: str) -> dict[str, float]:
    """Topics one by one: each is a record in the metadata log, with an fsync."""
    from ottla import Admin, NewTopic

    took = []
    with Admin(address) as admin:
        for number in range(20):
            begun_s = time.perf_counter()
            admin.create_topics([NewTopic(f"t{number}", 1)])
            took.append((time.perf_counter() - begun_s) * 1000)
    took.sort()
    return {"p50": took[len(took) // 2]}


LOADS: dict[str, Callable[..., dict[str, float]]] = {
    "latency": load_latency, "rate": load_rate, "once": load_once, "storm": load_storm, "flush": load_flush,
    "topics": load_topics,
}  # fmt: skip


# -- what is changed


def run(*command: object) -> str:
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise Impossible(f"{' '.join(map(str, command))}: {(ran.stderr or ran.stdout).strip()}")
    return ran.stdout


@contextmanager
def namespace(name: str) -> Iterator[tuple[str, ...]]:
    """A network namespace; yields the words that run a command in it."""
    run("ip", "netns", "add", name)
    inside = ("ip", "netns", "exec", name)
    try:
        run(*inside, "ip", "link", "set", "lo", "up")
        yield inside
    finally:
        run("ip", "netns", "del", name)


@contextmanager
def cgroup(controller: str, **values: object) -> Iterator[Callable[[], None]]:
    """A control group with limits; yields what puts the calling process into it."""
    v1, v2 = Path("/sys/fs/cgroup") / controller, Path("/sys/fs/cgroup")
    if not v1.is_dir():
        raise Impossible(f"{v2} has no folder for {controller}: this program sets limits of control groups of version 1 only")
    folder = v1 / f"{CGROUP}-{os.getpid()}"
    folder.mkdir()
    try:
        for name, value in values.items():
            try:
                (folder / f"{controller}.{name}").write_text(str(value))
            except OSError as error:
                raise Impossible(f"{folder}/{controller}.{name}: {error.strerror}") from None

        def enter() -> None:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

        enter.folder = folder  # type: ignore[attr-defined]
        yield enter
    finally:
        deadline_s = time.monotonic() + 10
        while True:
            try:
                folder.rmdir()
                break
            except OSError:  # its last process is not quite gone
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(0.05)


@contextmanager
def machine_wide(path: str, value: str | None) -> Iterator[None]:
    """A setting of the whole machine, for a moment; with None only restored afterwards."""
    before = Path(path).read_text()
    try:
        if value is not None:
            Path(path).write_text(value)
    except OSError as error:
        raise Impossible(f"{path}: {error.strerror}") from None
    try:
        yield
    finally:
        Path(path).write_text(before)


@contextmanager
def mounted(point: Path, *arguments: object) -> Iterator[Path]:
    point.mkdir(exist_ok=True)
    run("mount", *arguments, point)
    try:
        yield point
    finally:
        run("umount", point)


@contextmanager
def swap_file(folder: Path, megabytes: int) -> Iterator[None]:
    path = folder / "swap"
    run("fallocate", "-l", f"{megabytes}M", path)
    path.chmod(0o600)
    run("mkswap", path)
    run("swapon", path)
    try:
        yield
    finally:
        run("swapoff", path)
        path.unlink()


@contextmanager
def long_link(delay_ms: float, drop_above: int = 0, mtu: int = 9000) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Two network namespaces, 10.99.0.1 and 10.99.0.2, with packets delayed `delay_ms` each way; large ones perhaps lost."""
    with ExitStack() as stack:
        inside = [stack.enter_context(namespace(f"ottla-link-{side}")) for side in (1, 2)]
        command = [PYTHON, "-m", "bench.check_effects", "--relay", str(delay_ms), str(drop_above), str(mtu)]
        relay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert relay.stdout is not None
            if relay.stdout.readline().strip() != "up":
                raise Impossible("no TUN devices here")
            yield inside[0], inside[1]
        finally:
            relay.kill()
            relay.wait()


def relay(delay_s: float, drop_above: int, mtu: int) -> None:
    """Open a TUN device in each of the two namespaces and carry packets between them."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    devices = []
    libc = __import__("ctypes").CDLL(None)
    for side in (1, 2):
        name = f"ottla{side}"
        other = os.open(f"/run/netns/ottla-link-{side}", os.O_RDONLY)
        libc.setns(other, 0x40000000)
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, 0x400454CA, struct.pack("16sH", name.encode(), 0x1001))  # TUNSETIFF, IFF_TUN | IFF_NO_PI
        run("ip", "addr", "add", f"10.99.0.{side}/24", "dev", name)
        run("ip", "link", "set", name, "mtu", mtu, "txqueuelen", 10_000, "up")
        os.close(other)
        devices.append(device)
    libc.setns(own, 0x40000000)
    print("up", flush=True)
    waiting: list[tuple[float, int, int, bytes]] = []
    number = 0
    while True:
        now_s = time.monotonic()
        while waiting and waiting[0][0] <= now_s:
            _, _, target, packet = heapq.heappop(waiting)
            try:
                os.write(target, packet)
            except OSError:
                pass
        wait_s = max(0.0, waiting[0][0] - now_s) if waiting else 1.0
        for source in select.select(devices, [], [], wait_s)[0]:
            for _ in range(64):
                try:
                    packet = os.read(source, 65_536)
                except BlockingIOError:
                    break
                if not drop_above or len(packet) <= drop_above:
                    number += 1
                    target = devices[1 - devices.index(source)]
                    heapq.heappush(waiting, (time.monotonic() + delay_s, number, target, packet))


# -- the effects


def open_files(folder: Path) -> Row:
    def answered(hard: int) -> float:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

        with node(folder / str(hard), setup=limit) as up:
            return probe("storm", up.address, 1000, 8)["answered"]

    return Row("open-files", "hard limit 300", "hard limit 4,096", "of 1,000 clients, answered in 8 s",
               f"{answered(300):,.0f}", f"{answered(4096):,.0f}")  # fmt: skip


def tasks(folder: Path) -> Row:
    def starts(most: int) -> str:
        with cgroup("pids", max=most) as enter, node(folder / str(most), setup=enter) as up:
            if not up.is_up:
                return "does not start"
            probe("latency", up.address, 1)
            return "starts, serves"

    return Row("tasks", "pids.max 2", "pids.max 100", "a node", starts(2), starts(100))


def swapped(folder: Path) -> Row:
    """A node's group is made small for a moment, which swaps the node out; then the next record waits."""

    def first_record(is_swapped: bool) -> tuple[int, float]:
        with cgroup("memory", limit_in_bytes=160 << 20) as enter, node(folder / f"first-{is_swapped}", setup=enter) as up:
            probe("once", up.address, 100, 30)
            if is_swapped:
                for size in (12 << 20, 160 << 20):
                    (enter.folder / "memory.limit_in_bytes").write_text(str(size))  # type: ignore[attr-defined]
            return up.swapped_kb(), probe("once", up.address, 100, 30)["ms"]

    with swap_file(folder, 512):
        (kilo, bad_ms), (_, good_ms) = first_record(True), first_record(False)
    what = "a client's start and first record, ms"
    return Row("swapped", f"{kilo / 1000:.1f} MB of the node", "nothing", what, f"{bad_ms:.0f}", f"{good_ms:.0f}")


def memory_limit(folder: Path) -> Row:
    def outcome(megabytes: int) -> str:
        with cgroup("memory", limit_in_bytes=megabytes << 20) as enter, node(folder / str(megabytes), setup=enter) as up:
            if not up.is_up:
                return "killed at the start"
            try:
                rate = probe("rate", up.address, 200, timeout_s=60)["rate"]
            except (Impossible, subprocess.TimeoutExpired):
                rate = 0.0
            return f"{rate:.0f}" if up.process.poll() is None and rate else "killed by the kernel"

    return Row("memory-limit", "16 MB", "2,000 MB", "produce 200 MB, MB/s", outcome(16), outcome(2000))


def cpu_limit(folder: Path) -> Row:
    def one(quota: int) -> dict[str, float]:
        with cgroup("cpu", cfs_quota_us=quota) as enter, node(folder / f"q{quota}", setup=enter) as up:
            probe("once", up.address, 100, 60)
            command = [PYTHON, "-m", "bench.check_effects", "--probe", "latency", up.address, "60", "0"]
            others = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(3)]
            try:
                return probe("latency", up.address, 6)
            finally:
                for each in others:
                    each.kill()
                    each.wait()

    bad, good = one(10_000), one(-1)
    return Row("cpu-limit", "0.1 CPUs", "no limit", "a record beside three other clients, p50 / p99, ms",
               f"{bad['p50']:.1f} / {bad['p99']:.0f}", f"{good['p50']:.1f} / {good['p99']:.0f}")  # fmt: skip


def pressure(folder: Path) -> Row:
    """Pressure of the disk: programs that write and flush."""

    def created(name: str) -> float:
        with node(folder / name) as up:
            return probe("topics", up.address)["p50"]

    good = created("idle")
    command = ["dd", "if=/dev/zero", "bs=4M", "count=100000", "oflag=dsync", "status=none"]
    writers = [subprocess.Popen([*command, f"of={folder / f'large-{number}'}"]) for number in range(2)]
    try:
        until_s = time.monotonic() + 20
        while time.monotonic() < until_s and _disk_pressure() < 20:  # it is an average: it takes some seconds to rise
            time.sleep(0.5)
        bad = created("busy")
        share = f"work waits for the disk in {_disk_pressure():.0f} %"
    finally:
        for each in writers:
            each.kill()
            each.wait()
    return Row(
        "pressure",
        f"two programs that write and flush: {share}",
        "none",
        "a topic is created, p50, ms",
        f"{bad:.1f}",
        f"{good:.1f}",
    )


def _disk_pressure() -> float:
    found = re.search(r"some avg10=([\d.]+)", Path("/proc/pressure/io").read_text())
    return float(found[1]) if found else 0.0


def free_space(folder: Path) -> Row:
    def sent(megabytes: int) -> str:
        point = folder / f"disk{megabytes}"
        with mounted(point, "-t", "tmpfs", "-o", f"size={megabytes}m", "none"), node(point / "data") as up:
            try:
                probe("rate", up.address, 60, "1000", "delivery.timeout.ms=8000", "request.timeout.ms=4000")
                return "all"
            except Impossible:
                return "the node stops" if up.process.poll() is not None else "refused"

    return Row("free-space", "40 MB left", "400 MB left", "of 60 MB, taken", sent(40), sent(400))


def file_system(folder: Path) -> list[Row]:
    """In memory: what is left after an unmount, as after a reboot. On an overlay: the first append to an old segment."""
    image = folder / "image"
    run("fallocate", "-l", "300M", image)
    run("mkfs.ext4", "-q", image)
    (folder / "m").mkdir(exist_ok=True)

    def left(*mount: object) -> int:
        with mounted(folder / "m", *mount) as point, node(point / "data") as up:
            probe("rate", up.address, 10)
        with mounted(folder / "m", *mount) as point:
            return sum(each.stat().st_size for each in (point / "data").glob("rate-0/*.log")) // 1_000_000

    in_memory, on_disk = left("-t", "tmpfs", "none"), left("-o", "loop", image)
    lower, upper, work = (folder / name for name in ("lower", "upper", "work"))
    for each in (lower, upper, work):
        each.mkdir()

    def first_append(path: Path) -> float:
        begun_s = time.perf_counter()
        with path.open("ab") as file:
            file.write(b"x")
        return (time.perf_counter() - begun_s) * 1000

    run("dd", "if=/dev/urandom", f"of={lower / 'segment'}", "bs=1M", "count=400", "status=none")
    shutil.copy(lower / "segment", folder / "segment")
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    with mounted(folder / "m", "-t", "overlay", "-o", options, "overlay") as point:
        on_overlay = first_append(point / "segment")
    return [
        Row("file-system", "tmpfs", "ext4", "of 10 MB, left after an unmount, MB", str(in_memory), str(on_disk)),
        Row("file-system", "overlay", "ext4", "first append to an old segment of 400 MB, ms", f"{on_overlay:.0f}",
            f"{first_append(folder / 'segment'):.2f}"),
    ]  # fmt: skip


def mount_options(folder: Path) -> Row:
    image = folder / "image"
    run("fallocate", "-l", "300M", image)
    run("mkfs.ext4", "-q", image)

    def flushes(options: str) -> tuple[float, int]:
        with mounted(folder / "m", "-o", options, image) as point:
            before = _flush_count(image)
            p50 = probe("flush", point, 3)["p50"]
            return p50, _flush_count(image) - before

    bad, good = flushes("loop,nobarrier"), flushes("loop,barrier")
    return Row("mount-options", "nobarrier", "barrier", "an fdatasync, ms; it is quicker because it asks the disk for nothing",
               f"{bad[0]:.2f}", f"{good[0]:.2f}")  # fmt: skip


def _flush_count(image: Path) -> int:
    """Flushes that the disk below has done, from /proc/diskstats."""
    device = os.stat(image).st_dev
    for line in Path("/proc/diskstats").read_text().splitlines():
        words = line.split()
        if (int(words[0]), int(words[1])) == (os.major(device), os.minor(device)) and len(words) > 18:
            return int(words[18])
    return 0


def fsync(folder: Path) -> Row:
    """Writes of the node are limited to 20 a second on its disk."""
    device = os.stat(folder).st_dev
    throttle = Path("/sys/fs/cgroup/blkio")
    if not (throttle / "blkio.throttle.write_iops_device").exists() and not throttle.is_dir():
        raise Impossible("there is no control group for block devices")

    def created(limit: int) -> float:
        values = {"throttle.write_iops_device": f"{os.major(device)}:{os.minor(device)} {limit}"}
        with cgroup("blkio", **values) as enter, node(folder / str(limit), setup=enter) as up:
            return probe("topics", up.address)["p50"]

    return Row("fsync", "20 writes a second", "the disk as it is", "a topic is created, p50, ms",
               f"{created(20):.0f}", f"{created(100_000):.0f}")  # fmt: skip


def dirty_pages(folder: Path) -> Row:
    def longest() -> float:
        writer = subprocess.Popen(["dd", "if=/dev/zero", f"of={folder / 'large'}", "bs=1M", "count=2500", "status=none"])
        found = probe("flush", folder, 8)["max"]
        writer.wait()
        (folder / "large").unlink()
        os.sync()
        return found

    bad = longest()
    # A limit in bytes replaces the one in percent, and goes when that is written again.
    with machine_wide("/proc/sys/vm/dirty_background_ratio", None), machine_wide("/proc/sys/vm/dirty_ratio", None):
        Path("/proc/sys/vm/dirty_background_bytes").write_text("16777216")
        Path("/proc/sys/vm/dirty_bytes").write_text("67108864")
        good = longest()
    return Row("dirty-pages", "20 % of 23 GB", "dirty_bytes 64 MB", "longest fdatasync beside a writer of 2.5 GB, ms",
               f"{bad:.0f}", f"{good:.0f}")  # fmt: skip


def user(folder: Path) -> Row:
    python = next((each for each in (PYTHON, "/usr/bin/python3") if _is_for_all(each)), None)
    if python is None:
        raise Impossible("there is no Python that every user may run")
    source = os.pathsep.join(each for each in sys.path if "site-packages" in each or each.endswith("/src"))

    def restart(first: int) -> str:
        data = folder / str(first)
        data.mkdir()
        os.chown(data, 65534, 65534)
        folder.chmod(0o755)

        def become(number: int) -> Callable[[], None]:
            return lambda: os.setuid(number) if number else None

        how = {"python": python, "env": {"PYTHONPATH": source}}
        with node(data, setup=become(first), **how):
            pass
        with node(data, setup=become(65534), **how) as second:
            return "starts" if second.is_up else "refused"

    return Row(
        "user", "once started as root", "always as its own user", "the next start as its own user", restart(0), restart(65534)
    )


def _is_for_all(path: str) -> bool:
    real = Path(path).resolve()
    return real.exists() and all(each.stat().st_mode & 0o001 for each in (real, *real.parents))


def kernels(folder: Path) -> Row:
    def rate(pure: str) -> float:
        with node(folder / f"pure{pure}", env={"OTTLA_PURE": pure}) as up:
            return max(probe("rate", up.address, 150)["rate"] for _ in range(2))

    return Row("python", "pure kernels in the node", "compiled", "produce 1 KB, MB/s", f"{rate('1'):.0f}", f"{rate('0'):.0f}")


def listen_backlog(folder: Path) -> list[Row]:
    def storm(most: int) -> tuple[float, float, int]:
        with namespace(f"ottla-storm-{most}") as inside:
            run(*inside, "sysctl", "-w", f"net.core.somaxconn={most}")
            with node(folder / str(most), "socket.listen.backlog.size=4096", before=inside) as up:
                found = probe("storm", up.address, 3000, 30, before=inside)
            names, values = [each.split() for each in run(*inside, "cat", "/proc/net/netstat").splitlines()[:2]]
            return found["answered"], found["last_s"], int(values[names.index("ListenOverflows")])

    bad, good = storm(16), storm(4096)
    return [
        Row("listen-backlog", "somaxconn 16", "somaxconn 4,096", "3,000 clients connect at once: the last answered after, s",
            f"{bad[1]:.1f}", f"{good[1]:.1f}"),
        Row("listen-overflows", "somaxconn 16", "somaxconn 4,096", "the same: connections dropped",
            f"{bad[2]:,}", f"{good[2]:,}"),
    ]  # fmt: skip


def socket_buffers(folder: Path) -> Row:
    def rate(most: int) -> float:
        with long_link(20) as (here, there):
            with machine_wide("/proc/sys/net/core/rmem_max", str(most)):
                up = Node(folder / str(most), "socket.receive.buffer.bytes=8388608", host="10.99.0.1", before=here)
            try:
                return probe("rate", "10.99.0.1:9092", 40, "1000", "send.buffer.bytes=-1", before=there)["rate"]
            finally:
                up.stop()

    bad, good = rate(212_992), rate(8_388_608)
    return Row("socket-buffers", "rmem_max 208 kB", "rmem_max 8 MB", "produce over 40 ms, receive buffer set to 8 MB, MB/s",
               f"{bad:.1f}", f"{good:.1f}")  # fmt: skip


def advertised_names(folder: Path) -> Row:
    def produced(name: str) -> str:
        with long_link(0) as (here, there):
            listeners = "listeners=PLAINTEXT://0.0.0.0:9092,CONTROLLER://127.0.0.1:0"
            with node(folder / name, listeners, f"advertised.listeners=PLAINTEXT://{name}:9092", before=here):
                found = probe("once", "10.99.0.1:9092", 100, 8, before=there)
            return f"acknowledged after {found['ms']:.0f} ms" if found["ok"] else "never sent"

    return Row(
        "advertised-names",
        "localhost",
        "the node's address",
        "a record from another machine",
        produced("localhost"),
        produced("10.99.0.1"),
    )


def peer_latency(folder: Path) -> Row:
    def p50(delay_ms: float) -> float:
        with long_link(delay_ms) as (here, there), node(folder / str(delay_ms), host="10.99.0.1", before=here):
            return probe("latency", "10.99.0.1:9092", 4, before=there)["p50"]

    return Row(
        "peer-latency", "a round trip of 60 ms", "as short as can be", "one record, p50, ms", f"{p50(30):.1f}", f"{p50(0):.1f}"
    )


def peer_mtu(folder: Path) -> Row:
    def outcome(drop_above: int) -> str:
        with long_link(0, drop_above, 1500) as (here, there), node(folder / str(drop_above), host="10.99.0.1", before=here):
            small = probe("once", "10.99.0.1:9092", 100, 8, before=there)
            large = probe("once", "10.99.0.1:9092", 900_000, 10, before=there)
            texts = (f"{each['ms']:.0f} ms" if each["ok"] else "never" for each in (small, large))
            return " / ".join(texts)

    return Row("peer-mtu", "1,400 on the way, 1,500 at the ends", "1,500 everywhere", "a record of 100 B / 900 kB takes",
               outcome(1400), outcome(0))  # fmt: skip


EFFECTS: dict[str, Callable[[Path], Row | list[Row]]] = {
    "open-files": open_files, "tasks": tasks, "swapped": swapped, "memory-limit": memory_limit, "cpu-limit": cpu_limit,
    "pressure": pressure, "free-space": free_space, "file-system": file_system, "mount-options": mount_options, "fsync": fsync,
    "dirty-pages": dirty_pages, "user": user, "python": kernels, "listen-backlog": listen_backlog,
    "socket-buffers": socket_buffers, "advertised-names": advertised_names, "peer-latency": peer_latency, "peer-mtu": peer_mtu,
}  # fmt: skip


def main() -> None:
    if sys.argv[1:2] == ["--probe"]:
        print(json.dumps(LOADS[sys.argv[2]](*sys.argv[3:])))
        return
    if sys.argv[1:2] == ["--relay"]:
        relay(float(sys.argv[2]) / 1000, int(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which of {', '.join(EFFECTS)}; all if none is named")
    parser.add_argument(
        "--write", type=Path, help="put the table between the marks in this document; rows that were not measured stay"
    )
    given = parser.parse_args()
    if unknown := set(given.names) - EFFECTS.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    if sys.platform != "linux" or os.geteuid() != 0:
        parser.error("namespaces, control groups and mounts need root, on Linux")
    rows: list[Row] = []
    refused: dict[str, str] = {}
    for name in given.names or EFFECTS:
        print(f"{name} …", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="ottla-effects-") as folder:
            try:
                found = EFFECTS[name](Path(folder))
            except (Impossible, subprocess.TimeoutExpired, OSError) as reason:
                refused[name] = str(reason)
                print(f"{name}: not shown: {reason}", file=sys.stderr)
                continue
        rows += found if isinstance(found, list) else [found]
        for row in rows[-2:]:
            print("  ", *row, sep=" | ", file=sys.stderr)
    text = table(rows)
    print(text)
    for name, reason in (refused | NOT_SHOWN).items():
        print(f"not shown: {name}: {reason}")
    if given.write is not None:
        write(given.write, rows)


def table(rows: list[Row]) -> str:
    head = ["| check | bad | good | measured | bad | good |", "|---|---|---|---|---:|---:|"]
    return "\n".join(head + [f"| `{row.check}` | {' | '.join(row[1:])} |" for row in rows])


def write(path: Path, rows: list[Row]) -> None:
    """Replace the rows that were measured in the document's table; others stay."""
    before, _, rest = path.read_text().partition(BEGIN)
    old, _, after = rest.partition(END)
    kept = [line for line in old.splitlines() if line.startswith("| `")]
    new = {row.check for row in rows}
    lines = [line for line in kept if line.split("`")[1] not in new] + table(rows).splitlines()[2:]
    head = table([]).splitlines()
    order = list(EFFECTS)
    checks = {line.split("`")[1] for line in lines}
    places = {check: order.index(check) if check in order else len(order) for check in checks}
    places |= {
        check: places.get(near, 0) for check, near in (("swapped", "swappiness"), ("listen-overflows", "listen-backlog"))
    }
    lines.sort(key=lambda line: places[line.split("`")[1]])
    path.write_text("\n".join([before + BEGIN, *head, *lines, END]) + after)


if __name__ == "__main__":
    main()
