"""The checks of the machine: what a snapshot of bad settings is told, and what a good one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ottla.broker.checks.findings import Finding, Level
from ottla.broker.checks.table import AT_START, CHECKS, run_checks, sysctl_file, wanted_by
from ottla.broker.solo_settings import solo_settings
from ottla.config.broker import BrokerConfig
from ottla.env.system import Clock, Directory, Disk, Mount, Name, Python, RunningNode, SystemFacts

ROOT = Mount("8:1", "/", "/", ("rw", "relatime"), "ext4", "/dev/sda1")
SSD = Disk("sda", {"queue/scheduler": "[none] mq-deadline\n", "queue/rotational": "0\n", "queue/read_ahead_kb": "128\n",
                   "queue/write_cache": "write through\n"})  # fmt: skip
DATA = Directory(
    path="/data", existing="/data", total_bytes=10**12, free_bytes=5 * 10**11, files=10**8, free_files=10**8, device=1,
    owner=1000, mode=0o750, disks=(SSD,),
)  # fmt: skip
FILES = {
    "/proc/sys/fs/file-nr": "1000\t0\t1000000\n",
    "/proc/sys/fs/file-max": "1000000\n",
    "/proc/sys/vm/swappiness": "1\n",
    "/proc/swaps": "Filename Type Size Used Priority\n/swap file 1048572 0 -2\n",
    "/proc/self/status": "Name:\tpython\nVmSwap:\t       0 kB\n",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "/sys/kernel/mm/transparent_hugepage/defrag": "always defer [madvise] never\n",
    "/proc/sys/vm/overcommit_memory": "0\n",
    "/proc/stat": "cpu  1000 0 1000 8000 0 0 0 0 0 0\n",
    "/proc/pressure/cpu": "some avg10=0.00 avg60=0.50 avg300=0.00 total=1\n",
    "/proc/pressure/io": "some avg10=0.00 avg60=0.50 avg300=0.00 total=1\n",
    "/proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "/proc/sys/vm/zone_reclaim_mode": "0\n",
    "/proc/sys/kernel/core_pattern": "core\n",
    "/proc/sys/kernel/osrelease": "6.1.0-13-amd64\n",
    "/proc/sys/vm/dirty_ratio": "20\n",
    "/proc/sys/vm/dirty_background_ratio": "10\n",
    "/proc/sys/vm/dirty_bytes": "0\n",
    "/proc/sys/vm/dirty_background_bytes": "0\n",
    "/proc/meminfo": "MemTotal:  8000000 kB\nMemAvailable:  6000000 kB\n",
    "/proc/sys/net/core/somaxconn": "4096\n",
    "/proc/sys/net/ipv4/tcp_max_syn_backlog": "4096\n",
    "/proc/sys/net/ipv4/tcp_syncookies": "1\n",
    "/proc/net/netstat": "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 0 0\n",
    "/proc/sys/net/core/rmem_max": "16777216\n",
    "/proc/sys/net/core/wmem_max": "16777216\n",
    "/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t16777216\n",
    "/proc/sys/net/ipv4/tcp_wmem": "4096\t16384\t16777216\n",
    "/proc/sys/net/ipv4/tcp_keepalive_time": "300\n",
    "/proc/sys/net/ipv4/ip_local_port_range": "1024\t65535\n",
    "/proc/sys/net/ipv4/tcp_congestion_control": "cubic\n",
    "/etc/systemd/system/timers.target.wants/fstrim.timer": "",
}
GOOD = SystemFacts(
    files=FILES,
    limits={"nofile": (1024, 1_048_576), "nproc": (-1, -1), "core": (0, -1)},
    directories=(DATA,),
    mounts=(ROOT,),
    names={"kafka-1.lan": Name(("10.0.0.5",), 1.0)},
    clock=Clock(True, 2.0),
    python=Python("3.12.1"),
    cpus=4,
)
SETTINGS = solo_settings("127.0.0.1", 9092, "/data") | {
    "listeners": "PLAINTEXT://:9092,CONTROLLER://127.0.0.1:0",
    "advertised.listeners": "PLAINTEXT://kafka-1.lan:9092",
    "socket.listen.backlog.size": "4096",
}


def with_files(**texts: str) -> SystemFacts:
    """The good machine with other texts; `__` in a name stands for a slash and the file is found by its end."""
    files = dict(FILES)
    for name, text in texts.items():
        (path,) = [each for each in files if each.endswith("/" + name.replace("__", "/"))]
        files[path] = text
    return replace(GOOD, files=files)


def check(facts: SystemFacts, kernels: str = "compiled", **settings: str) -> list[Finding]:
    config = BrokerConfig.from_settings(SETTINGS | {name.replace("_", "."): text for name, text in settings.items()})
    return run_checks(CHECKS, facts, config, kernels)


def only(found: list[Finding], id: str) -> Finding:
    (finding,) = [each for each in found if each.id == id]
    return finding


def test_a_good_machine_has_nothing_to_say() -> None:
    found = check(GOOD)
    assert {each.level for each in found} == {Level.FINE, Level.NOT_APPLICABLE}, [
        each for each in found if each.level is not Level.FINE
    ]
    assert {each.id for each in found} == {each.id for each in CHECKS}


def directory(**changes: Any) -> SystemFacts:
    return replace(GOOD, directories=(replace(DATA, **changes),))


def disk(**files: str) -> SystemFacts:
    changed = {**SSD.files, **{name.replace("__", "/"): text for name, text in files.items()}}
    return directory(disks=(Disk("sda", changed),))


def mount(kind: str, *options: str) -> SystemFacts:
    return replace(GOOD, mounts=(ROOT, Mount("0:50", "/", "/data", ("rw", *options), kind, "source")))


def cgroup(**texts: str) -> SystemFacts:
    return replace(
        GOOD,
        cgroup={
            name.replace("__", "."): [(f"/sys/fs/cgroup/x/{name.replace('__', '.')}", text)] for name, text in texts.items()
        },
    )


E, W, N = Level.ERROR, Level.WARN, Level.NOTE
BAD: list[tuple[str, Level, SystemFacts, str, str]] = [
    ("open-files", E, replace(GOOD, limits=GOOD.limits | {"nofile": (256, 1024)}), "may open 1,024 files", "ulimit -Hn"),
    ("open-files", N, replace(GOOD, limits=GOOD.limits | {"nofile": (256, 4096)}), "may open 4,096 files", "ulimit -Hn"),
    ("open-files", E, replace(directory(partitions=9000), limits=GOOD.limits | {"nofile": (256, 20_000)}), "20,000", "ulimit"),
    ("system-files", W, with_files(**{"file-nr": "900 0 1000"}), "900 of 1,000 files", "sysctl -w fs.file-max=2000"),
    ("tasks", E, cgroup(pids__max="60\n", pids__current="50\n"), "10 left", "TasksMax="),
    ("tasks", N, replace(GOOD, limits=GOOD.limits | {"nproc": (500, 500)}), "500 left", "ulimit -u"),
    ("swappiness", W, with_files(swappiness="60\n"), "swappiness is 60", "sysctl -w vm.swappiness=1"),
    ("swappiness", W, replace(GOOD, cgroup={"memory.swappiness": [("/x/memory.swappiness", "80\n")]}), "is 80", "sysctl"),
    ("swapped", W, replace(GOOD, nodes=(RunningNode(7, "ottla node 1", 2000),)), "node process 7 are swapped out", "swapoff"),
    ("huge-pages", N, with_files(transparent_hugepage__enabled="[always] never", defrag="[always] never"), "always", "madvise"),
    ("overcommit", W, with_files(overcommit_memory="2"), "overcommit_memory is 2", "sysctl -w vm.overcommit_memory=0"),
    ("memory-limit", E, cgroup(memory__max="50000000"), "limited to 50 MB", "MemoryMax="),
    ("memory-limit", N, cgroup(memory__limit_in_bytes="500000000"), "limited to 500 MB", "MemoryMax="),
    ("memory-limit", W, cgroup(memory__max="max", memory__events="high 0\noom_kill 2\n"), "2 processes", "MemoryMax="),
    ("memory-limit", W, cgroup(memory__max="max", memory__events="high 9\noom_kill 0\n"), "slowed down 9 times", "MemoryMax="),
    ("cpu-limit", W, cgroup(cpu__max="20000 100000"), "0.2 CPUs", "CPUQuota="),
    ("cpu-limit", W, cgroup(cpu__stat="nr_periods 1000\nnr_throttled 200\n"), "throttled in 20%", "CPUQuota="),
    ("cpus", N, replace(GOOD, cpus=1), "1 CPU", "CPUQuota="),
    ("pressure", W, with_files(pressure__io="some avg10=0 avg60=35.0 avg300=0 total=1"), "for io in 35 %", "iostat"),
    ("stolen-time", W, with_files(stat="cpu 900 0 0 0 0 0 0 100 0 0\n"), "10.0%", "another instance"),
    ("clock-source", W, with_files(current_clocksource="hpet\n"), "clock source is hpet", "echo tsc"),
    ("clock", W, replace(GOOD, clock=Clock(False, 16_000)), "nothing keeps this machine's clock", "timedatectl"),
    ("clock", W, replace(GOOD, clock=Clock(True, 250)), "wrong by 250 ms", "timedatectl"),
    ("numa", W, with_files(zone_reclaim_mode="1"), "zone_reclaim_mode is 1", "sysctl -w vm.zone_reclaim_mode=0"),
    ("core-dumps", N, replace(GOOD, limits=GOOD.limits | {"core": (-1, -1)}), "core file", "ulimit -c 0"),
    ("kernel", N, with_files(osrelease="4.18.0-553.el8"), "4.18.0", "newer"),
    ("user", W, replace(GOOD, user=0), "runs as root", "sudo -u"),
    ("python", W, replace(GOOD, python=Python("3.12.1", allocator="debug")), "PYTHONMALLOC is debug", "unset"),
    ("python", N, replace(GOOD, python=Python("3.12.1", is_optimised=False)), "without optimisation", "python"),
    ("log-directories", E, directory(problem="user 5 may not write to /data"), "may not write", "log.dirs"),
    ("log-directories", W, directory(foreign_file="/data/t-0"), "/data/t-0 belongs to another", "chown -R"),
    ("log-directories", N, directory(mode=0o777), "everybody may write", "chmod 750 /data"),
    ("free-space", E, directory(free_bytes=9 * 10**8), "900 MB of 1 TB free", "log-dirs"),
    ("free-space", W, directory(free_bytes=10**11), "100 GB of 1 TB free", "retention"),
    ("free-space", E, directory(free_files=50), "50 inodes left", "small files"),
    ("file-system", W, mount("tmpfs", "relatime"), "in memory (tmpfs)", "move log.dirs"),
    ("file-system", W, mount("overlay", "relatime"), "on an overlay", "move log.dirs"),
    ("file-system", W, mount("nfs4", "relatime"), "on nfs4", "move log.dirs"),
    ("file-system", W, mount("fuse.sshfs", "relatime"), "on fuse.sshfs", "move log.dirs"),
    ("file-system", N, mount("btrfs", "relatime"), "on btrfs", "move log.dirs"),
    ("mount-options", W, mount("ext4", "relatime", "nobarrier"), "with nobarrier", "mount -o remount,barrier /data"),
    ("mount-options", N, mount("ext4", "relatime", "data=writeback"), "data=writeback", "mount /data"),
    ("mount-options", N, mount("ext4"), "with atime", "mount -o remount,noatime /data"),
    ("shared-disks", N, replace(GOOD, directories=(DATA, replace(DATA, path="/more"))), "/data and /more", "log.dirs"),
    ("io-scheduler", N, disk(queue__scheduler="[bfq] none"), "the I/O scheduler bfq", "echo none > /sys/block/sda"),
    ("read-ahead", N, disk(queue__read_ahead_kb="16"), "16 kB ahead", "echo 1024"),
    ("trim", N, mount("ext4", "relatime", "discard"),
     "with discard", "nodiscard"),
    ("dirty-pages", N, with_files(dirty_ratio="80"), "may be dirty", "vm.dirty_bytes"),
    ("listen-backlog", W, with_files(somaxconn="128"), "somaxconn is 128", "sysctl -w net.core.somaxconn=4096"),
    ("syn-backlog", N, with_files(tcp_max_syn_backlog="128", tcp_syncookies="0"), "128 connections", "syn_backlog=4096"),
    ("listen-overflows", N, with_files(netstat="TcpExt: ListenOverflows\nTcpExt: 77\n"), "77 connections", "backlog.size"),
    ("socket-buffers", N, with_files(tcp_rmem="4096 131072 1000000"), "tcp_rmem ends at 1,000,000", "'4096 131072 16777216'"),
    ("keep-alive", N, with_files(tcp_keepalive_time="7200"), "7,200 s", "tcp_keepalive_time=300"),
    ("port-range", N, with_files(ip_local_port_range="32768 33000"), "233 ports", "'1024 65535'"),
    ("congestion-control", N, with_files(tcp_congestion_control="reno"), "is reno", "cubic"),
    ("advertised-names", E, replace(GOOD, names={"kafka-1.lan": Name((), 3, "name or service not known")}), "cannot be", "DNS"),
    ("advertised-names", W, replace(GOOD, names={"kafka-1.lan": Name(("127.0.1.1",), 1)}), "is 127.0.1.1 here", "DNS"),
    ("advertised-names", W, replace(GOOD, names={"kafka-1.lan": Name(("10.0.0.5",), 900)}), "took 900 ms", "resolver"),
]  # fmt: skip


@pytest.mark.parametrize(("id", "level", "facts", "says", "fix"), BAD, ids=[f"{row[0]}-{row[1].value}-{row[3]}" for row in BAD])
def test_a_bad_setting_is_found_with_its_fix(id: str, level: Level, facts: SystemFacts, says: str, fix: str) -> None:
    found = [each for each in check(facts) if each.id == id and each.level is level]
    assert found, [each for each in check(facts) if each.id == id]
    assert says in found[0].current
    assert fix in found[0].fix_now
    assert "\n" not in found[0].sentence
    others = {each.id for each in check(facts) if each.level in (Level.ERROR, Level.WARN)} - {id}
    assert not others - {"cpu-limit", "pressure"}, "one bad setting is one finding"


def test_every_check_that_can_warn_has_a_bad_row() -> None:
    silent = {"memory-maps", "io-merges", "aio", "scanners", "interrupts", "cpu-governor", "write-cache", "connection-tracking"}
    assert {each.id for each in CHECKS} - {row[0] for row in BAD} == silent


def test_settings_of_the_node_count() -> None:
    assert only(check(GOOD, socket_listen_backlog_size="50"), "listen-backlog").level is Level.NOTE
    assert only(check(GOOD, socket_listen_backlog_size="5000"), "listen-backlog").level is Level.WARN
    too_large = only(check(GOOD, socket_receive_buffer_bytes="20000000"), "socket-buffers")
    assert (too_large.level, too_large.sysctls) == (Level.WARN, (("net.core.rmem_max", "20000000"),))


def test_pure_kernels_are_worse_with_a_compiler() -> None:
    assert only(check(GOOD, "pure Python"), "python").level is Level.NOTE
    with_compiler = replace(GOOD, python=Python("3.12.1", has_compiler=True))
    assert only(check(with_compiler, "pure Python"), "python").level is Level.WARN


def test_connection_tracking_and_governor_only_where_there_are_any() -> None:
    more = {
        "/proc/sys/net/netfilter/nf_conntrack_count": "90",
        "/proc/sys/net/netfilter/nf_conntrack_max": "100",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "acpi-cpufreq",
    }
    found = check(replace(GOOD, files=FILES | more))
    assert only(found, "connection-tracking").level is Level.WARN
    assert only(found, "cpu-governor").level is Level.NOTE
    more["/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"] = "intel_pstate"
    assert only(check(replace(GOOD, files=FILES | more)), "cpu-governor").level is Level.FINE


READ_ONLY = Mount("0:5", "/sys", "/proc/sys", ("ro", "nosuid"), "proc", "proc")


def in_container(facts: SystemFacts) -> SystemFacts:
    return replace(facts, container="Docker", mounts=(*facts.mounts, READ_ONLY))


def test_in_a_container_the_hosts_settings_are_the_hosts() -> None:
    found = only(check(in_container(with_files(swappiness="60"))), "swappiness")
    assert found.fix_now == "ask the host's owner: sysctl -w vm.swappiness=1 on the host"
    assert not found.applies_in_container


def test_in_a_container_the_networks_settings_are_its_own() -> None:
    found = only(check(in_container(with_files(somaxconn="128"))), "listen-backlog")
    assert found.fix_now == "start the container with --sysctl net.core.somaxconn=4096"
    assert "securityContext.sysctls" in found.fix_for_good
    assert found.applies_in_container


def test_the_maximum_of_buffers_is_the_hosts_too() -> None:
    found = only(check(in_container(GOOD), socket_receive_buffer_bytes="20000000"), "socket-buffers")
    assert not found.applies_in_container
    assert found.fix_now.startswith("ask the host's owner")


@pytest.mark.parametrize(
    "facts", [in_container(each[2]) for each in BAD if each[0] in ("open-files", "user", "cpu-limit", "memory-limit")]
)
def test_in_a_container_limits_are_flags_of_its_start(facts: SystemFacts) -> None:
    fixes = [each.fix_now for each in check(facts) if each.level in (Level.ERROR, Level.WARN, Level.NOTE)]
    assert fixes
    assert all("container" in fix for fix in fixes), fixes


def test_what_cannot_be_read_is_said_with_the_reason() -> None:
    files = {path: text for path, text in FILES.items() if "swap" not in path}
    hidden = replace(GOOD, files=files, unreadable={"/proc/swaps": "permission denied"})
    found = only(check(hidden), "swappiness")
    assert (found.level, found.current) == (Level.UNKNOWN, "swappiness: /proc/swaps: permission denied")


@pytest.mark.parametrize("text", ["", "\n", "x", "1 x", "-", "99999999999999999999999", "\x00\xff", "[", "1:2:3", " "])
def test_odd_texts_never_stop_a_check(text: str) -> None:
    facts = replace(
        GOOD,
        files=dict.fromkeys(FILES, text),
        cgroup={name: [(f"/c/{name}", text)] for name in wanted_by(CHECKS, BrokerConfig.from_settings(SETTINGS)).cgroup_files},
        directories=(replace(DATA, disks=(Disk("sda", dict.fromkeys(SSD.files, text)),)),),
    )
    assert {each.id for each in check(facts)} == {each.id for each in CHECKS}


def test_on_macos_only_what_it_has_is_checked() -> None:
    mac = replace(GOOD, platform="darwin", files={}, mounts=(), sysctls={"kern.ipc.somaxconn": "128"},
                  limits=GOOD.limits | {"nofile": (256, 10_240)})  # fmt: skip
    found = check(mac)
    assert only(found, "listen-backlog").level is Level.WARN
    assert "kern.ipc.somaxconn" in only(found, "listen-backlog").fix_now
    assert "launchctl limit maxfiles" in only(found, "open-files").fix_now
    assert only(found, "swappiness").current == "swappiness: not applicable on darwin"
    assert Level.UNKNOWN not in {each.level for each in found}


def test_the_worst_comes_first() -> None:
    facts = replace(with_files(swappiness="60", tcp_keepalive_time="7200"), limits=GOOD.limits | {"nofile": (10, 10)})
    levels = [each.level for each in check(facts)]
    assert levels[:3] == [Level.ERROR, Level.WARN, Level.NOTE]


def test_the_file_of_sysctls_has_what_is_advised_only() -> None:
    text = sysctl_file(check(with_files(swappiness="60", tcp_rmem="4096 131072 1000000")))
    settings = [line for line in text.splitlines() if not line.startswith("#")]
    assert settings == ["vm.swappiness = 1", "net.ipv4.tcp_rmem = 4096 131072 16777216"]
    assert sysctl_file(check(GOOD)) == ""


def test_a_start_asks_neither_names_nor_other_programs() -> None:
    wanted = wanted_by(AT_START, BrokerConfig.from_settings(SETTINGS))
    assert (wanted.names, wanted.nodes, wanted.clock, wanted.python) == ((), False, False, False)
    assert not any("*" in each for each in wanted.files)
