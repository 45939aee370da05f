"""The documentation site: the pages of the repository, the reference and the examples, as one folder of HTML."""
