"""The requests between replicas: one file each, with the request, its handling, and the handling of its answer."""
