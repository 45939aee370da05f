"""Checks of limits, memory and processors: what the process may have, and what others leave of it."""

from __future__ import annotations

import math

from ottla.broker.checks.findings import (
    LIMITS_FILE,
    Check,
    Finding,
    Level,
    Subject,
    fine,
    not_applicable,
    on_host,
    size_text,
    with_sysctls,
)
from ottla.env.system import (
    UNLIMITED,
    CannotTell,
    SystemFacts,
    Wanted,
    chosen,
    kilobytes,
    parse_fields,
    parse_flat,
    parse_limit,
    parse_pressure,
    stolen_share,
    swap_devices,
)

FILES_PER_PARTITION = 3
"""Log, offset index and time index of the active segment."""
CONNECTIONS = 1_000
"""Assumed, unless max.connections is lower."""
OTHER_FILES = 1_024
FILES_ADVISED = 100_000
TASKS_MIN, TASKS_ADVISED = 100, 1_000
SWAPPINESS_MAX = 10
MEMORY_MIN, MEMORY_ADVISED = 64_000_000, 1_000_000_000
THROTTLED_MAX, PERIODS_MIN = 0.01, 100
PRESSURE_MAX = 10.0
STOLEN_MAX = 0.05
GOOD_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "timebase")
KERNEL_MIN = (5, 4)
CLOCK_ERROR_MS_MAX = 100.0

FILE_MAX, FILE_NR, NR_OPEN = "/proc/sys/fs/file-max", "/proc/sys/fs/file-nr", "/proc/sys/fs/nr_open"
SWAPPINESS, SWAPS, OVERCOMMIT = "/proc/sys/vm/swappiness", "/proc/swaps", "/proc/sys/vm/overcommit_memory"
STATUS, MEMINFO, STAT = "/proc/self/status", "/proc/meminfo", "/proc/stat"
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
HUGE_PAGES_DEFRAG = "/sys/kernel/mm/transparent_hugepage/defrag"
CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
GOVERNOR_DRIVER = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"
ZONE_RECLAIM = "/proc/sys/vm/zone_reclaim_mode"
CORE_PATTERN = "/proc/sys/kernel/core_pattern"
RELEASE = "/proc/sys/kernel/osrelease"
PRESSURE = tuple(f"/proc/pressure/{each}" for each in ("cpu", "io", "memory"))


def look_at_open_files(subject: Subject) -> Finding:
    id, facts = "open-files", subject.facts
    hard = facts.limits["nofile"][1]
    connections = min(CONNECTIONS, subject.config.max_connections)
    partitions = sum(each.partitions for each in facts.directories)
    need = FILES_PER_PARTITION * partitions + connections + OTHER_FILES
    enough = max(0, (hard - connections - OTHER_FILES) // FILES_PER_PARTITION)
    if hard == UNLIMITED or hard >= max(need, FILES_ADVISED):
        return fine(id, f"the process may open {'any number of' if hard == UNLIMITED else f'{hard:,}'} files")
    level = Level.ERROR if hard < need else Level.NOTE
    for_good = f"`* - nofile {FILES_ADVISED}` in {LIMITS_FILE}, or LimitNOFILE={FILES_ADVISED} in the unit"
    now = f"ulimit -Hn {FILES_ADVISED}, as root, before the start"
    if facts.container:
        now, for_good = f"start the container with --ulimit nofile={FILES_ADVISED}", "the container's definition"
    if facts.platform == "darwin":
        now, for_good = (
            f"sudo launchctl limit maxfiles {FILES_ADVISED} {FILES_ADVISED}",
            "/Library/LaunchDaemons/limit.maxfiles.plist",
        )
    why = (
        f"this node needs about {need:,}: 3 for each of {partitions:,} partitions, 1 for each connection; without them it "
        "creates no partition and refuses clients"
        if level is Level.ERROR
        else f"enough for {enough:,} partitions with {connections:,} connections"
    )
    return Finding(id, level, f"the process may open {hard:,} files", f"{max(need, FILES_ADVISED):,}", why, now, for_good)


def look_at_system_files(subject: Subject) -> Finding:
    id, facts = "system-files", subject.facts
    (used, _, most) = (*facts.numbers(FILE_NR), 0, 0)[:3]
    most = most or facts.number(FILE_MAX)
    if most <= 0 or used <= 0.8 * most:
        return fine(id, f"{used:,} of {most:,} files of the machine are open")
    why = "when none is left, no process here can open a file or accept a connection"
    found = Finding(id, Level.WARN, f"{used:,} of {most:,} files of the machine are open", "below 80 %", why)
    return with_sysctls(found, facts, {"fs.file-max": str(most * 2)})


def look_at_tasks(subject: Subject) -> Finding:
    id, facts = "tasks", subject.facts
    free: list[tuple[int, str]] = []
    current = {path.rpartition("/")[0]: text for path, text in facts.cgroup.get("pids.current", ())}
    for path, text in facts.cgroup.get("pids.max", ()):
        folder, most = path.rpartition("/")[0], parse_limit(text)
        if most != UNLIMITED and folder in current:
            free.append((most - int(current[folder].strip() or 0), f"pids.max of {folder} is {most:,}"))
    soft, hard = facts.limits["nproc"]
    if soft != UNLIMITED and facts.user != 0:
        free.append((hard if hard != UNLIMITED else soft, f"the limit of processes of this user is {soft:,}"))
    if not free:
        return fine(id, "processes and threads are not limited")
    left, what = min(free)
    if left >= TASKS_ADVISED:
        return fine(id, f"{what}, {left:,} left")
    level = Level.ERROR if left < TASKS_MIN else Level.NOTE
    why = "a node starts threads for the disk and processes for compaction"
    now, for_good = (
        f"ulimit -u {TASKS_ADVISED * 4}",
        f"`* - nproc {TASKS_ADVISED * 4}` in {LIMITS_FILE}, or TasksMax= in the unit",
    )
    if "pids.max" in what:
        now = f"start the container with --pids-limit {TASKS_ADVISED * 4}" if facts.container else "raise TasksMax= of the unit"
        for_good = "the container's definition" if facts.container else "the unit"
    return Finding(id, level, f"{what}, {max(left, 0):,} left", f"{TASKS_ADVISED:,} left", why, now, for_good)


def look_at_memory_maps(subject: Subject) -> Finding:
    return not_applicable(
        "memory-maps", "vm.max_map_count does not matter", "Ottla maps no files; Apache Kafka maps two a segment"
    )


def look_at_swappiness(subject: Subject) -> Finding:
    id, facts = "swappiness", subject.facts
    swaps = swap_devices(facts.text(SWAPS))
    own = [text for _, text in facts.cgroup.get("memory.swappiness", ())][:1]
    value = int(own[0]) if own and own[0].strip().isdecimal() else facts.number(SWAPPINESS)
    if not swaps:
        return fine(id, f"there is no swap (swappiness {value})")
    if value <= SWAPPINESS_MAX:
        return fine(id, f"swappiness is {value}")
    why = "pages of the node are swapped out for file cache; its one loop stands still while they come back"
    return with_sysctls(Finding(id, Level.WARN, f"swappiness is {value}", "1", why), facts, {"vm.swappiness": "1"})


def look_at_swapped(subject: Subject) -> list[Finding]:
    id, facts = "swapped", subject.facts
    nodes = [(f"node process {each.pid}", each.swapped_kb) for each in facts.nodes]
    if not nodes:
        nodes = [("this process", kilobytes(parse_fields(facts.text(STATUS)), "VmSwap"))]
    found = []
    for name, kilo in nodes:
        if kilo == 0:
            found.append(fine(id, f"nothing of {name} is swapped out"))
            continue
        why = "each swapped page stalls the node's loop once more: the machine has too little memory"
        found.append(
            Finding(
                id,
                Level.WARN,
                f"{size_text(kilo * 1024)} of {name} are swapped out",
                "0",
                why,
                "stop what takes the memory, then swapoff -a && swapon -a, or restart the node",
                "more memory, vm.swappiness=1",
            )
        )
    return found


def look_at_huge_pages(subject: Subject) -> Finding:
    id, facts = "huge-pages", subject.facts
    enabled, defrag = chosen(facts.text(HUGE_PAGES)), chosen(facts.text(HUGE_PAGES_DEFRAG))
    if (enabled, defrag) != ("always", "always"):
        return fine(id, f"transparent huge pages: {enabled}, defrag {defrag}")
    why = "an allocation may wait for memory to be compacted; a small heap gains nothing"
    found = Finding(
        id, Level.NOTE, "transparent huge pages are always made, with defrag", "madvise", why,
        f"echo madvise > {HUGE_PAGES_DEFRAG}", "transparent_hugepage=madvise on the kernel's command line",
    )  # fmt: skip
    return on_host(found, facts)


def look_at_overcommit(subject: Subject) -> Finding:
    id, facts = "overcommit", subject.facts
    mode = facts.number(OVERCOMMIT)
    if mode != 2:
        return fine(id, f"overcommit_memory is {mode}")
    why = "starting a helper process can fail with memory to spare"
    return with_sysctls(Finding(id, Level.WARN, "overcommit_memory is 2", "0", why), facts, {"vm.overcommit_memory": "0"})


def look_at_memory_limit(subject: Subject) -> list[Finding]:
    id, facts = "memory-limit", subject.facts
    limits = [
        (parse_limit(text), path)
        for name in ("memory.max", "memory.limit_in_bytes")
        for path, text in facts.cgroup.get(name, ())
        if parse_limit(text) != UNLIMITED
    ]
    events = [parse_flat(text) for _, text in facts.cgroup.get("memory.events", ())[:1]]
    kills = sum(each.get("oom_kill", 0) for each in events)
    kills += sum(parse_flat(text).get("oom_kill", 0) for _, text in facts.cgroup.get("memory.oom_control", ())[:1])
    high = sum(each.get("high", 0) for each in events)
    more = "start the container with more --memory" if facts.container else "raise MemoryMax= of the unit"
    found = []
    why_cache = "the page cache counts too: 30 s of writes should fit, or reads go to the disk"
    if limits and (least := min(limits))[0] < MEMORY_ADVISED:
        level = Level.ERROR if least[0] < MEMORY_MIN else Level.NOTE
        advised = size_text(MEMORY_ADVISED)
        what = f"memory is limited to {size_text(least[0])} by {least[1].rpartition('/')[0]}"
        why = (
            "a node needs some 40 MB of its own, and more with its partitions: it is killed"
            if level is Level.ERROR
            else why_cache
        )
        found.append(Finding(id, level, what, advised, why, more, "the container's definition or the unit"))
    if kills:
        what = f"{kills} process{'es' * (kills != 1)} of this control group {'were' if kills != 1 else 'was'} killed for memory"
        found.append(Finding(id, Level.WARN, what, "0", "the limit is too low for what runs here", more, "the same limit"))
    if high:
        what = f"the group was slowed down {high:,} times at memory.high"
        found.append(
            Finding(id, Level.WARN, what, "0", "the kernel makes the node wait while it frees pages", more, "the same limit")
        )
    if found:
        return found
    if not any(facts.cgroup.get(name) for name in ("memory.max", "memory.limit_in_bytes")):
        return [fine(id, "no control group limits memory")]
    return [fine(id, f"memory is limited to {size_text(min(limits)[0])}" if limits else "memory is not limited")]


def look_at_cpu_limit(subject: Subject) -> list[Finding]:
    id, facts = "cpu-limit", subject.facts
    found = []
    more = "start the container with more --cpus, or without a limit" if facts.container else "raise CPUQuota= of the unit"
    quota = cpu_quota(facts)
    if quota is not None and quota < 1:
        why = "the loop stands still for the rest of each 100 ms when its share is used up"
        found.append(
            Finding(id, Level.WARN, f"processor time is limited to {quota:.2g} CPUs", "1 or more", why, more, "the same limit")
        )
    for _, text in facts.cgroup.get("cpu.stat", ())[:1]:
        counted = parse_flat(text)
        periods, throttled = counted.get("nr_periods", 0), counted.get("nr_throttled", 0)
        if periods >= PERIODS_MIN and throttled > THROTTLED_MAX * periods:
            what = f"this control group was throttled in {throttled / periods:.0%} of its periods"
            why = "each time all its threads stand still for up to 100 ms"
            found.append(Finding(id, Level.WARN, what, "below 1 %", why, more, "the same limit"))
    if found:
        return found
    return [fine(id, "processor time is not limited" if quota is None else f"processor time is limited to {quota:.3g} CPUs")]


def cpu_quota(facts: SystemFacts) -> float | None:
    """The CPUs that control groups grant; None: no limit."""
    quotas = []
    for _, text in facts.cgroup.get("cpu.max", ()):
        words = text.split()
        if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):
            quotas.append(int(words[0]) / int(words[1]))
    periods = {path.rpartition("/")[0]: text for path, text in facts.cgroup.get("cpu.cfs_period_us", ())}
    for path, text in facts.cgroup.get("cpu.cfs_quota_us", ()):
        period = periods.get(path.rpartition("/")[0], "").strip()
        if text.strip().isdecimal() and period.isdecimal() and int(period):
            quotas.append(int(text) / int(period))
    return min(quotas, default=None)


def look_at_cpus(subject: Subject) -> Finding:
    id, facts = "cpus", subject.facts
    quota = cpu_quota(facts)
    usable = min(facts.cpus, math.ceil(quota)) if quota is not None else facts.cpus
    if usable >= 2:
        return fine(id, f"{usable} CPUs are usable")
    why = "compaction and recovery run in helper processes, beside the loop"
    more = (
        "start the container with --cpus 2"
        if facts.container
        else "give the machine or the unit (CPUQuota=, AllowedCPUs=) more"
    )
    return Finding(id, Level.NOTE, "1 CPU is usable", "2", why, more)


def look_at_pressure(subject: Subject) -> list[Finding]:
    id, facts = "pressure", subject.facts
    found, read = [], 0
    for kind, path in zip(("cpu", "io", "memory"), PRESSURE, strict=True):
        own = facts.cgroup.get(f"{kind}.pressure", ())
        text = own[0][1] if own else facts.files.get(path)
        if text is None:
            continue
        read += 1
        share = parse_pressure(text).get("some avg60", 0.0)
        if share >= PRESSURE_MAX:
            where = "of this control group" if own else "on this machine"
            what = f"work {where} waited for {kind} in {share:.0f} % of the last minute"
            why = "the machine is too small for what runs on it, whatever its settings"
            see = {"cpu": "top", "io": "iostat -x 1, iotop", "memory": "free -m, top"}[kind]
            found.append(
                Finding(id, Level.WARN, what, f"below {PRESSURE_MAX:.0f} %", why, f"find what it is: {see}", "move it away")
            )
    if found:
        return found
    if not read:
        raise CannotTell(
            f"{PRESSURE[0]}: {facts.unreadable.get(PRESSURE[0], 'not there')} (psi=1 on the kernel's command line)"
        )
    return [fine(id, "little work waits for CPU, disk or memory")]


def look_at_stolen_time(subject: Subject) -> Finding:
    id = "stolen-time"
    share = stolen_share(subject.facts.text(STAT))
    if share is None:
        raise CannotTell(f"{STAT} has no line of all CPUs")
    text = f"{share:.1%} of processor time was taken by other virtual machines"
    if share <= STOLEN_MAX:
        return fine(id, text)
    why = "the neighbours are busy, or the burst credits of the instance are used up"
    return Finding(id, Level.WARN, text, "below 2 %", why, "move to another instance or type", applies_in_container=False)


def look_at_governor(subject: Subject) -> Finding:
    id, facts = "cpu-governor", subject.facts
    if GOVERNOR not in facts.files:
        return fine(id, "the frequency of the CPUs is not governed from here")
    governor, driver = facts.text(GOVERNOR).strip(), facts.files.get(GOVERNOR_DRIVER, "").strip()
    if governor != "powersave" or driver in ("intel_pstate", "amd-pstate-epp", "amd-pstate"):
        return fine(id, f"CPU governor {governor} ({driver or 'unknown driver'})")
    now = "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    found = Finding(
        id, Level.NOTE, "the CPU governor is powersave", "performance or schedutil", "a loop that mostly waits wakes up late",
        now, "cpupower.service or tuned",
    )  # fmt: skip
    return on_host(found, facts)


def look_at_clocksource(subject: Subject) -> Finding:
    id, facts = "clock-source", subject.facts
    source = facts.text(CLOCKSOURCE).strip()
    if source in GOOD_CLOCKS or source not in ("hpet", "acpi_pm", "xen", "jiffies", "refined-jiffies", "pit"):
        return fine(id, f"clock source {source}")
    why = "each look at the clock becomes a system call, and a node looks at every request"
    found = Finding(
        id, Level.WARN, f"the clock source is {source}", "tsc or kvm-clock", why, f"echo tsc > {CLOCKSOURCE}",
        "clocksource=tsc on the kernel's command line",
    )  # fmt: skip
    return on_host(found, facts)


def look_at_clock(subject: Subject) -> Finding:
    id, facts = "clock", subject.facts
    if facts.clock is None:
        raise CannotTell("adjtimex cannot be asked here")
    why = "timestamps, retention and timeouts of transactions go by it"
    if facts.clock.is_synchronised and facts.clock.error_ms <= CLOCK_ERROR_MS_MAX:
        return fine(id, f"the clock is synchronised, within {facts.clock.error_ms:.3g} ms")
    if facts.clock.is_synchronised:
        what = f"the clock may be wrong by {facts.clock.error_ms:,.0f} ms"
    else:
        what = "nothing keeps this machine's clock in step"
    found = Finding(
        id, Level.WARN, what, f"within {CLOCK_ERROR_MS_MAX:.0f} ms of other nodes", why,
        "timedatectl set-ntp true, or start chronyd", "systemctl enable --now chrony",
    )  # fmt: skip
    return on_host(found, facts)


def look_at_numa(subject: Subject) -> Finding:
    id, facts = "numa", subject.facts
    mode = facts.number(ZONE_RECLAIM)
    if mode == 0:
        return fine(id, "zone_reclaim_mode is 0")
    why = "the page cache gets the memory of one NUMA node only"
    return with_sysctls(Finding(id, Level.WARN, f"zone_reclaim_mode is {mode}", "0", why), facts, {"vm.zone_reclaim_mode": "0"})


def look_at_core_dumps(subject: Subject) -> Finding:
    id, facts = "core-dumps", subject.facts
    pattern, soft = facts.text(CORE_PATTERN).strip(), facts.limits["core"][0]
    if soft == 0 or pattern.startswith(("|", "/")):
        where = "are off" if soft == 0 else f"go to {pattern.split()[0]}"
        return fine(id, f"core dumps {where}")
    return Finding(
        id, Level.NOTE, "a crash writes a core file into the node's working folder", "off, or a folder of its own",
        "if that is the data disk, it fills it", "ulimit -c 0", f"`* - core 0` in {LIMITS_FILE}",
    )  # fmt: skip


def look_at_kernel(subject: Subject) -> Finding:
    id, facts = "kernel", subject.facts
    release = facts.text(RELEASE).strip()
    numbers = [int(part) for part in release.split("-")[0].split(".")[:2] if part.isdecimal()]
    if len(numbers) == 2 and tuple(numbers) < KERNEL_MIN:
        why = "pressure, control groups of version 2 and fixes of sendfile came later"
        found = Finding(id, Level.NOTE, f"the kernel is Linux {release}", "5.4 or newer", why, "a newer release of the system")
        return on_host(found, facts)
    return fine(id, f"Linux {release}")


def look_at_user(subject: Subject) -> Finding:
    id, facts = "user", subject.facts
    if facts.user == 0:
        why = "what it writes, the service's own user cannot open; and a fault in it could do anything"
        now = "start it as a user of its own: sudo -u ottla ottla …"
        if facts.container:
            now = "start the container with --user 1000:0"
        return Finding(id, Level.WARN, "this runs as root", "a user of its own", why, now, "User=ottla in the unit")
    return fine(id, f"this runs as user {facts.user}")


def look_at_python(subject: Subject) -> list[Finding]:
    id, python = "python", subject.facts.python
    if python is None:
        raise CannotTell("the build of this Python was not looked at")
    found = []
    if subject.kernels != "compiled":
        why = "pure Python kernels are several times slower"
        if python.has_compiler:
            now = "pip install --force-reinstall --no-binary ottla ottla, and unset OTTLA_PURE"
            found.append(
                Finding(id, Level.WARN, f"the kernels are {subject.kernels}, though a compiler is here", "compiled", why, now)
            )
        else:
            now = "install a wheel for this platform, or a C compiler, and Ottla again"
            found.append(Finding(id, Level.NOTE, f"the kernels are {subject.kernels}", "compiled", why, now))
    if python.is_debug or python.allocator.endswith("debug"):
        what = "this is a debug build of Python" if python.is_debug else f"PYTHONMALLOC is {python.allocator}"
        found.append(
            Finding(
                id, Level.WARN, what, "a release build", "every allocation is checked", "unset PYTHONMALLOC, or another python"
            )
        )
    elif not python.is_optimised:
        why = "10 to 20 % slower"
        found.append(
            Finding(
                id, Level.NOTE, "this Python was built without optimisation", "--enable-optimizations", why, "another python"
            )
        )
    return found or [fine(id, f"Python {python.version}, {subject.kernels} kernels")]


CHECKS = (
    Check("open-files", "open files", look_at_open_files, Wanted(looks_into=True), at_start=True, on_macos=True),
    Check("system-files", "files of the machine", look_at_system_files, Wanted(files=(FILE_NR, FILE_MAX)), at_start=True),
    Check("tasks", "processes and threads", look_at_tasks, Wanted(cgroup_files=("pids.max", "pids.current")), at_start=True),
    Check("memory-maps", "memory maps", look_at_memory_maps),
    Check("swappiness", "swappiness", look_at_swappiness,
          Wanted(files=(SWAPPINESS, SWAPS), cgroup_files=("memory.swappiness",))),
    Check("swapped", "swapped memory", look_at_swapped, Wanted(files=(STATUS,), nodes=True)),
    Check("huge-pages", "huge pages", look_at_huge_pages, Wanted(files=(HUGE_PAGES, HUGE_PAGES_DEFRAG))),
    Check("overcommit", "overcommit", look_at_overcommit, Wanted(files=(OVERCOMMIT,)), at_start=True),
    Check("memory-limit", "memory limit", look_at_memory_limit,
          Wanted(cgroup_files=("memory.max", "memory.limit_in_bytes", "memory.events", "memory.oom_control")), at_start=True),
    Check("cpu-limit", "processor limit", look_at_cpu_limit,
          Wanted(cgroup_files=("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat")), at_start=True),
    Check("cpus", "processors", look_at_cpus,
          Wanted(cgroup_files=("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")), on_macos=True),
    Check("pressure", "pressure", look_at_pressure,
          Wanted(files=PRESSURE, cgroup_files=("cpu.pressure", "io.pressure", "memory.pressure"))),
    Check("stolen-time", "stolen time", look_at_stolen_time, Wanted(files=(STAT,)), at_start=True),
    Check("cpu-governor", "CPU governor", look_at_governor, Wanted(files=(GOVERNOR, GOVERNOR_DRIVER))),
    Check("clock-source", "clock source", look_at_clocksource, Wanted(files=(CLOCKSOURCE,)), at_start=True),
    Check("clock", "clock in step", look_at_clock, Wanted(clock=True)),
    Check("numa", "NUMA", look_at_numa, Wanted(files=(ZONE_RECLAIM,)), at_start=True),
    Check("core-dumps", "core dumps", look_at_core_dumps, Wanted(files=(CORE_PATTERN,))),
    Check("kernel", "kernel", look_at_kernel, Wanted(files=(RELEASE,))),
    Check("user", "user", look_at_user, on_macos=True),
    Check("python", "Python", look_at_python, Wanted(python=True), on_macos=True),
)  # fmt: skip
