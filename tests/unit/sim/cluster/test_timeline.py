"""A trace as a table: the state of every node beside what happened."""

from ottla.sim.loop import VirtualLoop
from ottla.sim.trace import Trace, timeline


def test_the_states_of_nodes_stand_beside_what_happened() -> None:
    trace = Trace(VirtualLoop())
    for who, what, detail in [
        ("n1", "start", "life 1"),
        ("n2", "start", "life 1"),
        ("n1", "up", ""),
        ("n1", "active", "controller in epoch 1"),
        ("producer-with-a-long-name", "delivered", "topic0-1:0 at 17"),
        ("n1", "pause", ""),
        ("n2", "active", "controller in epoch 2"),
        ("network", "storm", ""),
        ("n2", "power loss", ""),
    ]:
        trace.note(who, what, detail)
    at = "    0.000000  "
    assert timeline(trace.lines, ["n1", "n2"]) == [
        "        time  n1  n2",
        at + "..  --  n1 start life 1",
        at + "..  ..  n2 start life 1",
        at + "up  ..  n1 up",
        at + "C   ..  n1 active controller in epoch 1",
        at + "zz  ..  n1 pause",
        at + "zz  C   n2 active controller in epoch 2",
        at + "zz  C   network storm",
        at + "zz  --  n2 power loss",
    ]
