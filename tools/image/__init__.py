"""The image without a container engine: builds its root file system from the Containerfile, and runs it in namespaces."""
