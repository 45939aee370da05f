"""The registry's errors: an HTTP status, Confluent's code and a sentence."""

from __future__ import annotations

from ottla.errors import OttlaError


class RegistryError(OttlaError):
    """A request that the registry refuses."""

    def __init__(self, status: int, code: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.text = text


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(404, 40401, f"Subject '{subject}' not found.")


def version_not_found(version: object) -> RegistryError:
    return RegistryError(404, 40402, f"Version {version} not found.")


def schema_not_found(what: str = "") -> RegistryError:
    return RegistryError(404, 40403, f"Schema {what}not found" if what else "Schema not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    text = f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
    return RegistryError(404, 40404, text)


def subject_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(404, 40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    text = f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently"
    return RegistryError(404, 40406, text)


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    text = f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    return RegistryError(404, 40407, text)


def config_not_found(subject: str) -> RegistryError:
    return RegistryError(404, 40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def mode_not_found(subject: str) -> RegistryError:
    return RegistryError(404, 40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(messages: list[str]) -> RegistryError:
    text = f"Schema being registered is incompatible with an earlier schema; details: {'; '.join(messages)}"
    return RegistryError(409, 409, text)


def invalid_schema(text: str) -> RegistryError:
    return RegistryError(422, 42201, f"Invalid schema: {text}")


def invalid_version(given: str) -> RegistryError:
    text = f"The specified version '{given}' is not a valid version id. Use 1 to 2^31-1, or 'latest'"
    return RegistryError(422, 42202, text)


def invalid_level(given: object) -> RegistryError:
    text = (
        f"Invalid compatibility level {given!r}. Valid values are none, backward, forward, full, backward_transitive, "
        "forward_transitive, and full_transitive"
    )
    return RegistryError(422, 42203, text)


def invalid_mode(given: object) -> RegistryError:
    text = f"Invalid mode {given!r}. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, FORWARD and IMPORT"
    return RegistryError(422, 42204, text)


def not_permitted(text: str) -> RegistryError:
    return RegistryError(422, 42205, text)


def reference_exists(places: str) -> RegistryError:
    return RegistryError(422, 42206, f"One or more references exist to the schema {places}")


def id_mismatch(text: str) -> RegistryError:
    return RegistryError(422, 42207, text)


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(422, 42208, f"The specified subject {subject!r} is not a valid subject")


def schema_too_large(text: str) -> RegistryError:
    return RegistryError(422, 42209, f"Schema too large: {text}")


def context_not_empty(context: str) -> RegistryError:
    return RegistryError(422, 42211, f"The specified context '{context}' is not empty")
