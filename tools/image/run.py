"""Runs a command in an image's root file system as a container engine would: namespaces, mounts, user; no engine.

Writes go to a layer in memory, which is gone with the container. The command is process 1 of its own process namespace. The
network is the container's own: programs reach it with `Container.inside()`, a prefix for their command.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

_SCRIPT = """\
set -e
image=$1 layer=$2 user=$3 host=$4 mode=$5 directory=$6 volumes=$7 hosts=$8
shift 8
mount --make-rprivate /
mount -t tmpfs tmpfs "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/root"
mount -t overlay -o "lowerdir=$image,upperdir=$layer/upper,workdir=$layer/work" overlay "$layer/root"
root=$layer/root
hostname "$host"
ip link set lo up
printf '127.0.0.1 localhost\\n%s\\n' "$hosts" > "$root/etc/hosts"
echo "$host" > "$root/etc/hostname"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir -m 1777 "$root/dev/shm"
printf '%s\\n' "$volumes" | while IFS='|' read -r from to; do
    if [ -n "$from" ]; then
        if [ -d "$from" ]; then mkdir -p "$root$to"; else mkdir -p "$(dirname "$root$to")"; touch "$root$to"; fi
        mount --bind "$from" "$root$to"
    fi
done
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
if [ "$mode" = read-only ]; then mount -o remount,ro "$root"; fi
# A change of the user takes away that the process dies with its parent: asked for again.
exec chroot "$root" setpriv --reuid="${user%:*}" --regid="${user#*:}" --clear-groups --pdeathsig=KILL \\
    /bin/sh -c 'cd "$0" && exec "$@"' "$directory" "$@"
"""


class Network:
    """A network of containers, apart from the machine's own."""

    def __enter__(self) -> Network:
        ready = ["sh", "-c", "ip link add bridge0 type bridge && ip link set bridge0 up && echo ready && exec sleep infinity"]
        self._holder = subprocess.Popen(["unshare", "--net", *ready], stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "ready\n":
            raise ChildProcessError("there is no network for the containers: the reason is above")
        return self

    def __exit__(self, *exception: object) -> None:
        self._holder.kill()
        self._holder.communicate()

    def run(self, *command: str) -> None:
        subprocess.run(["nsenter", "--target", str(self._holder.pid), "--net", *command], check=True)


class Container:
    """A running container. `with Container(...)` kills it at the end."""

    def __init__(
        self,
        image: Path,
        command: Sequence[str] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        volumes: Mapping[Path, str] | None = None,
        user: str | None = None,
        is_read_only: bool = False,
        hostname: str = "container",
        hosts: Mapping[str, str] | None = None,
        output: IO[str] | int | None = None,
    ) -> None:
        """Start `command`, or the image's own, in the image that `build` has made in the folder `image`.

        `hosts` has the addresses of host names, its own included, if there is a network.
        """
        config = json.loads((image / "config.json").read_text())
        self.config = config
        self._environment = dict(each.split("=", 1) for each in config["Env"]) | dict(environment or {})
        self._user = user or config["User"]
        self._layer = tempfile.TemporaryDirectory(prefix="ottla-container-")
        mounts = {str(path): place for path, place in (volumes or {}).items()}
        for place in config["Volumes"]:
            if place not in mounts.values():
                mounts[_new_volume(image / "root", place, Path(self._layer.name))] = place
        layer = Path(self._layer.name) / "layer"
        layer.mkdir()
        self.process = subprocess.Popen(
            [
                *(
                    "unshare",
                    "--mount",
                    "--pid",
                    "--net",
                    "--uts",
                    "--ipc",
                    "--fork",
                    "--kill-child",
                    "sh",
                    "-c",
                    _SCRIPT,
                    "sh",
                ),
                *(str(image / "root"), str(layer), self._user, hostname, "read-only" if is_read_only else "writable"),
                *(config["WorkingDir"], "\n".join(f"{path}|{place}" for path, place in mounts.items())),
                "\n".join(f"{address} {name}" for name, address in ({hostname: "127.0.0.1"} | dict(hosts or {})).items()),
                *(command or config["Cmd"]),
            ],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output is not None else None,
            text=True,
        )

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()
        self._layer.cleanup()

    def kill(self) -> None:
        """End it at once (SIGKILL), with all of its processes. Harmless when it is gone."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.first_process, signal.SIGKILL)  # unshare ends with it
            self.process.wait()

    @property
    def first_process(self) -> int:
        """The process that is number 1 inside, by its number outside."""
        deadline_s = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < deadline_s:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if children:
                return int(children[0])
            time.sleep(0.005)
        raise ChildProcessError("the container has no process")

    @property
    def root(self) -> Path:
        """The container's file system, from outside. Its command may not run yet."""
        root = Path(f"/proc/{self.first_process}/root")
        deadline_s = time.monotonic() + 30
        while os.path.samestat(root.stat(), Path("/").stat()):  # the mounts are being made
            if self.process.poll() is not None or time.monotonic() > deadline_s:
                raise ChildProcessError("the container did not get to its own file system")
            time.sleep(0.005)
        return root

    def inside(self, *namespaces: str) -> list[str]:
        """The beginning of a command that runs in namespaces of this container: its network, if none is named."""
        chosen = [f"--{name}" for name in namespaces or ("net",)]
        return ["nsenter", "--target", str(self.first_process), *chosen]

    def execute(self, *command: str, user: str | None = None, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command in the container, as `exec` of an engine does."""
        enter = [*self.inside("mount", "net", "pid", "uts", "ipc"), f"--root={self.root}", "--wd=/"]
        as_user = ["chroot", f"--userspec={user or self._user}", "--groups=", "/", *command]
        return subprocess.run(
            [*enter, *as_user], env=self._environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )

    def put(self, path: str, content: str, mode: int = 0o755) -> None:
        """Write a file into the container, as root."""
        target = self.root / path.lstrip("/")
        part = target.with_name(f"{target.name}.part")
        part.write_text(content)
        part.chmod(mode)
        part.rename(target)

    def attach(self, network: Network, address: str) -> None:
        """Connect the container to a network, with an address like 10.89.0.2."""
        network.run(
            "ip", "link", "add", f"to{self.first_process}", "type", "veth", "peer", "eth0", "netns", str(self.first_process)
        )
        network.run("ip", "link", "set", f"to{self.first_process}", "master", "bridge0", "up")
        for command in (("addr", "add", f"{address}/24", "dev", "eth0"), ("link", "set", "eth0", "up")):
            subprocess.run([*self.inside(), "ip", *command], check=True)

    def stop(self, timeout_s: float = 60) -> int:
        """Send the image's stop signal, and wait for the end; the exit code."""
        with suppress(ProcessLookupError):
            os.kill(self.first_process, signal.Signals[self.config["StopSignal"]])
        return self.process.wait(timeout_s)


def _new_volume(root: Path, place: str, folder: Path) -> str:
    """A folder like the one in the image, as an engine makes for a volume that nobody mounts."""
    volume = folder / place.strip("/").replace("/", "-")
    subprocess.run(["cp", "-a", str(root / place.lstrip("/")), str(volume)], check=True)
    return str(volume)
