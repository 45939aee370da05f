"""Which traffic each node must hold back."""

from ottla.testing.cluster.cuts import BOTH, CLIENTS, IN, OUT, CutRule, blocked_at


def test_a_node_that_is_cut_off_receives_and_sends_nothing() -> None:
    rule = CutRule(2, ("1", "3", CLIENTS), BOTH)
    assert blocked_at(2, [rule]) == {"1": (True, True), "3": (True, True), CLIENTS: (True, True)}
    assert blocked_at(1, [rule]) == {"2": (True, True)}


def test_one_way_cuts_name_the_direction_at_both_ends() -> None:
    nothing_in, nothing_out = CutRule(2, ("1", CLIENTS), IN), CutRule(2, ("1", CLIENTS), OUT)
    assert blocked_at(2, [nothing_in]) == {"1": (True, False), CLIENTS: (True, False)}
    assert blocked_at(1, [nothing_in]) == {"2": (False, True)}
    assert blocked_at(2, [nothing_out]) == {"1": (False, True), CLIENTS: (False, True)}
    assert blocked_at(1, [nothing_out]) == {"2": (True, False)}


def test_cuts_add_up_and_leave_others_alone() -> None:
    rules = [CutRule(1, ("2",), IN), CutRule(1, ("2",), OUT)]
    assert blocked_at(1, rules) == {"2": (True, True)}
    assert blocked_at(3, rules) == {}


def test_clients_of_one_node_do_not_concern_another() -> None:
    assert blocked_at(1, [CutRule(2, (CLIENTS,), BOTH)]) == {}
