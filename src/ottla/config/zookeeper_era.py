"""What to change in a `server.properties` that was written for Kafka with ZooKeeper: everything at once, line by line."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.notices import REMOVED
from ottla.config.values import InvalidConfig

_BROKER_PORT, _CONTROLLER_PORT = 9092, 9093
_MAP = "listener.security.protocol.map"
_LAST = (
    "Then format the log directories, for example: ottla storage format --standalone -t $(ottla storage random-uuid) -c FILE. "
    "To keep the records of a ZooKeeper cluster, migrate it with Kafka 3.9 first"
)


def is_of_zookeeper_era(settings: Mapping[str, str]) -> bool:
    """Whether the file is one for a broker that finds its cluster through ZooKeeper."""
    return not settings.get("process.roles", "").strip() and any(name.startswith("zookeeper.") for name in settings)


def refuse(settings: Mapping[str, str]) -> InvalidConfig:
    """The refusal of such a file. It shows no values but ids and listeners."""
    changes = ["add      process.roles=broker,controller"]
    added = {"process.roles": "broker,controller", "controller.listener.names": "CONTROLLER"}
    if "node.id" not in settings:
        old = settings.get("broker.id", "").strip()
        added["node.id"] = old if old.isdigit() else "1"
        changes.append(f"{f'replace  broker.id={old} by ' if old else 'add      '}node.id={added['node.id']}")
    listeners = settings.get("listeners", "").strip()
    taken = f"{listeners}:{settings.get('port', '').strip()}"
    port = next(each for each in range(_CONTROLLER_PORT, 1 << 16) if f":{each}" not in taken)
    added["listeners"] = f"{listeners or _address(settings, 'host.name', 'port')},CONTROLLER://:{port}"
    changes.append(f"{f'replace  listeners={listeners} by ' if listeners else 'add      '}listeners={added['listeners']}")
    moved = {} if listeners else dict.fromkeys(("host.name", "port"), "listeners has it")
    if settings.get("advertised.host.name", "").strip() and "advertised.listeners" not in settings:
        added["advertised.listeners"] = _address(settings, "advertised.host.name", "advertised.port", "port")
        changes.append(f"add      advertised.listeners={added['advertised.listeners']}")
        moved |= dict.fromkeys(("advertised.host.name", "advertised.port"), "advertised.listeners has it")
    added["controller.quorum.bootstrap.servers"] = f"localhost:{port}"
    changes.append("add      controller.listener.names=CONTROLLER")
    changes.append(f"add      controller.quorum.bootstrap.servers=localhost:{port}")
    protocols = settings.get(_MAP, "").strip()
    added[_MAP] = f"{protocols or BROKER_KEYS.default_of(_MAP)},CONTROLLER:PLAINTEXT"  # without a map of its own, Ottla adds it
    if protocols:
        changes.append(f"replace  {_MAP}={protocols} by {_MAP}={added[_MAP]}")
    kept = {name: value for name, value in settings.items() if name != "broker.id"}
    for name in sorted(settings):
        if name in REMOVED or name.startswith("zookeeper."):
            del kept[name]
            reason = moved.get(name) or REMOVED.get(name, "").removesuffix("; drop it")
            changes.append(f"remove   {name}{f' ({reason})' if reason else ''}")
    changes += [f"correct  {mistake}" for mistake in _mistakes(kept | added)]
    first = "the file is written for Kafka with ZooKeeper, which neither Kafka 4 nor Ottla has. Change it:"
    return InvalidConfig("process.roles", "\n".join([first, *(f"  {change}" for change in changes), _LAST]))


def _address(settings: Mapping[str, str], host: str, *ports: str) -> str:
    """The listener of a broker whose host and port were settings of their own."""
    given = [settings[name].strip() for name in ports if settings.get(name, "").strip()]
    return f"PLAINTEXT://{settings.get(host, '').strip()}:{given[0] if given else _BROKER_PORT}"


def _mistakes(settings: Mapping[str, str]) -> list[str]:
    """What else keeps the node from starting: every value that cannot be, or else the first combination."""
    from ottla.config.broker import BrokerConfig

    found = []
    for name, text in sorted(settings.items()):
        try:
            BROKER_KEYS.parse_known({name: text})
        except InvalidConfig as mistake:
            found.append(str(mistake))
    if not found:
        try:
            BrokerConfig.from_settings(settings)
        except InvalidConfig as mistake:
            found.append(str(mistake))
    return found
