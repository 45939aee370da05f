"""The coordinators of this node, joined to the logs that hold their records."""
