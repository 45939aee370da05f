"""The certificates of the TLS tests, made once per session."""

import pytest
from tests.support.servers.tls_server import TestCertificates, make_certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> TestCertificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))
