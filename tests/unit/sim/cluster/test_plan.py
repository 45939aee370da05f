"""Plans of runs with several nodes."""

from ottla.sim.cluster.plan import AT_ONCE, DISK_KINDS, JOIN_KINDS, KINDS, LOSES_POWER, make_cluster_plan
from ottla.sim.plan import FLUSHED


def test_unsynced_writes_are_lost_only_where_all_is_synced_before_it_is_acknowledged() -> None:
    for seed in range(200):
        plan = make_cluster_plan(seed)
        if any(trouble.kind in LOSES_POWER for trouble in plan.troubles):
            assert FLUSHED.items() <= plan.base.settings.items()


def test_every_kind_of_trouble_and_of_quorum_is_planned() -> None:
    plans = [make_cluster_plan(seed) for seed in range(200)]
    assert {trouble.kind for plan in plans for trouble in plan.troubles} == {*KINDS, "lonely leader"}
    assert {plan.is_static for plan in plans} == {True, False}


def test_with_replicas_every_producer_waits_for_all_that_are_in_sync() -> None:
    plans = [make_cluster_plan(seed, replicas=3) for seed in range(30)]
    assert {plan.replication_factor for plan in plans} == {3}
    assert {producer.acks for plan in plans for producer in plan.base.producers} == {-1}
    assert {plan.base.settings["min.insync.replicas"] for plan in plans} == {"2", "3"}


def test_clocks_are_not_fast_where_members_have_sessions() -> None:
    for seed in range(200):
        plan = make_cluster_plan(seed)
        assert not plan.base.groups or max(plan.rates) <= 1.0


def test_replicas_lose_unsynced_writes_and_meet_troubles_of_joins() -> None:
    plans = [make_cluster_plan(seed, replicas=3) for seed in range(100)]
    unsynced = {trouble.kind for plan in plans if not plan.base.is_flushed for trouble in plan.troubles}
    assert {"power", *JOIN_KINDS} <= unsynced
    assert not unsynced & AT_ONCE.keys(), "whether a node may end is decided when it ends"


def test_disks_are_lost_or_full_only_where_partitions_have_replicas() -> None:
    replicated = [make_cluster_plan(seed, replicas=3) for seed in range(40)]
    assert {*DISK_KINDS} <= {trouble.kind for plan in replicated for trouble in plan.troubles}
    for seed in range(40):
        assert not make_cluster_plan(seed).has_wipes
        assert len(make_cluster_plan(seed).troubles) <= len(replicated[seed].troubles)


def test_of_five_nodes_three_or_all_are_controllers() -> None:
    assert {make_cluster_plan(seed, nodes=5).controllers for seed in range(20)} == {3, None}
    assert {make_cluster_plan(seed, nodes=3).controllers for seed in range(20)} == {None}


def test_voters_change_only_where_the_metadata_log_has_them() -> None:
    plans = [make_cluster_plan(seed, replicas=3) for seed in range(60)]
    changed = [plan for plan in plans if any(trouble.kind == "voter change" for trouble in plan.troubles)]
    assert changed
    assert not any(plan.is_static for plan in changed)


def test_nodes_are_replaced_where_the_settings_do_not_name_them_as_voters() -> None:
    for nodes in (3, 5):
        plans = [make_cluster_plan(seed, nodes, replicas=3) for seed in range(120)]
        replaced = [(plan, trouble) for plan in plans for trouble in plan.troubles if trouble.kind == "replace"]
        assert {plan.nodes_max for plan, _ in replaced} == {nodes + 1}
        assert all(plan.has_wipes for plan, _ in replaced)
        static = [(plan, trouble) for plan, trouble in replaced if plan.is_static]
        assert bool(static) is (nodes == 5), "of three nodes all are controllers"
        assert all(plan.controllers == 3 and trouble.node >= 3 and not trouble.is_aimed for plan, trouble in static)
    assert not any(trouble.kind == "replace" for seed in range(40) for trouble in make_cluster_plan(seed).troubles)


def test_records_rot_where_segments_are_closed_and_nodes_do_not_all_end() -> None:
    plans = [make_cluster_plan(seed, replicas=3) for seed in range(60)]
    rotten = [plan for plan in plans if any(trouble.kind == "rot" for trouble in plan.troubles)]
    assert rotten
    assert {plan.base.scene for plan in rotten} == {"logs"}
    assert not any(trouble.kind == "kill all" for plan in rotten for trouble in plan.troubles)
