"""`ottla service`: what it writes, what it refuses, and what systemd thinks of it."""

import json
import os
import plistlib
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import Unavailable
from tests.support.servers.ottla_cli import Said, run_cli

from ottla.cli.service import command as module
from ottla.cli.service import units

SETTINGS = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:9093
"""


class Tree:
    """A file tree with a service in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def ottla(self, action: str, *arguments: object) -> Said:
        return run_cli("service", action, "--root", self.root, *arguments)

    def settings(self, log_dirs: str, instance: str = "") -> Path:
        path = self.root / "etc/ottla" / instance / "server.properties"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{SETTINGS}log.dirs={log_dirs}\n")
        return path

    def read(self, name: str) -> str:
        return (self.root / "etc/systemd/system" / name).read_text()

    def files(self) -> list[str]:
        return sorted(str(each.relative_to(self.root)) for each in self.root.rglob("*") if each.is_file())


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_new_node_gets_unit_settings_and_user(tree: Tree) -> None:
    done = tree.ottla("install", "--new-settings")
    assert done.rc == 0
    assert tree.files() == ["etc/ottla/server.properties", "etc/systemd/system/ottla.service", "etc/sysusers.d/ottla.conf"]
    assert done.out.splitlines()[-4:] == [
        "Run next:", "  systemd-sysusers", "  systemctl daemon-reload", "  systemctl enable --now ottla"
    ]  # fmt: skip
    unit = tree.read("ottla.service")
    assert re.search(r"^ExecStart=\S.* server start /etc/ottla/server.properties --service --format-new$", unit, re.MULTILINE)
    assert module.log_dirs_of(tree.root / "etc/ottla/server.properties") == ["/var/lib/ottla"]
    again = tree.ottla("install", "--new-settings")
    assert again.rc == 0
    assert "Wrote" not in again.out


def test_settings_that_are_there_are_used_and_data_elsewhere_may_be_written(tree: Tree) -> None:
    tree.settings("/var/lib/ottla/a,/data/one,/data/my disk")
    assert tree.ottla("install").rc == 0
    unit = tree.read("ottla.service")
    assert 'ReadWritePaths=/data/one "/data/my disk"\n' in unit
    assert 'RequiresMountsFor=/data/one "/data/my disk"\n' in unit
    assert "--format-new" not in unit


def test_several_nodes_share_a_template(tree: Tree) -> None:
    tree.settings("/var/lib/ottla/a", "a")
    tree.settings("/data/b", "b")
    done = tree.ottla("install", "a", "b")
    assert done.rc == 0
    assert "systemctl enable --now ottla@a ottla@b" in done.out
    unit = tree.read("ottla@.service")
    assert " server start /etc/ottla/%i/server.properties --service\n" in unit
    assert "StateDirectory=ottla/%i\n" in unit
    assert "ReadWritePaths" not in unit
    assert "ReadWritePaths=/data/b\n" in tree.read("ottla@b.service.d/paths.conf")
    assert [each.split("\t")[0] for each in tree.ottla("status").out.splitlines()] == ["ottla@"]
    assert tree.ottla("uninstall", "b").rc == 0
    assert "etc/systemd/system/ottla@b.service.d/paths.conf" not in tree.files()
    assert tree.ottla("uninstall").rc == 0
    assert tree.files() == ["etc/ottla/a/server.properties", "etc/ottla/b/server.properties"]


def test_a_unit_that_was_changed_is_kept_until_replace(tree: Tree) -> None:
    tree.settings("/var/lib/ottla")
    tree.ottla("install")
    path = tree.root / "etc/systemd/system/ottla.service"
    written = path.read_text()
    path.write_text(written + "Nice=5\n")
    refused = tree.ottla("install")
    assert refused.rc == 1
    assert "ottla.service exists and was changed" in refused.err
    assert path.read_text() == written + "Nice=5\n"
    assert tree.ottla("install", "--replace").rc == 0
    assert path.read_text() == written


def test_a_unit_of_somebody_else_is_not_removed(tree: Tree) -> None:
    path = tree.root / "etc/systemd/system/ottla.service"
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nExecStart=/usr/bin/other\n")
    assert "is not ours" in (tree.settings("/data"), tree.ottla("install"))[1].err
    refused = tree.ottla("uninstall")
    assert refused.rc == 1
    assert "was not written by `ottla service install`" in refused.err
    assert path.exists()


def test_uninstall_leaves_settings_and_data_and_says_so(tree: Tree) -> None:
    tree.ottla("install", "--new-settings")
    data = tree.root / "var/lib/ottla"
    data.mkdir(parents=True)
    done = tree.ottla("uninstall")
    assert done.rc == 0
    assert f"The settings and the data stay: {tree.root}/etc/ottla, {data}" in done.out
    assert tree.files() == ["etc/ottla/server.properties"]
    assert "nothing is installed in" in tree.ottla("uninstall").err


@pytest.mark.parametrize(
    ("log_dirs", "sentence"),
    [
        ("/tmp/kafka-logs", "keeps the data in /tmp/kafka-logs, which a service sees as a folder of its own that is removed"),
        ("data", "names data, which depends on where the node is started: write the whole path in log.dirs"),
    ],
)
def test_data_that_a_service_would_lose_is_refused(tree: Tree, log_dirs: str, sentence: str) -> None:
    tree.settings(log_dirs)
    refused = tree.ottla("install")
    assert refused.rc == 1
    assert sentence in refused.err
    assert tree.files() == ["etc/ottla/server.properties"]


def test_without_settings_nothing_is_installed(tree: Tree) -> None:
    refused = tree.ottla("install")
    assert refused.rc == 1
    assert "server.properties does not exist: write the settings of the node there (`ottla storage sample" in refused.err
    assert "or add --new-settings for a single node with defaults" in refused.err
    assert tree.files() == []
    path = tree.settings("/data")
    path.write_text("listeners=what\n")
    refused = tree.ottla("install")
    assert refused.rc == 1
    assert f"{path}: node.id is not set" in refused.err
    assert tree.files() == ["etc/ottla/server.properties"]


def test_wrong_usage_is_refused() -> None:
    for arguments, sentence in (
        (["install", "a", "--new-settings"], "every node has settings of its own"),
        (["install", "a/b"], "'a/b' cannot name a node"),
        (["install", "--user", "--run-as", "x"], "a service of your own runs as you"),
        (["install", "--user", "--root", "/x"], "--root is for services of the system"),
    ):
        said = run_cli("service", *arguments)
        assert said.rc == 2, arguments
        assert sentence in said.err


def test_a_user_that_is_not_there_is_made_only_if_it_has_the_usual_name(tree: Tree) -> None:
    tree.settings("/data")
    assert "there is no user nobody-has-it" in tree.ottla("install", "--run-as", "nobody-has-it").err
    (tree.root / "etc/passwd").write_text("kafka:x:990:990::/:/bin/false\n")
    assert tree.ottla("install", "--run-as", "kafka").rc == 0
    assert "User=kafka\nGroup=kafka\n" in tree.read("ottla.service")
    assert "etc/sysusers.d/ottla.conf" not in tree.files()


def test_without_root_or_systemd_a_sentence_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Tree(tmp_path).settings("/data")
    monkeypatch.setattr(module.shutil, "which", lambda name: "/usr/bin/" + name)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    refused = run_cli("service", "install", "--settings", settings)
    assert refused.rc == 1
    assert "writing to /etc/systemd/system needs root: run it with sudo, or add --user" in refused.err
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    assert (
        "there is no systemd on this machine, as in most containers"
        in run_cli("service", "install", "--settings", settings).err
    )


def test_start_without_a_running_systemd_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if Path("/run/systemd/system").exists():
        pytest.skip("systemd runs on this machine")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(module.shutil, "which", lambda name: "/usr/bin/" + name)
    refused = run_cli("service", "install", "--user", "--new-settings", "--start", "--manager", "systemd")
    assert refused.rc == 1
    assert "systemd does not run on this machine: leave out --start" in refused.err
    assert list(tmp_path.iterdir()) == []


def test_a_service_of_ones_own_needs_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(module.shutil, "which", lambda name: "/usr/bin/" + name)
    done = run_cli("service", "install", "--user", "--new-settings", "--manager", "systemd")
    assert done.rc == 0, done.err
    unit = (tmp_path / "config/systemd/user/ottla.service").read_text()
    assert "User=" not in unit
    assert "WantedBy=default.target" in unit
    assert f"log.dirs={tmp_path}/share/ottla\n" in (tmp_path / "config/ottla/server.properties").read_text()
    assert "systemctl --user enable --now ottla" in done.out


def test_print_writes_nothing(tree: Tree) -> None:
    done = tree.ottla("install", "--print")
    assert done.rc == 0
    assert "[Service]\nType=notify\n" in done.out
    assert tree.files() == []


def test_words_of_a_unit_are_quoted() -> None:
    made = units.Service(["/opt/my $ottla/bin/ottla"], "/etc/50%/server.properties", user="ottla")
    assert '\nExecStart="/opt/my $$ottla/bin/ottla" server start /etc/50%%/server.properties --service\n' in units.systemd_unit(
        made
    )


def test_launchd_starts_it_again_after_a_failure(tree: Tree) -> None:
    tree.settings("/data")
    (tree.root / "etc/passwd").write_text("kafka:x:990:990::/:/bin/false\n")
    done = tree.ottla("install", "--manager", "launchd", "--run-as", "kafka")
    assert done.rc == 0, done.err
    path = tree.root / "Library/LaunchDaemons/ottla.plist"
    content = plistlib.loads(path.read_bytes())
    assert content["ProgramArguments"][-4:] == ["server", "start", "/etc/ottla/server.properties", "--service"]
    assert content["KeepAlive"] == {"SuccessfulExit": False}
    assert content["UserName"] == "kafka"
    assert f"launchctl bootstrap system {path}" in done.out
    assert tree.ottla("uninstall", "--manager", "launchd").rc == 0
    assert not path.exists()


SHOWN = """Id=ottla@a.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
MainPID=812
NRestarts=1
StatusText=recovering 12/340 logs

Id=ottla@b.service
LoadState=loaded
ActiveState=failed
SubState=failed
UnitFileState=disabled
MainPID=0
NRestarts=0
StatusText=

Id=ottla.service
LoadState=not-found
ActiveState=inactive
"""


def test_status_shows_what_systemd_and_the_node_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_is_controlled", lambda place: True)
    monkeypatch.setattr(module, "_shown", lambda place: module.parse_shown(SHOWN))
    said = run_cli("service", "status", "--manager", "systemd")
    assert said.rc == 1, "b does not run"
    assert said.out.splitlines()[0] == "ottla@a\tactive (running)\tenabled\t812\t1\trecovering 12/340 logs"
    rows = json.loads(run_cli("service", "status", "--json", "--manager", "systemd").out)
    assert rows[1] == {
        "service": "ottla@b", "state": "failed (failed)", "at_boot": "disabled",
        "process": None, "restarts": 0, "node_says": None,
    }  # fmt: skip


PAGE = (Path(__file__).parents[4] / "docs" / "service.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"ottla (service (?:install|uninstall|status)[^`\n|]*)", PAGE)))


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_of_the_page_are_understood(line: str, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is run on a file tree, with settings where it expects them."""
    words = [word for word in shlex.split(line) if word != "--start"]
    settings = tree.settings("/data")
    for instance in ("a", "b"):
        tree.settings("/data", instance)
    (tree.root / "etc/passwd").write_text("kafka:x:990:990::/:/bin/false\n")
    words = [str(settings) if word.startswith("/opt/kafka") else word for word in words]
    if "--root" in words:
        words[words.index("--root") + 1] = str(tree.root)
    elif "--user" not in words:
        words += ["--root", str(tree.root)]
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tree.root / name))
    monkeypatch.setattr(module.shutil, "which", lambda name: "/usr/bin/" + name)
    monkeypatch.setattr(module, "_is_controlled", lambda place: False)
    if words[1] == "uninstall":
        tree.ottla("install")
    said = run_cli(*words)
    assert said.rc == (1 if words[1] == "status" else 0), said.err


EXPOSURE_MAX = float(re.findall(r"rates it ([\d.]+) \|", PAGE)[0])
"""systemd's measure from 0 to 10: 10 without hardening. Network access alone is 0.5."""


@pytest.mark.slow  # systemd-analyze
@pytest.mark.parametrize("instances", [[], ["a"]])
def test_systemd_accepts_the_unit_and_finds_it_hardened(tree: Tree, instances: list[str]) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        raise Unavailable("systemd-analyze is not installed: Debian has it in the package systemd")
    for instance in instances or [""]:
        tree.settings("/data/x", instance)
    user = "daemon"  # one that systemd-analyze finds, and that is not root
    (tree.root / "etc/passwd").write_text(f"{user}:x:1:1::/:/bin/false\n")
    assert tree.ottla("install", "--run-as", user, *instances).rc == 0
    folder = tree.root / "etc/systemd/system"
    unit = folder / ("ottla@a.service" if instances else "ottla.service")
    if instances:
        shutil.copy(folder / "ottla@.service", unit)
    checked = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    rated = subprocess.run([analyze, "security", "--offline=true", unit], capture_output=True, text=True, check=False)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", rated.stdout)
    assert found is not None, rated.stdout + rated.stderr
    assert float(found[1]) <= EXPOSURE_MAX
    unit.write_text(unit.read_text().replace("WatchdogSec=30", "WatchdogSec=soon"))
    assert (
        "Failed to parse sec value"
        in subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True, check=False).stderr
    )
