"""`ottla check --peer` and `--listen`: the way between two machines: latency, MTU, clocks.

To a broker, latency is the time of ApiVersions requests; a broker tells neither its time nor takes large messages without a
login, so for those `ottla check --listen` runs on the other machine. Its protocol: it sends the greeting at once, which no
broker does, then answers lines. `time N` is answered by `N RECEIVED SENT`, in nanoseconds of its clock; `echo BYTES`, and so
many bytes, by as many bytes.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import time
from typing import NamedTuple

from ottla.broker.checks.findings import Finding, Level, fine, size_text, unknown
from ottla.broker.checks.table import in_order
from ottla.cli.check.command import CannotCheck
from ottla.cli.common.output import say
from ottla.errors import KafkaError

GREETING = b"ottla-check 1\n"
TRIES = 50
CONNECT_S, ANSWER_S, LARGE_S = 5.0, 5.0, 8.0
LARGE_BYTES = 1 << 20
ECHO_BYTES_MAX = 1 << 22
LINE_MAX = 64
IDLE_S = 60.0
LATENCY_MS_MAX = 30.0
CLOCK_MS_MAX = 100.0
JUMBO_MTU, HEADERS_MAX = 9216, 100
"""Loopback has more; IP and TCP with their options have less."""
_IP_MTU, _IPV6_MTU = 14, 24
_TCP_INFO_PMTU = 60
"""Where `struct tcp_info` has the path's MTU: 8 bytes of flags, then 32-bit numbers."""


class Sizes(NamedTuple):
    """How large packets may be; None: not known."""

    path_mtu: int | None = None
    own_mtu: int | None = None
    """Of the interface here."""
    segment: int | None = None
    """The largest segment that both ends have agreed on."""


class Way(NamedTuple):
    """What was measured."""

    latency_ms: tuple[float, ...]
    """Sorted."""
    clock_ms: float | None = None
    """How much the other clock is ahead; None: the other side does not tell."""
    clock_error_ms: float = 0.0
    sizes: Sizes = Sizes()
    large_bytes_per_s: float | None = None
    large_problem: str = ""


# -- the side that listens


def serve_echo(host: str, port: int) -> None:
    """Answer peers until Ctrl-C."""
    try:
        asyncio.run(_serve(host, port))
    except OSError as error:
        raise CannotCheck(f"cannot listen on {host or 'any address'}, port {port}: {error.strerror or error}") from None


async def _serve(host: str, port: int) -> None:
    server = await asyncio.start_server(_answer, host or None, port, limit=LINE_MAX)
    name = socket.gethostname()
    say(f"Listening on {host or 'all addresses'}, port {port}. On the other machine: ottla check --peer {host or name}:{port}")
    async with server:
        await server.serve_forever()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One peer. What is not understood ends its connection."""
    try:
        writer.write(GREETING)
        while line := await asyncio.wait_for(reader.readline(), IDLE_S):
            received_ns = time.time_ns()
            word, _, value = line.decode("ascii", "replace").strip().partition(" ")
            if word == "time" and value.isdecimal():
                writer.write(f"{value} {received_ns} {time.time_ns()}\n".encode())
            elif word == "echo" and value.isdecimal() and int(value) <= ECHO_BYTES_MAX:
                writer.write(await asyncio.wait_for(reader.readexactly(int(value)), IDLE_S))
            else:
                break
            await asyncio.wait_for(writer.drain(), IDLE_S)
    except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


# -- the side that measures


def look_at_peer(host: str, port: int, command_config: str | None) -> list[Finding]:
    """Measure the way to a listening `ottla check`, or to a broker."""
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        begun_s = time.perf_counter()
        connection = socket.create_connection((host, port), CONNECT_S)
        connected_s = time.perf_counter() - begun_s
    except OSError as error:
        why = "clients and nodes there and here cannot reach each other: a wrong name, a firewall, or nothing that listens"
        reason = "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
        now = f"on {host}: ottla check --listen {port}; then look at the firewall and the name"
        return [Finding("peer", Level.ERROR, f"{where} cannot be reached from here: {reason}", "", why, now)]
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(3 * connected_s + 0.3)  # a listening `ottla check` speaks first
        greeting = _received(connection, len(GREETING))
        if greeting == GREETING:
            connection.settimeout(ANSWER_S)
            return judge(where, _ask_echo(connection))
        sizes = _sizes(connection)
    if greeting:
        raise CannotCheck(
            f"what listens at {where} is neither `ottla check --listen` nor a broker: name another port with --peer"
        )
    return judge(where, Way(_ask_broker(where, command_config), sizes=sizes))


def _received(connection: socket.socket, count: int) -> bytes:
    """`count` bytes, or fewer if no more come in time."""
    parts = b""
    try:
        while len(parts) < count and (data := connection.recv(count - len(parts))):
            parts += data
    except OSError:
        pass
    return parts


def _ask_broker(where: str, command_config: str | None) -> tuple[float, ...]:
    from ottla.cli.common.connection import with_cluster
    from ottla.cli.common.settings import build_settings, read_properties
    from ottla.client.api_versions import round_trips_ms

    settings = build_settings(where, read_properties(command_config) if command_config else {})
    try:
        return tuple(sorted(with_cluster(settings, lambda cluster: round_trips_ms(cluster, TRIES))))
    except KafkaError as error:
        raise CannotCheck(f"{where} accepts connections, but does not answer as a broker: {error}") from None


def _ask_echo(connection: socket.socket) -> Way:
    """Latency and clock from exchanges of times, as NTP computes them; then a large message."""
    latencies, offsets = [], []
    with connection.makefile("rb") as lines:
        for number in range(TRIES):
            sent_ns = time.time_ns()
            begun_s = time.perf_counter()
            connection.sendall(b"time %d\n" % number)
            line = lines.readline(LINE_MAX * 2)
            took_ns = int((time.perf_counter() - begun_s) * 1e9)
            try:
                echoed, received_ns, answered_ns = map(int, line.split())
            except ValueError:
                raise CannotCheck("the other `ottla check` hung up: has it been stopped?") from None
            if echoed != number:
                raise CannotCheck("the other `ottla check` answered something else: is it of another version?")
            trip_ns = max(0, took_ns - (answered_ns - received_ns))
            latencies.append(trip_ns / 1e6)
            offsets.append((trip_ns, ((received_ns - sent_ns) + (answered_ns - sent_ns - took_ns)) / 2e6))
        best_trip_ns, offset_ms = min(offsets)
        rate, problem = _send_large(connection, lines)
    return Way(tuple(sorted(latencies)), offset_ms, best_trip_ns / 2e6, _sizes(connection), rate, problem)


def _send_large(connection: socket.socket, lines: object) -> tuple[float | None, str]:
    """The rate of a large message there and back. Small ones pass where large ones are lost: a wrong MTU on the way."""
    connection.settimeout(LARGE_S)
    data, received = os.urandom(LARGE_BYTES), 0
    begun_s = time.perf_counter()
    try:
        connection.sendall(b"echo %d\n" % LARGE_BYTES + data)
        while received < LARGE_BYTES:
            block = lines.read1(1 << 16)  # type: ignore[attr-defined]  # what makefile returns has it
            if not block:
                return None, "the other side hung up"
            received += len(block)
    except OSError:
        return None, f"no answer within {LARGE_S:.0f} s"
    return 2 * LARGE_BYTES / (time.perf_counter() - begun_s), ""


def _sizes(connection: socket.socket) -> Sizes:
    """The path's MTU, as far as the kernel has learned it, that of the interface, and the size of segments."""
    path_mtu = segment = None
    is_v6 = connection.family == socket.AF_INET6
    try:
        segment = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        level, name = (socket.IPPROTO_IPV6, _IPV6_MTU) if is_v6 else (socket.IPPROTO_IP, _IP_MTU)
        path_mtu = connection.getsockopt(level, name)
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 128)
        learned = struct.unpack_from("I", info, _TCP_INFO_PMTU)[0]
        path_mtu = min(path_mtu, learned) if 68 <= learned <= 65535 else path_mtu
    except (OSError, AttributeError, struct.error):
        pass
    return Sizes(path_mtu, _mtu_of(str(connection.getsockname()[0])), segment)


def _mtu_of(address: str) -> int | None:
    """The MTU of the interface that has this address: it is asked for by a socket that is bound to it."""
    try:
        import fcntl

        for _, name in socket.if_nameindex():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                request = struct.pack("16s16x", name.encode()[:15])
                try:
                    own = socket.inet_ntoa(fcntl.ioctl(probe.fileno(), 0x8915, request)[20:24])  # SIOCGIFADDR
                except OSError:
                    continue
                if own == address:
                    return int(struct.unpack_from("i", fcntl.ioctl(probe.fileno(), 0x8921, request), 16)[0])  # SIOCGIFMTU
    except (OSError, ImportError):
        pass
    return None


def judge(where: str, way: Way) -> list[Finding]:
    """What the measured numbers mean."""
    p50 = way.latency_ms[len(way.latency_ms) // 2]
    p99 = way.latency_ms[min(len(way.latency_ms) - 1, int(len(way.latency_ms) * 0.99))]
    text = f"a round trip to {where} takes {p50:.2f} ms (p50), {p99:.2f} ms (p99)"
    if p50 > LATENCY_MS_MAX:
        why = "acks=all waits for a round trip to the followers, a commit of metadata for one to a majority"
        found = [
            Finding(
                "peer-latency",
                Level.WARN,
                text,
                f"below {LATENCY_MS_MAX:.0f} ms between nodes",
                why,
                "keep a cluster in one region",
            )
        ]
    else:
        found = [fine("peer-latency", text)]
    return in_order([*found, *_judge_clock(where, way), *_judge_sizes(where, way)])


def _judge_clock(where: str, way: Way) -> list[Finding]:
    id = "peer-clock"
    if way.clock_ms is None:
        return [unknown(id, f"a broker does not tell its time: run `ottla check --listen` on the machine of {where}")]
    which = "ahead" if way.clock_ms > 0 else "behind"
    text = f"the clock of {where} is {abs(way.clock_ms):,.2f} ms {which} (± {way.clock_error_ms:.2f})"
    if abs(way.clock_ms) - way.clock_error_ms > CLOCK_MS_MAX:
        why = "timestamps, retention and timeouts of transactions differ from node to node"
        now = "timedatectl set-ntp true on both, or start chronyd"
        return [
            Finding(id, Level.WARN, text, f"within {CLOCK_MS_MAX:.0f} ms", why, now, "systemctl enable --now chrony", False)
        ]
    return [fine(id, text)]


def _judge_sizes(where: str, way: Way) -> list[Finding]:
    id, sizes, found = "peer-mtu", way.sizes, []
    text = (
        f"the path to {where} takes packets of {sizes.path_mtu:,} bytes"
        if sizes.path_mtu
        else f"the path's MTU to {where} is not known"
    )
    for_good = "the network's configuration"
    own_mtu = sizes.own_mtu if sizes.own_mtu and sizes.own_mtu <= JUMBO_MTU else None  # loopback has no size to speak of

    def smaller(what: str, why: str, now: str) -> Finding:
        return Finding(id, Level.WARN, what, "the same on both ends", why, now, for_good)

    if way.large_problem:
        what = f"a message of {size_text(LARGE_BYTES)} to {where}: {way.large_problem}"
        why = "small messages pass and large ones hang: a device on the way drops packets and does not say so"
        now = "ip link set dev DEVICE mtu 1400 on both ends, or sysctl -w net.ipv4.tcp_mtu_probing=1"
        found.append(Finding(id, Level.ERROR, what, "", why, now, for_good))
    elif sizes.path_mtu and own_mtu and sizes.path_mtu < own_mtu:
        why = "large batches are cut on the way, or lost where the notice of it is filtered"
        what = f"{text}, the interface here sends {own_mtu:,}"
        found.append(smaller(what, why, f"ip link set dev DEVICE mtu {sizes.path_mtu}"))
    elif sizes.segment and own_mtu and sizes.segment < own_mtu - HEADERS_MAX:
        why = "the other end has a smaller MTU: what TCP has not agreed on is lost"
        what = f"segments to {where} have at most {sizes.segment:,} bytes, the interface here sends packets of {own_mtu:,}"
        found.append(smaller(what, why, "ip link set dev DEVICE mtu … on one of them"))
    elif sizes.path_mtu is None:
        found.append(unknown(id, text))
    else:
        found.append(fine(id, text))
    if way.large_bytes_per_s is not None:
        found.append(
            fine("peer-rate", f"{size_text(LARGE_BYTES)} there and back pass at {size_text(way.large_bytes_per_s)} a second")
        )
    return found
