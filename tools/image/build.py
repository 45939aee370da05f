"""Builds the root file system of an image by carrying out a Containerfile in folders: for machines without a container engine.

    sudo python -m tools.image build /var/tmp/ottla-image

Supported is what image/Containerfile uses: stages, ARG, ENV, RUN, COPY, LABEL, and the settings of a container. A base
`debian:SUITE-slim` is made by debootstrap; RUN runs in a chroot with mounts of its own, as root.
The result is FOLDER/root and FOLDER/config.json, with the names of the Open Container Initiative.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CONTAINERFILE = ROOT / "image" / "Containerfile"
DEBIAN = "http://deb.debian.org/debian"
_SLIM = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "var/cache/apt",
    "var/lib/apt/lists",
    "var/log",
)
"""What Debian's slim images leave out."""
_NO_CACHE = """\
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
DPkg::Post-Invoke {"rm -f /var/cache/apt/archives/*.deb";};
"""
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """(instruction, its text) of a Containerfile: comments left out, continued lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    for line in joined.splitlines():
        word, _, rest = line.strip().partition(" ")
        yield word.upper(), rest.strip()


def pairs(text: str) -> dict[str, str]:
    """`A=b C="d e"` as a dictionary."""
    return {
        name: quoted if quoted is not None else plain
        for name, quoted, plain in (
            (found[1], found[2], found[3]) for found in re.finditer(r'([\w.-]+)=(?:"([^"]*)"|(\S*))', text)
        )
    }


class BuildFailed(Exception):
    """An instruction failed."""


class Stage:
    """One stage of the build: a root file system and the settings so far."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.arguments: dict[str, str] = {}
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.config: dict[str, Any] = {"Labels": {}, "ExposedPorts": {}, "Volumes": {}}

    def expand(self, text: str) -> str:
        known = self.arguments | self.environment
        return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], ""), text)


def build(folder: Path, arguments: Mapping[str, str], containerfile: Path = CONTAINERFILE, context: Path = ROOT) -> Path:
    """Carry out `containerfile`; returns the root file system of its last stage."""
    before: dict[str, str] = {}
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for word, text in instructions(containerfile.read_text(encoding="utf-8")):
        if word == "ARG":
            name, _, default = text.partition("=")
            (before if stage is None else stage.arguments)[name] = arguments.get(name, before.get(name, default))
        elif word == "FROM":
            image, _, name = text.partition(" AS ")
            base = _VARIABLE.sub(lambda found: before[found[1] or found[2]], image)
            stage = Stage(folder / "stages" / (name or str(len(stages))))
            stages[name or str(len(stages))] = stage
            print(f"FROM {base}", flush=True)
            _copy_base(_base(folder, base), stage.root)
        else:
            assert stage is not None, f"{word} before FROM"
            print(f"{word} {text[:100]}", flush=True)
            _carry_out(stage, stages, word, text, context)
    assert stage is not None, f"{containerfile} has no FROM"
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    stage.root.rename(root)
    stage.config["Env"] = [f"{name}={value}" for name, value in stage.environment.items()]
    (folder / "config.json").write_text(json.dumps(stage.config, indent=1))
    shutil.rmtree(folder / "stages")
    return root


def _carry_out(stage: Stage, stages: Mapping[str, Stage], word: str, text: str, context: Path) -> None:
    config = stage.config
    if word == "ENV":
        stage.environment |= {name: stage.expand(value) for name, value in pairs(text).items()}
    elif word == "LABEL":
        config["Labels"] |= {name: stage.expand(value) for name, value in pairs(text).items()}
    elif word == "RUN":
        _run(stage, text)
    elif word == "COPY":
        _copy(stage, stages, text, context)
    elif word == "EXPOSE":
        config["ExposedPorts"] |= {f"{port}/tcp": {} for port in text.split()}
    elif word == "VOLUME":
        config["Volumes"] |= {path: {} for path in text.split()}
    elif word == "WORKDIR":
        config["WorkingDir"] = text
    elif word == "USER":
        config["User"] = text
    elif word == "STOPSIGNAL":
        config["StopSignal"] = text
    elif word in ("CMD", "ENTRYPOINT"):
        config[word.capitalize()] = json.loads(text)
    elif word == "HEALTHCHECK":
        config["Healthcheck"] = {"Test": ["CMD", *json.loads(text.partition("CMD")[2])]}
    else:
        raise BuildFailed(f"{word} is not supported here: {text}")


def _base(folder: Path, image: str) -> Path:
    """The file system of `debian:SUITE-slim`, made once."""
    found = re.fullmatch(r"debian:(\w+)-slim", image)
    if found is None:
        raise BuildFailed(f"a base {image} is not supported here")
    base = folder / f"debian-{found[1]}"
    if not (base / "etc" / "debian_version").exists():
        shutil.rmtree(base, ignore_errors=True)
        made = base.with_suffix(".part")
        shutil.rmtree(made, ignore_errors=True)
        subprocess.run(["debootstrap", "--variant=minbase", found[1], str(made), DEBIAN], check=True, stdout=subprocess.DEVNULL)
        for path in _SLIM:
            for child in (made / path).iterdir() if (made / path).is_dir() else ():
                shutil.rmtree(child) if child.is_dir() and not child.is_symlink() else child.unlink()
        slim = "".join(f"path-exclude /{path}/*\n" for path in _SLIM if path.startswith("usr/"))
        (made / "etc" / "dpkg" / "dpkg.cfg.d" / "slim").write_text(slim)
        (made / "etc" / "apt" / "apt.conf.d" / "slim").write_text(_NO_CACHE)
        made.rename(base)
    return base


def _copy_base(base: Path, root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(root)], check=True)


_IN_CHROOT = """\
set -e
root=$1
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
touch "$root/etc/resolv.conf"
mount --bind /etc/resolv.conf "$root/etc/resolv.conf"
mount -t tmpfs tmpfs "$root/run"
cat "$2" > "$root/run/certificates.pem"
shift 2
exec chroot "$root" "$@"
"""


def _run(stage: Stage, command: str) -> None:
    variables = {**stage.arguments, **stage.environment, "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
    # As engines do: the machine's proxy, and whom it trusts, hold for the build. Nothing of it stays in the image.
    given = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    given |= dict.fromkeys(("PIP_CERT", "SSL_CERT_FILE"), "/run/certificates.pem")
    trusted = os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")
    unshared = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _IN_CHROOT, "sh", str(stage.root), trusted]
    done = subprocess.run([*unshared, "/bin/sh", "-c", command], env=given | variables, check=False)
    if done.returncode != 0:
        raise BuildFailed(f"RUN ended with {done.returncode}: {command}")


def _copy(stage: Stage, stages: Mapping[str, Stage], text: str, context: Path) -> None:
    words = text.split()
    origin = context
    if words[0].startswith("--from="):
        origin = stages[words.pop(0).removeprefix("--from=")].root
    *sources, target = words
    to = stage.root / target.lstrip("/")
    for source in sources:
        found = [Path(each) for each in glob.glob(str(origin / source.lstrip("/")))]
        if not found:
            raise BuildFailed(f"COPY {text}: there is no {source}; `make dist` makes the wheels")
        for path in found:
            to.mkdir(parents=True, exist_ok=True)
            # The content of a folder, as COPY does; owned by root.
            what = [f"{path}/."] if path.is_dir() else [str(path)]
            subprocess.run(["cp", "-a", "--no-preserve=ownership", *what, str(to)], check=True)
