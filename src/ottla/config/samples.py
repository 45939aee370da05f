"""Sample `server.properties` files to begin with: one node, or three nodes that make a cluster.

The folder `config/` of a checkout has the same files; `ottla storage sample` writes them. With a password for the user `admin`
they are secured: TLS with the certificates that `ottla certs` makes, logins by SCRAM, access control.
"""

from __future__ import annotations

ONE_NODE = "server.properties"
THREE_NODES = ("server-1.properties", "server-2.properties", "server-3.properties")

_HOW_TO_START_ONE = """\
# One node that is broker and controller. Format its log directory once, then start it:
#
#{certificates}   ottla storage format --standalone -t $(ottla storage random-uuid) -c {name}{users}
#   ottla server start {name}
"""

_HOW_TO_START_THREE = """\
# Node {number} of three that make a cluster, each broker and controller: one of them may fail, and the others go on. Format the
# log directory of each once, with the same cluster id and the same list of first controllers, then start all three:
#
#{certificates}   NEW="ottla storage random-uuid"
#   ID=$($NEW)
#   CONTROLLERS={controllers}
#   for n in 1 2 3; do ottla storage format -t $ID --initial-controllers $CONTROLLERS -c server-$n.properties{users}; done
#   for n in 1 2 3; do ottla server start server-$n.properties --log-dir logs/node-$n & done
"""

_BODY = """\

# What this node does. On three nodes, all are both; in a large cluster, controllers are nodes of their own.
process.roles=broker,controller

# Unique in the cluster, and never changed.
node.id={number}

# Where the node listens: {protocol} for clients and brokers, CONTROLLER for controllers. For clients on other machines, leave
# the hosts out to listen on all addresses ({protocol}://:{port}), and say by which name clients reach this one:
#   advertised.listeners={protocol}://this-machine.example.com:{port}
listeners={protocol}://{host}:{port},CONTROLLER://{host}:{controller_port}
controller.listener.names=CONTROLLER
inter.broker.listener.name={protocol}
listener.security.protocol.map=CONTROLLER:{controllers},{protocol}:{protocol}
{security}
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

_SECURITY = """
# TLS: this node's key and certificate, and whom it trusts. Controllers ask for a certificate of the same authority.
ssl.keystore.type=PEM
ssl.keystore.location=ottla-certs/kafka-{number}.pem
ssl.truststore.type=PEM
ssl.truststore.location=ottla-certs/ca.pem
listener.name.controller.ssl.client.auth=required
# Certificates say CN=kafka-1 and so on; this makes it User:kafka-1.
ssl.principal.mapping.rules=RULE:^CN=([^,]+).*$/$1/,DEFAULT

# Users log in with SCRAM. Their passwords are in the metadata log: `ottla users` adds and removes them. Brokers log in to each
# other as the user below.
sasl.enabled.mechanisms=SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={jaas}

# Access needs to be granted: `ottla acls`. Super users may do everything.
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:{admin};{nodes}
"""

ADMIN = "admin"
ADMIN_PROPERTIES = "admin.properties"
USERS = "users.scram"
_JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{admin}" password="{password}";'
_ADMIN_PROPERTIES = """\
# What clients and commands of the user {admin} need: ottla topics list --command-config {name}
bootstrap.servers={servers}
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config={jaas}
ssl.truststore.type=PEM
ssl.truststore.location=ottla-certs/ca.pem
"""

_SESSION = """
# After this long without a heartbeat a broker counts as dead, and its leaders move. For a failover in about 3 s:
#broker.session.timeout.ms=3000
#broker.heartbeat.interval.ms=300
"""


def one_node(host: str = "localhost", port: int = 9092, password: str | None = None) -> dict[str, str]:
    """The file of a single node, and with a password those of its admin: name → text."""
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
        **_secured(1, 1, password),
    )
    return {
        ONE_NODE: _HOW_TO_START_ONE.format(name=ONE_NODE, **_how_to_secure(host, 1, password)) + body,
        **_files_of_admin(password, f"{host}:{port}"),
    }


def three_nodes(host: str = "localhost", port: int = 9092, password: str | None = None) -> dict[str, str]:
    """The files of three nodes, and with a password those of their admin: name → text.

    Brokers listen from `port` on, controllers 10000 ports above.
    """
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
            **_secured(number, 3, password),
        )
        how = _HOW_TO_START_THREE.format(number=number, controllers=controllers, **_how_to_secure(host, 3, password))
        files[name] = how + body
    servers = ",".join(f"{host}:{port + offset}" for offset in range(3))
    return files | _files_of_admin(password, servers)


def _secured(number: int, nodes: int, password: str | None) -> dict[str, str]:
    """The parts of a node's file that security changes."""
    if password is None:
        return {"protocol": "PLAINTEXT", "controllers": "PLAINTEXT", "security": ""}
    security = _SECURITY.format(
        number=number,
        jaas=_JAAS.format(admin=ADMIN, password=password),
        admin=ADMIN,
        nodes=";".join(f"User:kafka-{each}" for each in range(1, nodes + 1)),
    )
    return {"protocol": "SASL_SSL", "controllers": "SSL", "security": security}


def _how_to_secure(host: str, nodes: int, password: str | None) -> dict[str, str]:
    """The commands that make what a secured node needs before its start."""
    if password is None:
        return {"certificates": "", "users": ""}
    each = "ottla certs node kafka-1" if nodes == 1 else "for n in 1 2 3; do ottla certs node kafka-$n"
    end = "" if nodes == 1 else "; done"
    return {"certificates": f"   ottla certs ca\n#   {each} --host {host}{end}\n#", "users": f" --add-scram @{USERS}"}


def _files_of_admin(password: str | None, servers: str) -> dict[str, str]:
    if password is None:
        return {}
    jaas = _JAAS.format(admin=ADMIN, password=password)
    return {
        ADMIN_PROPERTIES: _ADMIN_PROPERTIES.format(admin=ADMIN, name=ADMIN_PROPERTIES, servers=servers, jaas=jaas),
        USERS: f"SCRAM-SHA-512=[name={ADMIN},password={password}]\n",
    }
