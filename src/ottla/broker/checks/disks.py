"""Checks of the log directories: space, file systems, mount options, devices, and how dirty pages are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ottla.broker.checks.findings import (
    Check,
    Finding,
    Level,
    Subject,
    fine,
    not_applicable,
    on_host,
    size_text,
    unknown,
    with_sysctls,
)
from ottla.broker.checks.resources import MEMINFO
from ottla.env.system import CannotTell, Directory, Disk, Wanted, chosen, kilobytes, parse_fields

FREE_MIN, FREE_ADVISED, FREE_SHARE = 1_000_000_000, 10_000_000_000, 0.15
FREE_INODES_MIN, FREE_INODES_ADVISED = 100, 10_000
READ_AHEAD_KB_MIN = 128
DIRTY_S_MAX = 10
"""Longer than this no writer should wait for dirty pages."""

REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "afs", "virtiofs", "sshfs")
COPIES_ON_WRITE = ("btrfs", "zfs", "bcachefs")
DIRTY = {
    name: f"/proc/sys/vm/{name}" for name in ("dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes")
}
TRIM_TIMER = "/etc/systemd/system/timers.target.wants/fstrim.timer"


def _each(subject: Subject, look: Callable[[Subject, Directory], Finding]) -> list[Finding]:
    """One finding for each log directory; one for all of them if all are fine alike."""
    return [look(subject, each) for each in subject.facts.directories if not each.problem]


def look_at_directories(subject: Subject) -> list[Finding]:
    id, found = "log-directories", []
    for each in subject.facts.directories:
        if each.problem:
            now = f"chown the folder to the node's user, or correct log.dirs={each.path}"
            found.append(Finding(id, Level.ERROR, f"log directory {each.path} cannot be used: {each.problem}", fix_now=now))
        elif each.foreign_file:
            why = "the node may fail to open it: was a node started as another user?"
            now = f"chown -R --reference={each.path} {each.path}"
            found.append(
                Finding(id, Level.WARN, f"{each.foreign_file} belongs to another user than its folder", "one owner", why, now)
            )
        elif each.existing == each.path and each.mode & 0o002:
            why = "anybody on this machine can delete the records"
            what = f"everybody may write to {each.path}"
            found.append(Finding(id, Level.NOTE, what, "mode 750", why, f"chmod 750 {each.path}"))
        else:
            found.append(fine(id, f"{each.path} is usable" + ("" if each.existing == each.path else ", and will be made")))
    return found


def look_at_space(subject: Subject) -> list[Finding]:
    def look(subject: Subject, directory: Directory) -> Finding:
        id, free, total = "free-space", directory.free_bytes, directory.total_bytes
        what = f"{directory.path} has {size_text(free)} of {size_text(total)} free"
        if directory.files > 0 and directory.free_files < FREE_INODES_ADVISED:
            level = Level.ERROR if directory.free_files < FREE_INODES_MIN else Level.WARN
            inodes = f"{directory.path} has {directory.free_files:,} inodes left"
            why = "a segment is up to 8 files; without inodes its directory goes offline"
            return Finding(id, level, inodes, f"{FREE_INODES_ADVISED:,}", why, "remove small files from this file system")
        if free >= FREE_SHARE * total and free >= FREE_MIN:
            return fine(id, what)
        level = Level.ERROR if free < FREE_MIN else Level.WARN
        why = "a full disk takes the directory offline, and a node without one stops"
        now = "ottla log-dirs shows what is large; lower retention.ms or retention.bytes"
        return Finding(id, level, what, f"{FREE_SHARE:.0%} and {size_text(FREE_ADVISED)}", why, now, "a larger disk")

    return _each(subject, look)


def look_at_file_systems(subject: Subject) -> list[Finding]:
    def look(subject: Subject, directory: Directory) -> Finding:
        id, path = "file-system", directory.path
        mount = subject.facts.mount_of(directory.existing)
        if mount is None:
            return unknown(id, f"{path}: /proc/self/mountinfo has no mount of it")
        kind = mount.kind
        elsewhere = f"move log.dirs={path} to a local disk with XFS or ext4"
        if subject.facts.container:
            elsewhere = f"mount a volume at {path}: docker run -v, or a persistent volume claim"
        if kind in ("tmpfs", "ramfs"):
            why = "the records are gone with the next reboot"
            return Finding(id, Level.WARN, f"{path} is in memory ({kind})", "XFS or ext4", why, elsewhere)
        if kind == "overlay":
            why = "the records are gone with the container, and old files are copied whole when first written"
            return Finding(id, Level.WARN, f"{path} is on an overlay file system", "XFS or ext4", why, elsewhere)
        if kind in REMOTE or kind.startswith("fuse"):
            why = "locks, renames and fsync do not hold what Kafka's files need"
            return Finding(id, Level.WARN, f"{path} is on {kind}", "XFS or ext4", why, elsewhere)
        if kind in COPIES_ON_WRITE:
            why = "each write is a new block: indexes fragment, compaction takes twice the space for a while"
            return Finding(id, Level.NOTE, f"{path} is on {kind}", "XFS or ext4", why, elsewhere)
        return fine(id, f"{path} is on {kind}")

    return _each(subject, look)


def look_at_mount_options(subject: Subject) -> list[Finding]:
    def look(subject: Subject, directory: Directory) -> Finding:
        id = "mount-options"
        mount = subject.facts.mount_of(directory.existing)
        if mount is None:
            return unknown(id, f"{directory.path}: /proc/self/mountinfo has no mount of it")
        options, point = set(mount.options), mount.point
        keep = f"the line of {point} in /etc/fstab"

        def finding(level: Level, what: str, wanted: str, why: str, now: str) -> Finding:
            return on_host(Finding(id, level, what, wanted, why, now, keep), subject.facts)

        if {"nobarrier", "barrier=0"} & options:
            why = "fsync returns before the disk has the data: a power loss can damage every log"
            return finding(
                Level.WARN, f"{point} is mounted with nobarrier", "barrier", why, f"mount -o remount,barrier {point}"
            )
        if "data=writeback" in options:
            why = "after a power loss files can hold old blocks; recovery cuts them off, replicas bring them back"
            return finding(Level.NOTE, f"{point} is mounted with data=writeback", "data=ordered", why, f"mount {point} anew")
        if not {"noatime", "relatime"} & options and mount.kind not in ("tmpfs", "overlay"):
            why = "each read writes the time of the read"
            return finding(Level.NOTE, f"{point} is mounted with atime", "noatime", why, f"mount -o remount,noatime {point}")
        return fine(id, f"{point} is mounted with {','.join(sorted({'noatime', 'relatime'} & options)) or 'no atime'}")

    return list(dict.fromkeys(_each(subject, look)))


def look_at_shared_disks(subject: Subject) -> Finding:
    id = "shared-disks"
    devices: dict[int, list[str]] = {}
    usable = [each for each in subject.facts.directories if not each.problem]
    for each in usable:
        devices.setdefault(each.device, []).append(each.path)
    together = next((paths for paths in devices.values() if len(paths) > 1), None)
    if together is None:
        return fine(id, "each log directory has a file system of its own" if len(usable) > 1 else "there is one log directory")
    why = "they fail together and share their speed and space; partitions are spread as if they did not"
    return Finding(
        id, Level.NOTE, f"{' and '.join(together)} are on one file system", "one for each", why, "name only one in log.dirs"
    )


def _disks(subject: Subject) -> list[Disk]:
    found = {disk.name: disk for each in subject.facts.directories for disk in each.disks}
    return [found[name] for name in sorted(found)]


_NO_DISK = "the disk below log.dirs is not known"


def _is_rotational(disk: Disk) -> bool:
    return disk.files.get("queue/rotational", "").strip() == "1"


def look_at_schedulers(subject: Subject) -> list[Finding]:
    id, found = "io-scheduler", []
    if not (disks := _disks(subject)):
        raise CannotTell("the disk below log.dirs is not known: /sys/dev/block has no entry of it")
    for disk in disks:
        now = chosen(disk.files.get("queue/scheduler", "")) or "none"
        good = ("mq-deadline", "bfq", "kyber", "none") if _is_rotational(disk) else ("none", "noop", "mq-deadline", "kyber")
        if now in good:
            found.append(fine(id, f"{disk.name} has the I/O scheduler {now}"))
            continue
        advised = "mq-deadline" if _is_rotational(disk) else "none"
        file = f"/sys/block/{disk.name}/queue/scheduler"
        rule = f'KERNEL=="{disk.name}", ATTR{{queue/scheduler}}="{advised}" in /etc/udev/rules.d/60-ottla.rules'
        why = "a scheduler adds latency to a device that needs none"
        what = f"{disk.name} has the I/O scheduler {now}"
        found.append(on_host(Finding(id, Level.NOTE, what, advised, why, f"echo {advised} > {file}", rule), subject.facts))
    return found


def look_at_read_ahead(subject: Subject) -> list[Finding]:
    id, found = "read-ahead", []
    for disk in _disks(subject):
        text = disk.files.get("queue/read_ahead_kb", "").strip()
        if not text.isdecimal():
            found.append(unknown(id, f"{disk.name}: queue/read_ahead_kb is not there"))
        elif int(text) < READ_AHEAD_KB_MIN:
            why = "consumers that are behind read from the disk in order"
            now = f"echo 1024 > /sys/block/{disk.name}/queue/read_ahead_kb"
            what = f"{disk.name} reads {text} kB ahead"
            found.append(on_host(Finding(id, Level.NOTE, what, "128 to 4096", why, now, "a rule of udev"), subject.facts))
        else:
            found.append(fine(id, f"{disk.name} reads {text} kB ahead"))
    return found or [fine(id, _NO_DISK)]


def look_at_write_cache(subject: Subject) -> list[Finding]:
    id, found = "write-cache", []
    for disk in _disks(subject):
        cache = disk.files.get("queue/write_cache", "").strip() or "unknown"
        kind = "a rotating or a virtual disk" if _is_rotational(disk) else "a solid-state disk"
        found.append(fine(id, f"{disk.name} is {kind}, its write cache is {cache}; --measure says what an fsync takes"))
    return found or [fine(id, _NO_DISK)]


def look_at_merges(subject: Subject) -> Finding:
    return not_applicable("io-merges", "nomerges does not matter", "Ottla writes through the page cache: leave it at 0")


def look_at_trim(subject: Subject) -> list[Finding]:
    id, facts = "trim", subject.facts
    disks = _disks(subject)
    if all(_is_rotational(disk) for disk in disks):
        return [fine(id, "no disk here needs trimming" if disks else _NO_DISK)]
    discard = {
        mount.point for each in facts.directories if (mount := facts.mount_of(each.existing)) and "discard" in mount.options
    }
    if discard:
        point = sorted(discard)[0]
        why = "each deleted segment is trimmed at once, while others write"
        found = Finding(
            id, Level.NOTE, f"{point} is mounted with discard", "a weekly fstrim", why, f"mount -o remount,nodiscard {point}",
            "the line in /etc/fstab, and systemctl enable --now fstrim.timer; not on virtual disks whose host needs discard",
        )  # fmt: skip
        return [on_host(found, facts)]
    if TRIM_TIMER in facts.files:
        return [fine(id, "fstrim.timer is enabled")]
    found = Finding(
        id, Level.NOTE, "nothing trims the solid-state disk", "fstrim once a week", "it may write more slowly with time",
        "fstrim -av", "systemctl enable --now fstrim.timer",
    )  # fmt: skip
    return [on_host(found, facts)]


def dirty_limit_bytes(subject: Subject) -> int:
    """How many bytes may be dirty before writers wait."""
    facts = subject.facts
    in_bytes = facts.number(DIRTY["dirty_bytes"])
    if in_bytes > 0:
        return in_bytes
    memory = kilobytes(parse_fields(facts.text(MEMINFO)), "MemAvailable") or kilobytes(
        parse_fields(facts.text(MEMINFO)), "MemTotal"
    )
    return memory * 1024 * facts.number(DIRTY["dirty_ratio"]) // 100


def look_at_dirty_pages(subject: Subject) -> Finding:
    return dirty_pages(subject, None)


def dirty_pages(subject: Subject, disk_bytes_per_s: float | None) -> Finding:
    """With a measured rate: a warning if writers could wait for longer than `DIRTY_S_MAX`."""
    id, facts = "dirty-pages", subject.facts
    limit = dirty_limit_bytes(subject)
    what = f"{size_text(limit)} may be dirty before writers wait"
    if disk_bytes_per_s is None:
        if limit <= 2_000_000_000:
            return fine(id, what)
        why = "much dirty data makes a flush slow; `ottla check --measure` says how slow here"
        found = Finding(id, Level.NOTE, what, "what the disk writes in 10 s", why)
        return with_sysctls(found, facts, {"vm.dirty_background_bytes": "268435456", "vm.dirty_bytes": "1073741824"})
    seconds = limit / disk_bytes_per_s
    if seconds <= DIRTY_S_MAX:
        return fine(id, f"{what}: {seconds:.1f} s of this disk")
    wanted = int(disk_bytes_per_s * DIRTY_S_MAX)
    why = f"that is {seconds:.0f} s of this disk: a writer at the limit, or a flush, waits that long"
    found = Finding(id, Level.WARN, what, size_text(wanted), why)
    return with_sysctls(found, facts, {"vm.dirty_background_bytes": str(wanted // 4), "vm.dirty_bytes": str(wanted)})


def look_at_aio(subject: Subject) -> Finding:
    return not_applicable("aio", "fs.aio-max-nr does not matter", "Ottla uses threads for the disk, not libaio")


def look_at_scanners(subject: Subject) -> Finding:
    paths = ", ".join(each.path for each in subject.facts.directories)
    return replace(
        not_applicable("scanners", "virus scanners and indexers cannot be seen from here"),
        why=f"if this machine has one, exclude {paths}: it locks files and reads everything",
    )


_DISK = Wanted(disk_files=("queue/scheduler", "queue/rotational", "queue/read_ahead_kb", "queue/write_cache"))

CHECKS = (
    Check("log-directories", "log directories", look_at_directories, Wanted(looks_into=True), at_start=True, on_macos=True),
    Check("free-space", "free space", look_at_space, at_start=True, on_macos=True),
    Check("file-system", "file system", look_at_file_systems, at_start=True),
    Check("mount-options", "mount options", look_at_mount_options, at_start=True),
    Check("shared-disks", "one disk, two directories", look_at_shared_disks, on_macos=True),
    Check("io-scheduler", "I/O scheduler", look_at_schedulers, _DISK),
    Check("io-merges", "merges", look_at_merges),
    Check("read-ahead", "read-ahead", look_at_read_ahead, _DISK),
    Check("write-cache", "write cache", look_at_write_cache, _DISK),
    Check("trim", "trim", look_at_trim, replace(_DISK, files=(TRIM_TIMER,))),
    Check("dirty-pages", "dirty pages", look_at_dirty_pages, Wanted(files=(*DIRTY.values(), MEMINFO))),
    Check("aio", "asynchronous I/O", look_at_aio),
    Check("scanners", "virus scanners", look_at_scanners),
)  # fmt: skip
