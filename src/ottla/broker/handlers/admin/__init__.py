"""APIs that change or describe topics, settings, features and log directories."""
