"""The list of actions."""

import subprocess
import sys

from tests.support.servers.ottla_cli import run_cli

from ottla.cli.pipeline.command import ACTIONS


def test_help_names_every_action() -> None:
    said = run_cli("pipeline", "--help")
    assert said.rc == 0
    for name, (_, _, text) in ACTIONS.items():
        assert f"  {name} " in said.out
        assert text.split()[0] in said.out
        assert run_cli("pipeline", name, "--help").rc == 0


def test_help_does_not_import_pyspark() -> None:
    script = "import sys\nfrom ottla.cli.main import main\ntry: main(['pipeline', 'run', '--help'])\nexcept SystemExit: pass\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}print('pyspark' in sys.modules)"], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("False\n")


def test_without_pyspark_a_sentence_says_what_to_install(tmp_path: object) -> None:
    script = "import sys\nsys.modules['pyspark'] = None\nfrom ottla.cli.main import main\nmain(sys.argv[1:])"
    command = [sys.executable, "-c", script, "pipeline"]
    subprocess.run([*command, "init", f"{tmp_path}/p"], check=True, capture_output=True)
    validate = [*command, "validate", f"{tmp_path}/p", "--no-cluster"]
    done = subprocess.run(validate, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "ottla: this needs PySpark 4.3, which is not installed: pip install 'ottla[spark]'\n",
    )
