"""DescribeConfigs responses as plain values, to compare two nodes."""

from typing import Any

from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse

Entry = dict[str, Any]


def describe_request(
    type_: int, name: str, keys: list[str] | None = None, synonyms: bool = True, documentation: bool = False
) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=type_, resource_name=name, configuration_keys=keys)
    return DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms, include_documentation=documentation)


def entries(response: DescribeConfigsResponse) -> dict[str, Entry]:
    """The settings of the one requested resource, by name."""
    (result,) = response.results
    assert result.error_code == 0, result.error_message
    return {
        config.name: {
            "value": config.value,
            "read_only": config.read_only,
            "source": config.config_source,
            "sensitive": config.is_sensitive,
            "synonyms": [(each.name, each.value, each.source) for each in config.synonyms],
            "type": config.config_type,
            "documented": bool(config.documentation),
        }
        for config in result.configs
    }
