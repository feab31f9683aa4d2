"""Which certificates engines may prove themselves with."""

from pathlib import Path

import pytest

from gateway.proxy.trust import trusted


def test_it_is_read_once_for_all_engines() -> None:
    assert trusted() is trusted()


def test_another_file_of_authorities_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = trusted()
    nobody = tmp_path / "ca.pem"
    nobody.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(nobody))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))

    assert trusted() is not usual
    assert trusted().get_ca_certs() == []
