"""The options of a login."""

import pytest

from ottla.link import LinkSecurity, SaslOptions


def test_secrets_are_not_shown() -> None:
    security = LinkSecurity(sasl=SaslOptions("PLAIN", "alice", "hidden"))
    assert "alice" in repr(security)
    assert "hidden" not in repr(security)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("GSSAPI",), "GSSAPI is not supported: choose among PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
        (("PLAIN",), "the user name is missing"),
        (("SCRAM-SHA-256", "alice"), "the password is missing"),
        (("OAUTHBEARER",), "needs a function that returns a token"),
        (("PLAIN", "al\0ice", "x"), "zero character"),
    ],
)
def test_impossible_options(arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        SaslOptions(*arguments)
