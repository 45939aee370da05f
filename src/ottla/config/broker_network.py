"""Parses and checks a node's identity and network settings: node id, roles, listeners and quorum.

The rules are Kafka's for KRaft nodes. controller.listener.names names a controller's listeners, which must be in listeners; a
node that is only a broker must not have them. Advertised listeners must exist and be routable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.broker_security import ListenerSecurity, listener_security
from ottla.config.listeners import (
    PLAINTEXT,
    Listener,
    Voter,
    parse_address,
    parse_listeners,
    parse_protocol_map,
    parse_voters,
)
from ottla.config.values import InvalidConfig, Value

_UNROUTABLE = "0.0.0.0"


def network_values(settings: Mapping[str, str], value_of: Callable[[str], Value], hostname: str) -> dict[str, Any]:
    """The attributes of `BrokerConfig` for identity and network. Raises `InvalidConfig`."""
    node_id = _node_id(settings, value_of)
    roles = _roles(value_of)
    controller_names = tuple(name.upper() for name in _words(value_of("controller.listener.names")))
    if not controller_names:
        raise InvalidConfig(
            "controller.listener.names",
            "controller.listener.names is not set: name the listener of the controllers, such as CONTROLLER",
        )
    protocols = _protocols(settings, value_of, controller_names)
    listeners = parse_listeners("listeners", _words(value_of("listeners")), protocols)
    _check_listeners(listeners)
    _check_controller_listeners(roles, controller_names, listeners, protocols)
    advertised = parse_listeners("advertised.listeners", _words(value_of("advertised.listeners")), protocols)
    voters = parse_voters("controller.quorum.voters", _words(value_of("controller.quorum.voters")))
    own_address = next(((voter.host, voter.port) for voter in voters if voter.id == node_id), None)
    for_brokers, for_controllers = _advertised(listeners, advertised, controller_names, own_address, hostname)
    _check_advertised(roles, listeners, for_brokers + for_controllers, for_brokers)
    bootstrap = tuple(
        parse_address("controller.quorum.bootstrap.servers", entry)
        for entry in _words(value_of("controller.quorum.bootstrap.servers"))
    )
    _check_quorum(node_id, roles, voters, bootstrap)
    inter_broker_name = _inter_broker_name(settings, value_of, roles, for_brokers)
    return {
        "node_id": node_id,
        "process_roles": roles,
        "listeners": listeners,
        "advertised_listeners": for_brokers,
        "advertised_controller_listeners": for_controllers,
        "listener_security_protocol_map": protocols,
        "controller_listener_names": controller_names,
        "inter_broker_listener_name": inter_broker_name,
        "listener_security": _security(settings, roles, listeners, protocols, controller_names, inter_broker_name),
        "controller_quorum_voters": voters,
        "controller_quorum_bootstrap_servers": bootstrap,
        "max_connections_per_ip_overrides": _overrides(str(value_of("max.connections.per.ip.overrides") or "")),
        "listener_max_connections": _listener_limits("max.connections", settings, listeners),
        "listener_max_connection_creation_rate": _listener_limits("max.connection.creation.rate", settings, listeners),
    }


def _words(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _node_id(settings: Mapping[str, str], value_of: Callable[[str], Value]) -> int:
    node_id, broker_id = value_of("node.id"), value_of("broker.id")
    if node_id is None and "broker.id" in settings:
        node_id = broker_id
    if not isinstance(node_id, int) or node_id < 0:
        raise InvalidConfig("node.id", "node.id is not set: give each node of the cluster a number of its own, from 0 on")
    if "broker.id" in settings and broker_id != node_id:
        raise InvalidConfig("broker.id", f"broker.id={broker_id} and node.id={node_id} differ: drop the older name, broker.id")
    return node_id


def _roles(value_of: Callable[[str], Value]) -> tuple[str, ...]:
    roles = _words(value_of("process.roles"))
    if not roles:
        raise InvalidConfig(
            "process.roles", "process.roles is not set: a node that does it all has process.roles=broker,controller"
        )
    return roles


def _protocols(
    settings: Mapping[str, str], value_of: Callable[[str], Value], controller_names: tuple[str, ...]
) -> dict[str, str]:
    """The protocol map. If it is not set and no listener uses TLS or SASL, controller listeners default to PLAINTEXT."""
    name = "listener.security.protocol.map"
    protocols = parse_protocol_map(name, str(value_of(name)))
    if name not in settings:
        in_use = [entry.partition("://")[0].upper() for entry in _words(value_of("listeners"))]
        if not any(each in ("SSL", "SASL_SSL", "SASL_PLAINTEXT") for each in (*in_use, *controller_names)):
            protocols |= {each: PLAINTEXT for each in controller_names if each not in protocols}
    return protocols


def _check_listeners(listeners: tuple[Listener, ...]) -> None:
    for listener in listeners:
        clash = next(
            (o for o in listeners if o is not listener and o.port == listener.port != 0 and not _one_of_each(o, listener)), None
        )
        if clash is not None:
            raise InvalidConfig(
                "listeners",
                f"listeners {listener.name} and {clash.name} both want port {listener.port}: give each a port of its own",
            )


def _one_of_each(first: Listener, second: Listener) -> bool:
    """Whether one has an IPv4 address and the other an IPv6 address: then they may share a port."""
    return {":" in first.host, ":" in second.host} == {True, False} and _is_address(first.host) and _is_address(second.host)


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _check_controller_listeners(
    roles: tuple[str, ...], names: tuple[str, ...], listeners: tuple[Listener, ...], protocols: Mapping[str, str]
) -> None:
    own = [listener.name for listener in listeners if listener.name in names]
    if "controller" in roles:
        missing = [name for name in names if name not in own]
        if missing:
            raise InvalidConfig(
                "controller.listener.names",
                f"controller.listener.names has {', '.join(missing)}, which listeners does not: add {missing[0]}://:9093 to "
                "listeners, or drop the name",
            )
        if "broker" not in roles and len(own) != len(listeners):
            others = ", ".join(listener.name for listener in listeners if listener.name not in names)
            raise InvalidConfig(
                "listeners",
                f"listeners has {others}, but with process.roles=controller only those of controller.listener.names may be",
            )
        return
    if own:
        raise InvalidConfig(
            "listeners",
            f"listeners has {', '.join(own)}, a controller's listener, but process.roles=broker: take it out of listeners",
        )
    for name in names:
        if name not in protocols:
            raise InvalidConfig(
                "listener.security.protocol.map",
                f"listener.security.protocol.map does not map the controllers' listener {name}: add {name}:PLAINTEXT to it",
            )


def _advertised(
    listeners: tuple[Listener, ...],
    advertised: tuple[Listener, ...],
    controller_names: tuple[str, ...],
    own_address: tuple[str, int] | None,
    hostname: str,
) -> tuple[tuple[Listener, ...], tuple[Listener, ...]]:
    """The advertised listeners for brokers and for controllers. Without advertised.listeners, a listener advertises itself.

    A controller that listens on all addresses advertises its address in controller.quorum.voters (`own_address`) for the first
    of controller.listener.names. Otherwise, as for brokers, it advertises `hostname`.
    """
    explicit = {listener.name: listener for listener in advertised}

    def of_broker(listener: Listener) -> Listener:
        is_everywhere = not listener.host or (listener.host == "::" and listener.name not in explicit)
        return listener._replace(host=hostname) if is_everywhere else listener

    def of_controller(listener: Listener) -> Listener:
        if listener.name in explicit:
            return explicit[listener.name]
        if listener.host not in ("", "0.0.0.0", "::"):
            return listener
        if own_address is not None and listener.name == controller_names[0]:
            return listener._replace(host=own_address[0], port=own_address[1])
        return listener._replace(host=hostname)

    return (
        tuple(of_broker(each) for each in advertised or listeners if each.name not in controller_names),
        tuple(of_controller(each) for each in listeners if each.name in controller_names),
    )


def _check_advertised(
    roles: tuple[str, ...], listeners: tuple[Listener, ...], advertised: tuple[Listener, ...], for_brokers: tuple[Listener, ...]
) -> None:
    for listener in advertised:
        if listener.host == _UNROUTABLE:
            raise InvalidConfig(
                "advertised.listeners",
                f"{listener} would be advertised to clients, who cannot connect to {listener.host}: set advertised.listeners "
                "to an address they can reach",
            )
    if "broker" not in roles:
        return
    if not for_brokers:
        raise InvalidConfig(
            "listeners", "there is no listener for clients: all of listeners are named by controller.listener.names"
        )
    bound = {listener.name for listener in listeners}
    for listener in for_brokers:
        if listener.name not in bound:
            raise InvalidConfig(
                "advertised.listeners",
                f"advertised.listeners has {listener.name}, which listeners does not: add it there, or drop it here",
            )


def _check_quorum(
    node_id: int, roles: tuple[str, ...], voters: tuple[Voter, ...], bootstrap: tuple[tuple[str, int], ...]
) -> None:
    if not voters and not bootstrap:
        raise InvalidConfig(
            "controller.quorum.bootstrap.servers",
            "neither controller.quorum.bootstrap.servers nor controller.quorum.voters is set: name where the controllers are, "
            "such as controller.quorum.bootstrap.servers=localhost:9093",
        )
    ids = [voter.id for voter in voters]
    if len(set(ids)) != len(ids):
        raise InvalidConfig("controller.quorum.voters", "controller.quorum.voters has an id twice: each node may come once")
    if voters and "controller" in roles and node_id not in ids:
        raise InvalidConfig(
            "controller.quorum.voters",
            f"node {node_id} is a controller, but controller.quorum.voters names only {', '.join(map(str, ids))}: add it there",
        )
    if roles == ("broker",) and node_id in ids:
        raise InvalidConfig(
            "controller.quorum.voters",
            f"node {node_id} is only a broker, but controller.quorum.voters has it: take it out, or add the controller role",
        )


def _inter_broker_name(
    settings: Mapping[str, str],
    value_of: Callable[[str], Value],
    roles: tuple[str, ...],
    for_brokers: tuple[Listener, ...],
) -> str:
    explicit = value_of("inter.broker.listener.name")
    if explicit is not None and "security.inter.broker.protocol" in settings:
        raise InvalidConfig(
            "inter.broker.listener.name", "set only one of inter.broker.listener.name and security.inter.broker.protocol"
        )
    name = str(explicit or value_of("security.inter.broker.protocol")).strip().upper()
    if "broker" in roles and name not in (listener.name for listener in for_brokers):
        raise InvalidConfig(
            "inter.broker.listener.name",
            f"brokers would reach each other at listener {name}, which is not advertised: set inter.broker.listener.name to "
            f"one of {', '.join(listener.name for listener in for_brokers)}",
        )
    return name


def _security(
    settings: Mapping[str, str],
    roles: tuple[str, ...],
    listeners: tuple[Listener, ...],
    protocols: Mapping[str, str],
    controller_names: tuple[str, ...],
    inter_broker_name: str,
) -> dict[str, ListenerSecurity]:
    """The security of all listeners that this node opens or connects to."""
    connected = {controller_names[0]: "sasl.mechanism.controller.protocol"}
    if "broker" in roles:
        connected[inter_broker_name] = "sasl.mechanism.inter.broker.protocol"
    return listener_security(settings, protocols, [each.name for each in listeners], connected)


def _overrides(text: str) -> dict[str, int]:
    """Parse `host:count,…`. The last colon separates, because an IPv6 host has colons itself."""
    name = "max.connections.per.ip.overrides"
    overrides: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = entry.rpartition(":")
        if not host or not count.strip().isdigit():
            raise InvalidConfig(name, f"{name} has {entry!r}: write host:count, such as 10.0.0.1:50")
        overrides[host.strip()] = int(count)
    return overrides


def _listener_limits(setting: str, settings: Mapping[str, str], listeners: tuple[Listener, ...]) -> dict[str, int]:
    limits: dict[str, int] = {}
    for listener in listeners:
        name = f"listener.name.{listener.name.lower()}.{setting}"
        if name in settings:
            limit = BROKER_KEYS[setting].parse(settings[name])
            assert isinstance(limit, int)
            limits[listener.name] = limit
    return limits
