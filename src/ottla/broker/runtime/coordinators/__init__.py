"""The coordinators of this node, connected to the logs that hold their records."""
