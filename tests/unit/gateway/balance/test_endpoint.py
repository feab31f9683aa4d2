import pytest

from gateway.balance.endpoint import Endpoint


def test_an_address_is_taken_apart() -> None:
    endpoint = Endpoint("https://gpu-1.example.org/llm/")
    assert (endpoint.host, endpoint.port, endpoint.tls) == ("gpu-1.example.org", 443, True)
    assert (endpoint.base_path, endpoint.authority) == ("/llm", "gpu-1.example.org")
    assert endpoint.url == "https://gpu-1.example.org/llm"


def test_a_resolved_address_keeps_the_authority_of_its_name() -> None:
    endpoint = Endpoint("http://vllm.svc:8000", address="10.1.2.3")
    assert (endpoint.host, endpoint.authority, endpoint.url) == ("10.1.2.3", "vllm.svc:8000", "http://10.1.2.3:8000")


def test_an_ipv6_address_is_bracketed_where_people_read_it() -> None:
    assert Endpoint("http://[::1]:8000").host == "::1"
    assert Endpoint("http://[::1]:8000").url == "http://[::1]:8000"
    assert Endpoint("http://vllm:8000", address="fd00::2").url == "http://[fd00::2]:8000"


def test_secrets_in_an_address_never_reach_the_text_that_is_shown() -> None:
    endpoint = Endpoint("http://user:hunter2@10.0.0.1:8000/v?key=SECRET")
    shown = f"{endpoint!r} {endpoint.url} {endpoint.authority} {endpoint.label!r}"
    assert "hunter2" not in shown
    assert "SECRET" not in shown


@pytest.mark.parametrize("url", ["ftp://10.0.0.1", "10.0.0.1:8000", "http://", ""])
def test_what_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="not an http"):
        Endpoint(url)
