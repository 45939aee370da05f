"""The `service` verb: a node as a service of systemd or launchd."""
