"""Sample `server.properties` files to begin with: one node, or three nodes that make a cluster.

The folder `config/` of a checkout has the same files; `ottla storage sample` writes them.
"""

from __future__ import annotations

ONE_NODE = "server.properties"
THREE_NODES = ("server-1.properties", "server-2.properties", "server-3.properties")

_HOW_TO_START_ONE = """\
# One node that is broker and controller. Format its log directory once, then start it:
#
#   ottla storage format --standalone -t $(ottla storage random-uuid) -c {name}
#   ottla server start {name}
"""

_HOW_TO_START_THREE = """\
# Node {number} of three that make a cluster, each broker and controller: one of them may fail, and the others go on. Format the
# log directory of each once, with the same cluster id and the same list of first controllers, then start all three:
#
#   NEW="ottla storage random-uuid"
#   ID=$($NEW)
#   CONTROLLERS={controllers}
#   for n in 1 2 3; do ottla storage format -t $ID --initial-controllers $CONTROLLERS -c server-$n.properties; done
#   for n in 1 2 3; do ottla server start server-$n.properties --log-dir logs/node-$n & done
"""

_BODY = """\

# What this node does. On three nodes, all are both; in a large cluster, controllers are nodes of their own.
process.roles=broker,controller

# Unique in the cluster, and never changed.
node.id={number}

# Where the node listens: PLAINTEXT for clients and brokers, CONTROLLER for controllers. For clients on other machines, leave
# the hosts out to listen on all addresses (PLAINTEXT://:{port}), and say by which name clients reach this one:
#   advertised.listeners=PLAINTEXT://this-machine.example.com:{port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT

# Where controllers are found: at least one that is up.
controller.quorum.bootstrap.servers={bootstrap}

# Where the data is; several directories, one on each disk, are separated by commas. Relative to the folder of the start.
log.dirs={folder}

# New topics, also those that a client creates by sending to them.
num.partitions=1
default.replication.factor={replicas}
# With acks=all a record is acknowledged when this many replicas have it.
min.insync.replicas={in_sync}

# Internal topics: committed offsets of groups, and transactions.
offsets.topic.replication.factor={replicas}
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr={in_sync}

# How long records are kept: 7 days, whatever their size. Topics may have their own retention.ms and retention.bytes.
log.retention.hours=168
#log.retention.bytes=1073741824
log.segment.bytes=1073741824
{session}
# Metrics for Prometheus, at http://{host}:{metrics_port}/metrics.
#ottla.metrics.port={metrics_port}
"""

_SESSION = """
# After this long without a heartbeat a broker counts as dead, and its leaders move. For a failover in about 3 s:
#broker.session.timeout.ms=3000
#broker.heartbeat.interval.ms=300
"""


def one_node(host: str = "localhost", port: int = 9092) -> dict[str, str]:
    """The file of a single node: its name → its text."""
    body = _BODY.format(
        number=1,
        host=host,
        port=port,
        controller_port=port + 1,
        bootstrap=f"{host}:{port + 1}",
        folder="data",
        replicas=1,
        in_sync=1,
        session="",
        metrics_port=9404,
    )
    return {ONE_NODE: _HOW_TO_START_ONE.format(name=ONE_NODE) + body}


def three_nodes(host: str = "localhost", port: int = 9092) -> dict[str, str]:
    """The files of three nodes: name → text. Brokers listen from `port` on, controllers 10000 ports above."""
    controller_ports = [port + 10_000 + offset for offset in range(3)]
    files = {}
    for number, name in enumerate(THREE_NODES, 1):
        controllers = ",".join(f"{n}@{host}:{each}:$($NEW)" for n, each in enumerate(controller_ports, 1))
        body = _BODY.format(
            number=number,
            host=host,
            port=port + number - 1,
            controller_port=controller_ports[number - 1],
            bootstrap=",".join(f"{host}:{each}" for each in controller_ports),
            folder=f"data/node-{number}",
            replicas=3,
            in_sync=2,
            session=_SESSION,
            metrics_port=9403 + number,
        )
        files[name] = _HOW_TO_START_THREE.format(number=number, controllers=controllers) + body
    return files
