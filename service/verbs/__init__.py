"""Verbs of `mt-service` for the database of the service. mt.cli.main reads their list."""

VERBS = {
    "keys": ("service.verbs.keys", "manage the API keys of a service"),
    "memory": ("service.verbs.memory", "manage the translation memories of a service"),
}
"""Module and one-line description of each verb."""
