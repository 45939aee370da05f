"""`ottla features`: the feature levels of a cluster, such as metadata.version, and how they are raised and lowered.

Lines in a pipe, flags and exit codes are those of kafka-features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import click

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option, yes_option
from ottla.cli.common.output import confirm, is_for_people, print_json, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.spelling import Actions
from ottla.cli.storage import parse_features
from ottla.client.admin.cluster_state import FeatureMetadata, FeatureUpdate, UpgradeType, describe_features, update_features
from ottla.client.cluster import Cluster
from ottla.metadata import features as known

F = TypeVar("F", bound=Callable[..., Any])

EXAMPLES = """\b
Examples:
  ottla features describe
  ottla features upgrade --release-version 4.3           after every node runs the new release
  ottla features upgrade --feature group.version=1 --dry-run
  ottla features downgrade --metadata 4.2-IV1
  ottla features disable --feature group.version
"""
_HERE = "ottla.cli.features"
ACTIONS = {
    "describe": (_HERE, "describe", "Show the levels in effect, and those that are supported."),
    "upgrade": (_HERE, "upgrade", "Raise levels."),
    "downgrade": (_HERE, "downgrade", "Lower levels."),
    "disable": (_HERE, "disable", "Lower features to level 0."),
    "version-mapping": ("ottla.cli.storage", "version_mapping", "Show the levels of a release."),
    "feature-dependencies": ("ottla.cli.storage", "feature_dependencies", "Show what a level requires."),
}
HEADINGS = ("Feature", "Level", "Supported from", "to")
_FROM_RELEASE = (known.TRANSACTION_VERSION, known.GROUP_VERSION, known.ELIGIBLE_LEADER_REPLICAS_VERSION)
"""Features that follow a release. kraft.version does not: it changes how the quorum keeps its voters."""


@click.command("features", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
def features() -> None:
    """Show and change the feature levels of a cluster.

    After an upgrade of the software the levels stay as they were, so that the old release can still be started. Raise them when
    every node runs the new release. Takes the actions of Kafka's kafka-features.
    """


@click.command("describe")
@click.option("--node-id", type=click.IntRange(0), metavar="BROKER", help="Ask this broker.  [default: any]")
@json_option
@plain_option
@wide_option
@cluster_options(takes_controllers=True)
def describe(settings: ClientSettings, node_id: int | None, as_json: bool, plain: bool) -> None:
    """Show the levels in effect, and those that the broker that answers supports."""
    found = with_cluster(settings, lambda cluster: describe_features(cluster, node_id))
    names = sorted({*found.supported, *found.finalized})
    if as_json:
        print_json({"epoch": found.finalized_epoch, "features": [_as_json(found, name) for name in names]})
        return
    if is_for_people(as_json, plain):
        rows = [(name, _level(found, name), *_supported(found, name)) for name in names]
        print_table("features", HEADINGS, rows, [f"in effect since epoch {found.finalized_epoch}"])
        return
    for name in names:
        low, high = _supported(found, name)
        epoch = "-" if found.finalized_epoch is None else found.finalized_epoch
        say(
            f"Feature: {name:<40}  SupportedMinVersion: {low:<15}  SupportedMaxVersion: {high:<15}  "
            f"FinalizedVersionLevel: {_level(found, name):<15}  Epoch: {epoch}"
        )


def shown_level(name: str, level: int) -> str:
    """A level as people write it: metadata.version has names."""
    return known.metadata_version_name(level) if name == known.METADATA_VERSION else str(level)


def _level(found: FeatureMetadata, name: str) -> str:
    return shown_level(name, found.finalized[name].highest if name in found.finalized else 0)


def _supported(found: FeatureMetadata, name: str) -> tuple[str, str]:
    if name not in found.supported:
        return "-", "-"
    levels = found.supported[name]
    return shown_level(name, levels.lowest), shown_level(name, levels.highest)


def _as_json(found: FeatureMetadata, name: str) -> dict[str, Any]:
    level, supported = found.finalized.get(name), found.supported.get(name)
    return {
        "feature": name,
        "level": 0 if level is None else level.highest,
        "levelName": _level(found, name),
        "supported": None if supported is None else [supported.lowest, supported.highest],
    }


class Wanted(NamedTuple):
    """The levels that a command names."""

    metadata: str | None
    levels: tuple[tuple[str, int], ...]
    release_version: str | None


def _level_options(function: F) -> F:
    """The flags that name levels, which upgrade and downgrade share; --dry-run."""
    decorated: Any = function
    for option in reversed(
        (
            click.option("--metadata", metavar="VERSION", help="The level of metadata.version, such as 4.3-IV0 or 4.3."),
            click.option(
                "--feature", "-f", "levels", multiple=True, metavar="NAME=LEVEL", callback=parse_features,
                help="A feature and its level. Repeatable.",
            ),
            click.option("--release-version", "-r", help="All levels of a release, such as 4.3, that the cluster supports."),
            _dry_run,
        )
    ):  # fmt: skip
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # click's decorators return the function they decorate


_dry_run = click.option("--dry-run", is_flag=True, help="Only check whether the cluster would do it.")
_unsafe = click.option("--unsafe", is_flag=True, help="Also if metadata is lost that the lower level cannot represent.")


@click.command("upgrade")
@_level_options
@cluster_options(takes_controllers=True)
def upgrade(
    settings: ClientSettings,
    metadata: str | None,
    levels: tuple[tuple[str, int], ...],
    release_version: str | None,
    dry_run: bool,
) -> int:
    """Raise levels. Going back may be impossible: --dry-run first, and only when every node runs the new release."""
    return _change(settings, Wanted(metadata, levels, release_version), UpgradeType.UPGRADE, dry_run)


@click.command("downgrade")
@_level_options
@_unsafe
@yes_option
@cluster_options(takes_controllers=True)
def downgrade(
    settings: ClientSettings,
    metadata: str | None,
    levels: tuple[tuple[str, int], ...],
    release_version: str | None,
    dry_run: bool,
    unsafe: bool,
    yes: bool,
) -> int:
    """Lower levels, before an older release is started."""
    _ask_if_unsafe(unsafe, dry_run, yes)
    kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
    return _change(settings, Wanted(metadata, levels, release_version), kind, dry_run)


@click.command("disable")
@click.option("--feature", "-f", "names", multiple=True, required=True, metavar="NAME", help="A feature. Repeatable.")
@_unsafe
@_dry_run
@yes_option
@cluster_options(takes_controllers=True)
def disable(settings: ClientSettings, names: tuple[str, ...], unsafe: bool, dry_run: bool, yes: bool) -> int:
    """Lower features to level 0."""
    _ask_if_unsafe(unsafe, dry_run, yes)
    kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
    return _update(settings, dict.fromkeys(names, 0), kind, dry_run, "disable")


def _ask_if_unsafe(unsafe: bool, dry_run: bool, yes: bool) -> None:
    if unsafe and not dry_run:
        confirm("An unsafe downgrade may lose metadata. Do it?", yes)


def _change(settings: ClientSettings, wanted: Wanted, kind: UpgradeType, dry_run: bool) -> int:
    verb = "upgrade" if kind == UpgradeType.UPGRADE else "downgrade"
    if wanted.release_version is not None:
        if wanted.metadata is not None or wanted.levels:
            raise click.UsageError("--release-version names all levels: give it alone")
        supported = with_cluster(settings, describe_features).supported
        levels = release_levels(wanted.release_version, verb, supported)
    else:
        levels = dict(wanted.levels)
        if wanted.metadata is not None:
            levels[known.METADATA_VERSION] = _metadata_level(wanted.metadata)
    if not levels:
        raise click.UsageError(f"say what to {verb}: --release-version 4.3, --metadata 4.3-IV0 or --feature group.version=1")
    return _update(settings, levels, kind, dry_run, verb)


def release_levels(release: str, verb: str, supported: Mapping[str, Any]) -> dict[str, int]:
    """The levels of a release, of the features that the cluster supports. An upgrade sets none to 0."""
    metadata = _metadata_level(release)
    defaults = known.default_levels(metadata)
    levels = {known.METADATA_VERSION: metadata}
    levels |= {name: defaults.get(name, 0) for name in _FROM_RELEASE if name in supported}
    return {name: level for name, level in levels.items() if level or verb != "upgrade"}


def _metadata_level(text: str) -> int:
    level = known.metadata_version_of(text)
    if level is None:
        names = ", ".join(version.name for version in known.METADATA_VERSIONS.values())
        raise click.UsageError(f"there is no metadata.version {text!r}: use one of {names}")
    return level


def _update(settings: ClientSettings, levels: Mapping[str, int], kind: UpgradeType, dry_run: bool, verb: str) -> int:
    """Change the levels; a line for each, as kafka-features prints it."""

    async def work(cluster: Cluster) -> dict[str, str | None]:
        updates = {name: FeatureUpdate(level, kind) for name, level in levels.items()}
        results = await update_features(cluster, updates, validate_only=dry_run)
        return {name: None if (error := results.errors.get(name)) is None else str(error) for name in updates}

    failures = 0
    for name, error in with_cluster(settings, work).items():
        to = "" if verb == "disable" else f" to {shown_level(name, levels[name])}"
        if error is None:
            say(f"{name} {'can be' if dry_run else 'was'} {_done(verb)}{to}.")
        else:
            failures += 1
            warn(f"{'Can not' if dry_run else 'Could not'} {verb} {name}{to}: {error}")
    if failures:
        warn(f"{failures} out of {len(levels)} operation(s) failed.")
    return 1 if failures else 0


def _done(verb: str) -> str:
    return f"{verb}d" if verb.endswith("e") else f"{verb}ed"
