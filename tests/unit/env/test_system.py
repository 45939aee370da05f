"""Facts about the machine: the formats of /proc and /sys, and the reader over a folder that stands for them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.env.real.system import RealSystem
from ottla.env.system import (
    UNLIMITED,
    CannotTell,
    Mount,
    SystemFacts,
    Wanted,
    cgroup_folders,
    chosen,
    kilobytes,
    parse_fields,
    parse_flat,
    parse_limit,
    parse_mounts,
    parse_netstat,
    parse_pressure,
    stolen_share,
    swap_devices,
)

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here")

WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=",\\:()-#"), min_size=1, max_size=12)
PATHS = st.lists(
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8), max_size=4
).map(lambda parts: "/" + "/".join(parts))


def octal(path: str) -> str:
    """As the kernel writes a path."""
    return "".join(f"\\{ord(each):03o}" if each in " \t\n\\#" else each for each in path)


@given(st.lists(st.tuples(PATHS, st.lists(WORDS, min_size=1, max_size=4), WORDS, st.integers(0, 3)), max_size=5))
def test_mounts_are_read_back(rows: list[tuple[str, list[str], str, int]]) -> None:
    lines = [
        f"{number} 1 8:{number} / {octal(point)} {','.join(options)} {'shared:1 ' * tags}- {kind} /dev/x rw"
        for number, (point, options, kind, tags) in enumerate(rows)
        if "\r" not in point and point.isprintable()
    ]
    kept = [row for row in rows if "\r" not in row[0] and row[0].isprintable()]
    found = parse_mounts("\n".join(lines))
    assert [(each.point, each.options, each.kind) for each in found] == [
        (point, (*options, "rw"), kind) for point, options, kind, _ in kept
    ]


PARSERS = [
    parse_mounts, parse_flat, parse_limit, parse_pressure, parse_netstat, parse_fields, chosen, stolen_share, swap_devices,
    lambda text: cgroup_folders(text, parse_mounts(text)), lambda text: kilobytes(parse_fields(text), "VmSwap"),
]  # fmt: skip


@given(st.text(max_size=200))
def test_no_text_stops_a_parser(text: str) -> None:
    for parse in PARSERS:
        parse(text)


@given(st.dictionaries(WORDS, st.integers(0, 2**63), max_size=6))
def test_flat_files_are_read_back(values: dict[str, int]) -> None:
    assert parse_flat("".join(f"{name} {value}\n" for name, value in values.items())) == values


@given(st.lists(st.tuples(WORDS, st.integers(-5, 2**63)), max_size=6, unique_by=lambda each: each[0]))
def test_netstat_is_read_back(values: list[tuple[str, int]]) -> None:
    names, numbers = " ".join(name for name, _ in values), " ".join(str(value) for _, value in values)
    text = f"TcpExt: {names}\nTcpExt: {numbers}\nIpExt: InNoRoutes\nIpExt: 5\n"
    assert parse_netstat(text) == {f"TcpExt {name}": value for name, value in values} | {"IpExt InNoRoutes": 5}


@pytest.mark.parametrize(
    ("text", "limit"), [("max\n", UNLIMITED), ("1048576\n", 1 << 20), ("9223372036854771712", UNLIMITED), ("", UNLIMITED)]
)
def test_limits_of_control_groups(text: str, limit: int) -> None:
    assert parse_limit(text) == limit


def test_pressure() -> None:
    text = "some avg10=1.50 avg60=0.25 avg300=0.00 total=9\nfull avg10=0.00 avg60=0.10 avg300=0.00 total=1\n"
    assert parse_pressure(text)["some avg60"] == 0.25
    assert parse_pressure(text)["full avg60"] == 0.1


def test_stolen_time_is_the_eighth_number() -> None:
    assert stolen_share("cpu  40 0 20 30 0 0 0 10 99 99\ncpu0 1 1 1 1 1 1 1 1\n") == 0.1


@pytest.mark.parametrize(("text", "word"), [("always [madvise] never", "madvise"), ("none", "none"), ("a b", "")])
def test_chosen_words(text: str, word: str) -> None:
    assert chosen(text) == word


V2 = Mount("0:30", "/", "/sys/fs/cgroup", ("rw",), "cgroup2", "cgroup2")
V1 = Mount("0:31", "/docker/x", "/sys/fs/cgroup/memory", ("rw", "memory"), "cgroup", "cgroup")


def test_groups_above_count_too() -> None:
    assert cgroup_folders("0::/a/b\n", [V2]) == ("/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup")


def test_in_a_container_the_mount_is_the_group() -> None:
    assert cgroup_folders("4:memory:/docker/x\n", [V1]) == ("/sys/fs/cgroup/memory",)
    assert cgroup_folders("4:memory:/docker/x/y\n", [V1]) == ("/sys/fs/cgroup/memory/y", "/sys/fs/cgroup/memory")
    assert cgroup_folders("4:memory:/elsewhere\n", [V1]) == ("/sys/fs/cgroup/memory",)
    assert cgroup_folders("0::/../../x\n", [V2])[0] == "/sys/fs/cgroup/x"


def test_the_longest_mount_point_wins_and_of_equals_the_last() -> None:
    mounts = parse_mounts(
        "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /data rw - xfs /dev/b rw\n3 1 8:3 / /data rw - ext4 /dev/c rw\n"
    )
    facts = SystemFacts(mounts=mounts)
    sources = [facts.mount_of(path) for path in ("/data/x", "/data", "/database")]
    assert [each.source for each in sources if each] == ["/dev/c", "/dev/c", "/dev/a"]


def lay_out(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


MOUNTINFO = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


@linux_only
def test_a_folder_can_stand_for_a_machine(tmp_path: Path) -> None:
    lay_out(tmp_path, {
        "/proc/self/mountinfo": MOUNTINFO,
        "/proc/self/cgroup": "0::/service/ottla\n",
        "/sys/fs/cgroup/service/ottla/memory.max": "max\n",
        "/sys/fs/cgroup/service/memory.max": "1000000\n",
        "/proc/sys/vm/swappiness": "60\n",
        "/proc/12/status": "Name:\tottla node 1\nVmSwap:\t     512 kB\n",
        "/proc/13/status": "Name:\tbash\nVmSwap:\t     512 kB\n",
    })  # fmt: skip
    wanted = Wanted(files=("/proc/sys/vm/swappiness", "/proc/sys/vm/nothing"), cgroup_files=("memory.max",), nodes=True)
    facts = RealSystem(str(tmp_path)).read(wanted)
    assert facts.number("/proc/sys/vm/swappiness") == 60
    assert [path for path, _ in facts.cgroup["memory.max"]] == [
        "/sys/fs/cgroup/service/ottla/memory.max",
        "/sys/fs/cgroup/service/memory.max",
    ]
    assert [(each.pid, each.swapped_kb) for each in facts.nodes] == [(12, 512)]
    with pytest.raises(CannotTell, match="/proc/sys/vm/nothing: no such file or directory"):
        facts.text("/proc/sys/vm/nothing")


@linux_only
def test_the_disks_below_a_directory(tmp_path: Path) -> None:
    """A partition leads to its disk, a volume to the disks of its parts."""
    data = tmp_path / "data"
    data.mkdir()
    device = data.stat().st_dev
    root = tmp_path / "root"
    blocks = root / "sys/devices"
    lay_out(root, {
        "/proc/self/mountinfo": MOUNTINFO,
        "/sys/devices/sda/queue/scheduler": "[none]\n",
        "/sys/devices/sda/sda1/partition": "1\n",
        "/sys/devices/sdb/queue/scheduler": "[bfq]\n",
        "/sys/devices/dm-0/queue/scheduler": "none\n",
    })  # fmt: skip
    (blocks / "dm-0/slaves").mkdir()
    (blocks / "dm-0/slaves/sda1").symlink_to(blocks / "sda/sda1")
    (blocks / "dm-0/slaves/sdb").symlink_to(blocks / "sdb")
    (root / "sys/dev/block").mkdir(parents=True)
    (root / f"sys/dev/block/{os.major(device)}:{os.minor(device)}").symlink_to(blocks / "dm-0")
    facts = RealSystem(str(root)).read(Wanted(directories=(str(data),), disk_files=("queue/scheduler",)))
    assert [(each.name, each.files) for each in facts.directories[0].disks] == [
        ("sda", {"queue/scheduler": "[none]\n"}),
        ("sdb", {"queue/scheduler": "[bfq]\n"}),
    ]


CONTAINERS = [
    ({"/.dockerenv": ""}, "1 0 0:50 / / rw - overlay overlay rw", "Docker"),
    ({"/run/.containerenv": ""}, "1 0 0:50 / / rw - overlay overlay rw", "Podman"),
    ({}, "1 0 0:50 / / rw - overlay overlay rw\n2 1 8:1 /x /etc/hostname rw - ext4 /dev/a rw", "a container"),
    ({"/proc/1/cgroup": "0::/kubepods/burstable/pod1\n"}, "1 0 0:50 / / rw - overlay overlay rw", "kubepods"),
    ({}, "1 0 8:1 / / rw - ext4 /dev/sda1 rw", ""),
    ({"/.dockerenv": ""}, "1 0 254:0 / / rw - ext4 /dev/vda rw", ""),  # a virtual machine that was made from an image
    ({}, "1 0 0:50 / / rw - overlay live rw", ""),
]


@linux_only
@pytest.mark.parametrize(("files", "mountinfo", "container"), CONTAINERS)
def test_containers_are_recognised(tmp_path: Path, files: dict[str, str], mountinfo: str, container: str) -> None:
    lay_out(tmp_path, files | {"/proc/self/mountinfo": mountinfo})
    assert RealSystem(str(tmp_path)).read(Wanted()).container == container


def test_directories_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "data/orders-0").mkdir(parents=True)
    paths = ("data", "data/new/deep", "file", "file/below")
    found = RealSystem().read(Wanted(directories=tuple(f"{tmp_path}/{each}" for each in paths), looks_into=True)).directories
    assert [each.problem.removeprefix(f"{tmp_path}/") for each in found[:3]] == ["", "", "file is a file, not a folder"]
    assert found[3].problem
    assert (found[0].partitions, found[1].existing) == (1, f"{tmp_path}/data")
    assert found[0].total_bytes >= found[0].free_bytes > 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_rights(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    (directory,) = RealSystem().read(Wanted(directories=(str(tmp_path),))).directories
    assert "may not write" in directory.problem


@linux_only
def test_this_machine() -> None:
    wanted = Wanted(files=("/proc/sys/kernel/osrelease",), names=("localhost", "nobody.invalid"), clock=True, python=True)
    facts = RealSystem().read(wanted)
    assert facts.text("/proc/sys/kernel/osrelease").strip() == os.uname().release
    assert facts.names["localhost"].addresses
    assert facts.names["nobody.invalid"].problem
    assert facts.clock is not None
    assert facts.clock.error_ms >= 0
    assert facts.python is not None
    assert facts.python.version == ".".join(map(str, sys.version_info[:3]))
    assert facts.cpus >= 1
