"""Checks of the network: waiting connections, sizes of buffers, and whether clients find the node by its name."""

from __future__ import annotations

from ottla.broker.checks.findings import (
    Check,
    Finding,
    Level,
    Subject,
    fine,
    not_applicable,
    with_sysctls,
)
from ottla.env.system import SystemFacts, Wanted, parse_netstat

BACKLOG_ADVISED = 4096
MANY_CLIENTS = 1_000
KEEPALIVE_S_MAX = 600
PORTS_MIN = 28_000
CONNTRACK_SHARE = 0.8
RESOLVE_MS_MAX = 50.0
LINK_BUFFER_BYTES = 4_000_000
"""A window below it does not fill 1 Gbit/s over 30 ms."""

SOMAXCONN = "/proc/sys/net/core/somaxconn"
SYN_BACKLOG, SYN_COOKIES = "/proc/sys/net/ipv4/tcp_max_syn_backlog", "/proc/sys/net/ipv4/tcp_syncookies"
NETSTAT = "/proc/net/netstat"
RMEM_MAX, WMEM_MAX = "/proc/sys/net/core/rmem_max", "/proc/sys/net/core/wmem_max"
TCP_RMEM, TCP_WMEM = "/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"
KEEPALIVE, PORTS = "/proc/sys/net/ipv4/tcp_keepalive_time", "/proc/sys/net/ipv4/ip_local_port_range"
CONGESTION = "/proc/sys/net/ipv4/tcp_congestion_control"
TRACKED, TRACKED_MAX = "/proc/sys/net/netfilter/nf_conntrack_count", "/proc/sys/net/netfilter/nf_conntrack_max"
MACOS_SOMAXCONN = "kern.ipc.somaxconn"


def look_at_backlog(subject: Subject) -> Finding:
    id, facts = "listen-backlog", subject.facts
    setting = subject.config.socket_listen_backlog_size
    is_macos = facts.platform == "darwin"
    most = int(facts.sysctls.get(MACOS_SOMAXCONN, "128")) if is_macos else facts.number(SOMAXCONN)
    name = MACOS_SOMAXCONN if is_macos else "net.core.somaxconn"
    why = "of clients that reconnect at once after a restart, those beyond it try again seconds later"
    if most < setting:
        what = f"{name} is {most}, below socket.listen.backlog.size={setting}"
        return with_sysctls(Finding(id, Level.WARN, what, str(BACKLOG_ADVISED), why), facts, {name: str(BACKLOG_ADVISED)})
    if setting < MANY_CLIENTS:
        what = f"up to {setting} new connections wait (socket.listen.backlog.size)"
        now = f"set socket.listen.backlog.size={min(most, BACKLOG_ADVISED)} in server.properties, and restart"
        return Finding(id, Level.NOTE, what, f"as many as clients, beyond {MANY_CLIENTS:,} of them", why, now)
    return fine(id, f"up to {min(setting, most):,} new connections wait")


def look_at_syn_backlog(subject: Subject) -> Finding:
    id, facts = "syn-backlog", subject.facts
    size, cookies = facts.number(SYN_BACKLOG), facts.number(SYN_COOKIES)
    if cookies or size >= MANY_CLIENTS:
        return fine(id, f"{size:,} connections may be half open" + (", more with SYN cookies" if cookies else ""))
    why = "without SYN cookies, clients beyond it have to try again"
    found = Finding(id, Level.NOTE, f"{size:,} connections may be half open", str(BACKLOG_ADVISED), why)
    return with_sysctls(found, facts, {"net.ipv4.tcp_max_syn_backlog": str(BACKLOG_ADVISED)})


def look_at_overflows(subject: Subject) -> Finding:
    return overflows(subject.facts, None)


def overflows(facts: SystemFacts, earlier: SystemFacts | None) -> Finding:
    """Connections that no backlog had room for: since the boot, or since `earlier`."""
    id = "listen-overflows"
    count = parse_netstat(facts.text(NETSTAT)).get("TcpExt ListenOverflows", 0)
    if earlier is not None:
        count -= parse_netstat(earlier.text(NETSTAT)).get("TcpExt ListenOverflows", 0)
    since = "since the boot" if earlier is None else "while this looked"
    if count <= 0:
        return fine(id, f"no connection was dropped for a full backlog {since}")
    what = f"{count:,} connections were dropped for a full backlog {since}, of whatever program"
    now = f"set socket.listen.backlog.size={BACKLOG_ADVISED} and net.core.somaxconn as large"
    level = Level.NOTE if earlier is None else Level.WARN
    return Finding(id, level, what, "0", "clients try again after 1, 3, 7 s", now)


def look_at_socket_buffers(subject: Subject) -> list[Finding]:
    id, facts, config = "socket-buffers", subject.facts, subject.config
    found = []
    for name, value, path in (
        ("socket.receive.buffer.bytes", config.socket_receive_buffer_bytes, RMEM_MAX),
        ("replica.socket.receive.buffer.bytes", config.replica_socket_receive_buffer_bytes, RMEM_MAX),
        ("socket.send.buffer.bytes", config.socket_send_buffer_bytes, WMEM_MAX),
    ):
        most = facts.number(path)
        if value > most:
            sysctl = path.removeprefix("/proc/sys/").replace("/", ".")
            why = "the kernel cuts it in silence: over a long link the rate is the buffer by the round trip"
            what = f"{name}={value} is above {sysctl}={most}"
            found.append(with_sysctls(Finding(id, Level.WARN, what, str(value), why), facts, {sysctl: str(value)}))
    if found:
        return found
    for name, path in (("tcp_rmem", TCP_RMEM), ("tcp_wmem", TCP_WMEM)):
        numbers = facts.numbers(path)
        if numbers[-1] < LINK_BUFFER_BYTES:
            what = f"net.ipv4.{name} ends at {numbers[-1]:,} bytes"
            why = "a connection over 30 ms stays below 1 Gbit/s, also with buffers of -1"
            wanted = " ".join(map(str, (*numbers[:-1], 16 << 20)))
            note = Finding(id, Level.NOTE, what, f"{16 << 20:,} for links between sites", why)
            found.append(with_sysctls(note, facts, {f"net.ipv4.{name}": wanted}))
    return found or [fine(id, "socket buffers can be as large as the settings want")]


def look_at_keepalive(subject: Subject) -> Finding:
    id, facts = "keep-alive", subject.facts
    seconds = facts.number(KEEPALIVE)
    if seconds <= KEEPALIVE_S_MAX:
        return fine(id, f"a silent connection is probed after {seconds} s")
    why = "balancers and NAT forget a silent connection earlier, and both ends wait"
    found = Finding(id, Level.NOTE, f"a silent connection is probed after {seconds:,} s", "60 to 300 s", why)
    return with_sysctls(found, facts, {"net.ipv4.tcp_keepalive_time": "300"})


def look_at_ports(subject: Subject) -> Finding:
    id, facts = "port-range", subject.facts
    first, last = (*facts.numbers(PORTS), 0)[:2]
    if last - first + 1 >= PORTS_MIN:
        return fine(id, f"connections from here use the ports {first} to {last}")
    what = f"connections from here have {max(0, last - first + 1):,} ports"
    why = "clients and load tests on this machine run out of them"
    return with_sysctls(
        Finding(id, Level.NOTE, what, "1024 to 65535", why), facts, {"net.ipv4.ip_local_port_range": "1024 65535"}
    )


def look_at_congestion_control(subject: Subject) -> Finding:
    id, facts = "congestion-control", subject.facts
    name = facts.text(CONGESTION).strip()
    if name in ("cubic", "bbr"):
        return fine(id, f"congestion control {name}")
    found = Finding(
        id, Level.NOTE, f"congestion control is {name}", "cubic, or bbr between sites", "others fill long links slowly"
    )
    return with_sysctls(found, facts, {"net.ipv4.tcp_congestion_control": "cubic"})


def look_at_tracking(subject: Subject) -> Finding:
    id, facts = "connection-tracking", subject.facts
    if TRACKED not in facts.files or TRACKED_MAX not in facts.files:
        return fine(id, "connections are not tracked here")
    count, most = facts.number(TRACKED), facts.number(TRACKED_MAX)
    what = f"{count:,} of {most:,} tracked connections"
    if most <= 0 or count <= CONNTRACK_SHARE * most:
        return fine(id, what)
    found = Finding(id, Level.WARN, what, "below 80 %", "above the limit, packets of new connections are dropped in silence")
    return with_sysctls(found, facts, {"net.netfilter.nf_conntrack_max": str(most * 2)})


def look_at_interrupts(subject: Subject) -> Finding:
    return not_applicable(
        "interrupts", "spread of interrupts (RPS, XPS) does not matter", "one loop serves all below 10 Gbit/s"
    )


def look_at_names(subject: Subject) -> list[Finding]:
    id, facts, config, found = "advertised-names", subject.facts, subject.config, []
    listens = {each.name: each.host for each in config.listeners}
    advertised = (*config.advertised_listeners, *config.advertised_controller_listeners)
    for host in dict.fromkeys(each.host for each in advertised):
        name = facts.names.get(host)
        if name is None:
            continue
        now = f"correct advertised.listeners, or add {host} to the DNS or to /etc/hosts"
        own = next(listens.get(each.name, "") for each in advertised if each.host == host)
        if name.problem or not name.addresses:
            why = "clients ask the node for its address, then connect to that: they will not find it"
            what = f"the advertised name {host} cannot be resolved: {name.problem or 'it has no address'}"
            found.append(Finding(id, Level.ERROR, what, "a name that every client knows", why, now))
        elif all(map(_is_loopback, name.addresses)) and not _is_loopback(own) and own != "localhost":
            why = "clients on other machines are sent to themselves"
            what = f"the node listens on all addresses, but advertises {host}, which is {name.addresses[0]} here"
            found.append(Finding(id, Level.WARN, what, "a name that every client knows", why, now))
        elif name.took_ms > RESOLVE_MS_MAX:
            why = "each connection of a client or node waits for it"
            what = f"resolving {host} took {name.took_ms:.0f} ms"
            found.append(
                Finding(id, Level.WARN, what, "below 50 ms", why, "a nearer resolver, or a cache such as systemd-resolved")
            )
        else:
            found.append(fine(id, f"{host} is {', '.join(name.addresses[:3])}"))
    return found


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address in ("::1", "localhost")


CHECKS = (
    Check("listen-backlog", "listen backlog", look_at_backlog,
          Wanted(files=(SOMAXCONN,), sysctls=(MACOS_SOMAXCONN,)), at_start=True, on_macos=True),
    Check("syn-backlog", "half-open connections", look_at_syn_backlog, Wanted(files=(SYN_BACKLOG, SYN_COOKIES))),
    Check("listen-overflows", "dropped connections", look_at_overflows, Wanted(files=(NETSTAT,))),
    Check("socket-buffers", "socket buffers", look_at_socket_buffers,
          Wanted(files=(RMEM_MAX, WMEM_MAX, TCP_RMEM, TCP_WMEM)), at_start=True),
    Check("keep-alive", "keep-alive", look_at_keepalive, Wanted(files=(KEEPALIVE,))),
    Check("port-range", "ports", look_at_ports, Wanted(files=(PORTS,))),
    Check("congestion-control", "congestion control", look_at_congestion_control, Wanted(files=(CONGESTION,))),
    Check("connection-tracking", "connection tracking", look_at_tracking, Wanted(files=(TRACKED, TRACKED_MAX)), at_start=True),
    Check("interrupts", "interrupts", look_at_interrupts),
    Check("advertised-names", "advertised names", look_at_names, on_macos=True),
)  # fmt: skip
