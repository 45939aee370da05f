"""The public names of the package, and that they are imported late."""

import subprocess
import sys

import pytest

import ottla.testing


def test_every_name_is_there() -> None:
    for name in ottla.testing.__all__:
        assert getattr(ottla.testing, name).__name__ == name
        assert name in dir(ottla.testing)
    with pytest.raises(AttributeError, match="no attribute 'Brokr'"):
        _ = ottla.testing.Brokr


def test_a_broker_that_is_not_started_imports_no_node() -> None:
    code = "import sys; from ottla.testing import Broker; Broker(); print('ottla.broker.node' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
