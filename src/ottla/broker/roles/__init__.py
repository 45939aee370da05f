"""The roles of a node (process.roles): what each adds to the parts that every node has."""
