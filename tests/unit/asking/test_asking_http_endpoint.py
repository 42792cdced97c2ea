from __future__ import annotations

import ssl

import pytest

from router.asking.http.endpoint import read_endpoint


@pytest.mark.parametrize(
    ("written", "host", "port", "authority", "root", "decide"),
    [
        ("http://h", "h", 80, "h", "/", "/v1/systemone"),
        ("http://h:81/", "h", 81, "h:81", "/", "/v1/systemone"),
        ("https://h/v1/systemone", "h", 443, "h", "/", "/v1/systemone"),
        ("https://h:8443/a%20b/v1/decisions/", "h", 8443, "h:8443", "/a%20b/", "/a%20b/v1/decisions"),
        ("http://[::1]:9/x", "::1", 9, "[::1]:9", "/x/", "/x/v1/systemone"),
        ("http://h?query#part", "h", 80, "h", "/", "/v1/systemone"),
    ],
)
def test_an_address(written: str, host: str, port: int, authority: str, root: str, decide: str) -> None:
    found = read_endpoint(written)
    assert (found.host, found.port, found.authority, found.root, found.decide) == (host, port, authority, root, decide)
    assert found.socket is None


def test_tls_checks_certificates_and_names() -> None:
    tls = read_endpoint("https://h").tls
    assert tls is not None
    assert (tls.verify_mode, tls.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert read_endpoint("http://h").tls is None


def test_a_socket() -> None:
    found = read_endpoint("unix:///run/model.sock")
    assert (found.socket, found.root, found.decide) == ("/run/model.sock", "/", "/v1/systemone")


def test_credentials_in_an_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="a user name or a password") as caught:
        read_endpoint("https://me:secret@h")
    assert "secret" not in str(caught.value)
