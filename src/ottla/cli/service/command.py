"""The `service` verb: installs a node as a service of systemd, or of launchd on macOS; shows and removes it.

Nothing that exists is replaced without being told to, and no data is ever removed. Only with --start is anything else run than
the command itself. `--root` works on another file tree, as systemctl's does: for images and packages.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from ottla.cli.common.options import json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_data, print_json, print_table, say, warn
from ottla.cli.common.references import resolved
from ottla.cli.common.spelling import Commands
from ottla.cli.service import units
from ottla.config.java_properties import parse_properties
from ottla.errors import OttlaError
from ottla.errors.texts import counted

F = TypeVar("F", bound=Callable[..., Any])

USER = "ottla"
EPILOG = """\b
Examples:
  sudo ottla service install --new-settings --start      one node with defaults, now and after every boot
  sudo ottla service install                             for /etc/ottla/server.properties
  sudo ottla service install a b                         two nodes: /etc/ottla/a/server.properties, /etc/ottla/b/...
  ottla service install --user --new-settings            a service of your own, without root
  ottla service install --print                          show the unit, write nothing
  ottla service status
"""


class Refused(OttlaError):
    """The service cannot be installed, shown or removed so."""


class Place(NamedTuple):
    """Where a service's files are."""

    units: Path
    settings: Path
    """The folder of server.properties, or of a folder for each node."""
    data: Path
    is_user: bool
    is_launchd: bool
    root: Path
    """What the paths are below: `/`, or what --root says."""

    def unit(self, instance: str = "", *, is_template: bool = False) -> Path:
        if self.is_launchd:
            return self.units / f"ottla{f'.{instance}' if instance else ''}.plist"
        return self.units / ("ottla@.service" if is_template else "ottla.service")

    def seen(self, path: Path) -> str:
        """A path as the service sees it."""
        return str(path if self.root == Path("/") else Path("/") / path.relative_to(self.root))


def place_of(is_user: bool, root: Path | None, is_launchd: bool) -> Place:
    home, top = Path.home(), root.absolute() if root is not None else Path("/")
    if not is_user:
        folder = top / ("Library/LaunchDaemons" if is_launchd else "etc/systemd/system")
        data = top / ("usr/local/var/ottla" if is_launchd else "var/lib/ottla")
        return Place(folder, top / "etc/ottla", data, is_user, is_launchd, top)
    if root is not None:
        raise click.UsageError("--root is for services of the system: leave out --user")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share") / "ottla"
    folder = home / "Library/LaunchAgents" if is_launchd else config / "systemd/user"
    return Place(folder, config / "ottla", data, is_user, is_launchd, top)


@click.group(cls=Commands, epilog=EPILOG)
def service() -> None:
    """Run a node as a service: of systemd, or of launchd on macOS."""


def _place_options(function: F) -> F:
    decorated: Any = function
    for option in (
        click.option(
            "--manager", type=click.Choice(["systemd", "launchd"]), show_default=True,
            default="launchd" if sys.platform == "darwin" else "systemd", help="Which service manager the files are for.",
        ),
        click.option("--root", type=click.Path(file_okay=False, path_type=Path), help="Work on the files below this folder."),
        click.option("--user", "is_user", is_flag=True, help="A service of your own, which needs no root."),
    ):  # fmt: skip
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # click's decorators return the function they decorate


# -- install


@service.command(epilog=EPILOG)
@click.argument("instances", nargs=-1, metavar="[NODE]...")
@click.option(
    "--settings", type=click.Path(dir_okay=False, path_type=Path),
    help="The server.properties.  [default: /etc/ottla/server.properties; for several nodes /etc/ottla/NODE/server.properties]",
)  # fmt: skip
@click.option("--new-settings", is_flag=True, help="Write settings for a single node, if there are none, and format its data.")
@click.option("--run-as", metavar="USER", help=f"The user of the service.  [default: {USER}, who is made if missing]")
@click.option("--replace", is_flag=True, help="Replace a unit that has other content.")
@click.option("--print", "only_print", is_flag=True, help="Print the unit, and write nothing.")
@click.option("--start", is_flag=True, help="Enable and start it, too.")
@_place_options
def install(
    instances: tuple[str, ...],
    settings: Path | None,
    new_settings: bool,
    run_as: str | None,
    replace: bool,
    only_print: bool,
    start: bool,
    is_user: bool,
    root: Path | None,
    manager: str,
) -> None:
    """Write the service of a node; with names of nodes, one template for all of them. Start it with --start, or later.

    An installed unit stays as it is until --replace. What you change with `systemctl edit` stays in any case.
    """
    if instances and (settings is not None or new_settings):
        raise click.UsageError("every node has settings of its own, at /etc/ottla/NODE/server.properties: write them first")
    if is_user and run_as is not None:
        raise click.UsageError("a service of your own runs as you: leave out --run-as, or --user")
    for name in instances:
        if not name.replace("-", "").replace("_", "").isalnum():
            raise click.UsageError(f"{name!r} cannot name a node: use letters, digits, - and _")
    place = place_of(is_user, root, manager == "launchd")
    plan = _Plan(place, instances, settings, None if is_user else run_as or USER, new_settings)
    files = dict(plan.files(must_exist=not only_print))
    if only_print:
        print_data(next(iter(files.values())).decode().splitlines())
        return
    if start and root is not None:
        raise click.UsageError("--start starts a service of this machine: leave it out with --root")
    _check_may_write(place)
    if start:
        _check_runs(place)
    plan.check_user()
    _write(place, files, replace, plan.created)
    for warning in plan.warnings():
        warn(warning)
    commands = plan.next_commands()
    if start:
        for command in commands:
            _run(command, plan.names)
        say(f"{'Services' if len(plan.names) > 1 else 'Service'} started: {', '.join(plan.names)}")
        return
    say("Run next:")
    for command in commands:
        say("  " + " ".join(command))


class _Plan:
    """The files of one installation, and what they need."""

    def __init__(
        self, place: Place, instances: Sequence[str], settings: Path | None, run_as: str | None, new_settings: bool
    ) -> None:
        self.place = place
        self.instances = instances
        self.run_as = run_as
        self.formats_new = new_settings
        self.created: list[Path] = []
        """Settings that are new."""
        self._settings = settings.absolute() if settings is not None else None
        self._log_dirs: dict[str, list[str]] = {}
        """Of each node whose settings are known."""
        command = Path(sys.prefix) / "bin" / "ottla"
        self.command = [str(command)] if command.exists() else [sys.executable, "-m", "ottla"]

    @property
    def names(self) -> list[str]:
        if self.place.is_launchd:
            return [f"ottla.{each}" for each in self.instances] or ["ottla"]
        return [f"ottla@{each}" for each in self.instances] or ["ottla"]

    def settings_of(self, instance: str) -> Path:
        return self._settings or self.place.settings / instance / "server.properties"

    def files(self, *, must_exist: bool) -> Iterator[tuple[Path, bytes]]:
        """Path and content of each file, the unit first."""
        place, data = self.place, self.place.data
        new: list[tuple[Path, bytes]] = []
        for instance in self.instances or [""]:
            path = self.settings_of(instance)
            if path.exists():
                self._log_dirs[instance] = log_dirs_of(path)
            elif self.formats_new:
                new.append((path, units.new_settings(place.seen(data)).encode()))
                self.created.append(path)
                self._log_dirs[instance] = [place.seen(data)]
            elif must_exist:
                hint = "" if instance else ", or add --new-settings for a single node with defaults"
                raise Refused(
                    f"{path} does not exist: write the settings of the node there (`ottla storage sample {path.parent}` writes "
                    f"some){hint}"
                )
        if not place.is_user and not place.is_launchd:
            self._check_log_dirs()
        yield from self._unit_files()
        yield from new
        if self.run_as is not None and not place.is_launchd and not self._user_exists():
            yield place.root / "etc/sysusers.d/ottla.conf", units.sysusers(self.run_as).encode()

    def _unit_files(self) -> Iterator[tuple[Path, bytes]]:
        place, is_template = self.place, bool(self.instances)
        single = [] if is_template else self._outside("")
        path = self.settings_of("%i" if is_template else "")
        made = units.Service(
            command=self.command,
            settings=place.seen(path) if self._settings is None else str(path),
            is_template=is_template,
            formats_new=self.formats_new,
            user=self.run_as,
            writable=single,
            uses_homes=any(map(_is_in_home, [*self.command, sys.base_prefix, str(path), *self._all_log_dirs()])),
        )
        if place.is_launchd:
            for instance, name in zip(self.instances or [""], self.names, strict=True):
                log = f"{place.seen(place.data)}/{name}.log"
                yield place.unit(instance), units.launchd_plist(made, name, log, instance)
            return
        yield place.unit(is_template=is_template), units.systemd_unit(made).encode()
        for instance in self.instances:
            if outside := self._outside(instance):
                folder = place.units / f"ottla@{instance}.service.d"
                yield folder / "paths.conf", units.paths_drop_in(outside).encode()

    def _all_log_dirs(self) -> list[str]:
        return sorted({folder for folders in self._log_dirs.values() for folder in folders})

    def _outside(self, instance: str) -> list[str]:
        """The log directories of a node that are not in its state directory; none where nothing is protected."""
        if self.place.is_user:
            return []
        state = Path(self.place.seen(self.place.data)) / instance
        return [each for each in self._log_dirs.get(instance, []) if not Path(each).is_relative_to(state)]

    def _check_log_dirs(self) -> None:
        for instance, folders in self._log_dirs.items():
            for folder in folders:
                if Path(folder).is_relative_to("/tmp") or Path(folder).is_relative_to("/var/tmp"):
                    state = Path(self.place.seen(self.place.data)) / instance
                    raise Refused(
                        f"{self.settings_of(instance)} keeps the data in {folder}, which a service sees as a folder of its own "
                        f"that is removed when it stops: set log.dirs={state}"
                    )

    def _user_exists(self) -> bool:
        if self.run_as is None:
            return True
        if self.place.root != Path("/"):
            passwd = self.place.root / "etc/passwd"
            return passwd.exists() and any(line.startswith(f"{self.run_as}:") for line in passwd.read_text().splitlines())
        try:
            pwd.getpwnam(self.run_as)
        except KeyError:
            return False
        return True

    def check_user(self) -> None:
        """A user with another name than the default is not made."""
        if self.run_as not in (None, USER) and not self._user_exists():
            raise Refused(
                f"there is no user {self.run_as}: make one with `useradd --system {self.run_as}`, or leave out --run-as: the "
                f"user is {USER} then"
            )
        if self.place.is_launchd and not self._user_exists():
            raise Refused(f"there is no user {self.run_as}: name one with --run-as; launchd makes none")

    def warnings(self) -> Iterator[str]:
        if self.run_as is None or self.place.root != Path("/"):
            return
        for path in (self.command[0], *(str(self.settings_of(each)) for each in self.instances or [""])):
            if (closed := _closed_to_others(Path(path))) is not None:
                yield (
                    f"user {self.run_as} may not be able to read {path}, because {closed} is closed to others: install Ottla "
                    "and its settings where every user may read, such as /opt/ottla and /etc/ottla"
                )
        for folder in self._all_log_dirs():
            with_owner = _owner(Path(folder))
            if with_owner not in (None, self.run_as) and not Path(folder).is_relative_to(self.place.seen(self.place.data)):
                yield (
                    f"{folder} belongs to {with_owner}, and the service runs as {self.run_as}: chown -R {self.run_as}: {folder}"
                )

    def next_commands(self) -> list[list[str]]:
        if self.place.is_launchd:
            domain = f"gui/{os.getuid()}" if self.place.is_user else "system"
            return [["launchctl", "bootstrap", domain, str(self.place.unit(each))] for each in self.instances or [""]]
        control = _systemctl(self.place)
        commands = [[*control, "daemon-reload"], [*control, "enable", "--now", *self.names]]
        if (self.place.root / "etc/sysusers.d/ottla.conf").exists() and not self._user_exists():
            commands.insert(0, ["systemd-sysusers"])
        if self.place.is_user:
            commands.append(["loginctl", "enable-linger"])  # it runs when nobody is logged in
        return commands


def log_dirs_of(path: Path) -> list[str]:
    """The log directories that a server.properties names; the settings must be ones that a node starts with."""
    from ottla.config.broker import BrokerConfig
    from ottla.config.values import InvalidConfig

    try:
        config = BrokerConfig.from_settings(resolved(parse_properties(path.read_bytes())))
    except InvalidConfig as wrong:
        raise Refused(f"{path}: {wrong}") from wrong
    except PermissionError:
        raise Refused(f"{path} cannot be read by you: its settings say where the data is") from None
    except ValueError as broken:
        raise Refused(f"{path} is not a properties file: {broken}") from None
    found = dict.fromkeys([*config.log.log_dirs, config.log.metadata_log_dir])
    if relative := [each for each in found if not Path(each).is_absolute()]:
        raise Refused(
            f"{path} names {relative[0]}, which depends on where the node is started: write the whole path in log.dirs"
        )
    return list(found)


def _is_in_home(path: str) -> bool:
    return any(Path(path).is_relative_to(each) for each in ("/home", "/root", "/run/user"))


def _closed_to_others(path: Path) -> Path | None:
    """What on the way to `path` other users may not pass; None if they may."""
    for folder in reversed(path.resolve().parents):
        if folder.exists() and not folder.stat().st_mode & 0o001:
            return folder
    return None


def _owner(path: Path) -> str | None:
    return path.owner() if path.exists() else None


def _check_may_write(place: Place) -> None:
    if place.root != Path("/"):
        return
    if place.is_launchd and sys.platform != "darwin":
        raise Refused("launchd is macOS's: --print shows the file, --root writes it into another file tree")
    if not place.is_launchd and shutil.which("systemctl") is None:
        raise Refused(
            "there is no systemd on this machine, as in most containers: run `ottla server start` as the container's process. "
            "--print shows the unit"
        )
    if not place.is_user and os.geteuid() != 0:
        raise Refused(f"writing to {place.units} needs root: run it with sudo, or add --user for a service of your own")


def _check_runs(place: Place) -> None:
    if not place.is_launchd and not Path("/run/systemd/system").is_dir():
        raise Refused("systemd does not run on this machine: leave out --start to write the files only")


def _write(place: Place, files: Mapping[Path, bytes], replace: bool, settings: Sequence[Path]) -> None:
    """Write what is new or changed; all checks come first, so that a refusal changes nothing."""
    for path, content in files.items():
        if path.exists() and path.read_bytes() != content and not replace:
            ours = units.MARK.encode() in path.read_bytes()
            whose = "was changed, or written by another version or with other options" if ours else "is not ours"
            raise Refused(f"{path} exists and {whose}: --replace replaces it. Changes of your own belong into `systemctl edit`")
    for path, content in files.items():
        if path.exists() and path.read_bytes() == content:
            say(f"{path} is there already")
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise Refused(f"cannot write {path}: {error.strerror}") from None
        path.chmod(0o644)
        say(f"Wrote {path}{' (settings of a single node: look at listeners)' if path in settings else ''}")
    if place.is_user or place.is_launchd:
        place.data.mkdir(parents=True, exist_ok=True)


def _systemctl(place: Place) -> list[str]:
    return ["systemctl", "--user"] if place.is_user else ["systemctl"]


def _run(command: Sequence[str], names: Sequence[str]) -> None:
    say("$ " + " ".join(command))
    if subprocess.run(command, check=False).returncode != 0:
        journal = " ".join(f"-u {name}" for name in names)
        raise Refused(f"`{' '.join(command)}` failed: see above, and `journalctl {journal} -n 50`")


# -- uninstall


@service.command()
@click.argument("instances", nargs=-1, metavar="[NODE]...")
@_place_options
def uninstall(instances: tuple[str, ...], is_user: bool, root: Path | None, manager: str) -> None:
    """Stop and disable the service, and remove its unit; with names of nodes, only those. Settings and data stay."""
    place = place_of(is_user, root, manager == "launchd")
    found = [each for each in _installed(place) if not instances or (place.is_launchd and each.stem[6:] in instances)]
    if instances and not place.is_launchd:
        if not place.unit(is_template=True).exists():
            raise Refused(f"there is no {place.unit(is_template=True)}: nothing is installed for {', '.join(instances)}")
        _stop(place, [f"ottla@{each}" for each in instances])
        found = [each for name in instances for each in (place.units / f"ottla@{name}.service.d").glob("paths.conf")]
    elif not found:
        raise Refused(f"nothing is installed in {place.units}")
    for path in found:
        if units.MARK.encode() not in path.read_bytes():
            raise Refused(f"{path} was not written by `ottla service install`: remove it yourself, if you mean it")
    if not is_user and place.root == Path("/") and os.geteuid() != 0:
        raise Refused(f"removing files from {place.units} needs root: run it with sudo")
    if not instances:
        names = [each.name for each in found if each.suffix == ".service" and "@" not in each.name]
        _stop(place, [*names, *_running_instances(place)] if not place.is_launchd else [each.stem for each in found])
    if instances and not place.is_launchd:
        say(f"Stopped and disabled: {', '.join(instances)}" if _is_controlled(place) else f"Disabled: {', '.join(instances)}")
    for path in found:
        path.unlink()
        say(f"Removed {path}")
        if path.parent.name.endswith(".d") and path.parent.name.startswith("ottla@") and not any(path.parent.iterdir()):
            path.parent.rmdir()
    if _is_controlled(place):
        _run([*_systemctl(place), "daemon-reload"], [])
    stays = [str(each) for each in (place.settings, place.data) if each.exists()]
    if stays:
        say(f"The settings and the data stay: {', '.join(stays)}")


def _installed(place: Place) -> list[Path]:
    if place.is_launchd:
        return sorted([*place.units.glob("ottla.plist"), *place.units.glob("ottla.*.plist")])
    drop_ins = sorted(place.units.glob("ottla@*.service.d/paths.conf"))
    sysusers = place.root / "etc/sysusers.d/ottla.conf"
    found = [place.unit(), place.unit(is_template=True), *drop_ins, *([] if place.is_user else [sysusers])]
    return [each for each in found if each.exists()]


def _is_controlled(place: Place) -> bool:
    """Whether a running service manager knows these files."""
    return place.root == Path("/") and not place.is_launchd and Path("/run/systemd/system").is_dir()


def _running_instances(place: Place) -> list[str]:
    return [each["Id"] for each in _shown(place) if "@" in each["Id"]] if _is_controlled(place) else []


def _stop(place: Place, names: Sequence[str]) -> None:
    if place.is_launchd and sys.platform == "darwin" and place.root == Path("/"):
        domain = f"gui/{os.getuid()}" if place.is_user else "system"
        for name in names:
            subprocess.run(["launchctl", "bootout", f"{domain}/{name}"], check=False)
    elif names and _is_controlled(place):
        _run([*_systemctl(place), "disable", "--now", *names], names)


# -- status

PROPERTIES = ("Id", "LoadState", "ActiveState", "SubState", "UnitFileState", "MainPID", "NRestarts", "StatusText")
HEADINGS = ("Service", "State", "At boot", "Process", "Restarts", "Node says")


@service.command()
@json_option
@plain_option
@wide_option
@_place_options
def status(as_json: bool, plain: bool, is_user: bool, root: Path | None, manager: str) -> int:
    """Show the services of nodes. The exit code is 1 if none is installed, or one does not run."""
    place = place_of(is_user, root, manager == "launchd")
    rows = [_row(each) for each in _shown(place)] if _is_controlled(place) else _unmanaged(place)
    is_well = bool(rows) and all(each["state"] == "active (running)" for each in rows)
    if as_json:
        print_json(rows)
    elif not rows:
        warn(f"no service is installed in {place.units}: `ottla service install` writes one")
    elif is_for_people(as_json, plain):
        print_table(counted(len(rows), "service"), HEADINGS, [list(each.values()) for each in rows])
    else:
        for each in rows:
            say(*("-" if cell is None else str(cell) for cell in each.values()))
    return 0 if is_well else 1


def _shown(place: Place) -> list[dict[str, str]]:
    """What systemctl says of the services that are installed or run."""
    command = [*_systemctl(place), "show", "--property=" + ",".join(PROPERTIES), "ottla.service", "ottla@*.service"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"systemctl does not answer: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    return parse_shown(done.stdout)


def parse_shown(text: str) -> list[dict[str, str]]:
    """The services in what `systemctl show` prints: a block of lines each."""
    blocks = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in text.split("\n\n")]
    return [each for each in blocks if each.get("LoadState", "not-found") != "not-found"]


def _row(shown: Mapping[str, str]) -> dict[str, object]:
    return {
        "service": shown["Id"].removesuffix(".service"),
        "state": f"{shown['ActiveState']} ({shown['SubState']})",
        "at_boot": shown.get("UnitFileState") or None,
        "process": int(shown.get("MainPID") or 0) or None,
        "restarts": int(shown.get("NRestarts") or 0),
        "node_says": shown.get("StatusText") or None,
    }


def _unmanaged(place: Place) -> list[dict[str, object]]:
    """Installed files, where no service manager tells more."""
    rows: list[dict[str, object]] = []
    for path in _installed(place):
        if path.suffix not in (".service", ".plist"):
            continue
        state: str = "installed; systemd does not run here"
        process: int | None = None
        if place.is_launchd:
            state, process = _launchd_state(place, path.stem)
        rows.append(
            {"service": path.stem, "state": state, "at_boot": None, "process": process, "restarts": None, "node_says": None}
        )
    return rows


def _launchd_state(place: Place, name: str) -> tuple[str, int | None]:
    if shutil.which("launchctl") is None:
        return "installed; launchd does not run here", None
    domain = f"gui/{os.getuid()}" if place.is_user else "system"
    done = subprocess.run(["launchctl", "print", f"{domain}/{name}"], capture_output=True, text=True, check=False)
    facts = dict(line.strip().split(" = ", 1) for line in done.stdout.splitlines() if " = " in line)
    state = facts.get("state", "not loaded")
    return ("active (running)" if state == "running" else state), int(facts["pid"]) if "pid" in facts else None
