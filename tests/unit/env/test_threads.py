"""The contract for threads: its implementation has all of its methods, with the same arguments."""

import inspect

import pytest

from ottla.env import threads as contract
from ottla.env.real.threads import RealLoopThread, RealThreads


@pytest.mark.parametrize(("wanted", "real"), [(contract.Threads, RealThreads), (contract.LoopThread, RealLoopThread)])
def test_the_real_class_keeps_the_contract(wanted: type, real: type) -> None:
    methods = {name: member for name, member in vars(wanted).items() if inspect.isfunction(member) and name[0] != "_"}
    assert methods
    for name, method in methods.items():
        assert list(inspect.signature(getattr(real, name)).parameters) == list(inspect.signature(method).parameters), name
