"""A schema registry for `decode`, which takes a function of a schema id, and for `ottla sql`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.schemas import RegistryRefusedError
from ottla.spark.errors import SourceError, SparkOptionError
from ottla.spark.registry.languages import expanded_avro
from ottla.spark.registry.options import Address, client_of
from ottla.spark.registry.reading import registry_errors

if TYPE_CHECKING:
    from ottla.schemas import Schema, SchemaRegistry


class RegistryLookup:
    """Finds Avro schemas in a registry. Pickled to the workers: what it has found stays in each process."""

    def __init__(self, url: str) -> None:
        self._address = Address(url)
        self._client()  # a wrong address is refused now

    def _client(self) -> SchemaRegistry:
        return client_of(self._address)

    def __call__(self, schema_id: int) -> Any:
        with registry_errors(SourceError, f"schema {schema_id} cannot be looked up"):
            try:
                return self._avro(self._client().schema(schema_id), f"schema {schema_id}")
            except RegistryRefusedError as refusal:
                if refusal.status == 404:
                    raise LookupError(str(refusal)) from None
                raise

    def newest(self, subject: str) -> Any:
        """The newest schema of a subject, as JSON values."""
        with registry_errors(SparkOptionError, f"subject {subject} has no schema to read with"):
            return self._avro(self._client().latest(subject, fresh=True).schema, f"subject {subject}")

    def _avro(self, schema: Schema, what: str) -> Any:
        if schema.kind != "AVRO":
            raise SparkOptionError(f"{what} is of type {schema.kind}, not AVRO: read the topic with value.format=…")
        return expanded_avro(self._client(), schema)
