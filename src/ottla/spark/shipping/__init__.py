"""Ships Ottla, its packages and a pipeline's modules to the Python workers of a cluster, and checks what workers have."""
