"""Who is let in, and what a browser is told it may do."""

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.safety import Access, check_host, is_loopback
from headscope.explorer.texts import Texts
from headscope.explorer.wire import RefusedError

TOKEN = "a-secret"


def status(app: Starlette, host: str, **headers: str) -> int:
    visitor = TestClient(app, base_url=f"http://{host}")
    return visitor.get("/api/session", headers=headers).status_code


@pytest.fixture
def guarded(library: Library) -> TestClient:
    app = create_app(library, Texts(None, None), Access("0.0.0.0", TOKEN))
    return TestClient(app, base_url="http://192.168.1.5:8642", follow_redirects=False)


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost:9000", "127.0.0.9"])
def test_the_own_machine_is_answered_under_every_name_it_has(app: Starlette, host: str) -> None:
    assert status(app, host) == 200


def test_an_ipv6_loopback_host_is_answered(visitor: TestClient) -> None:
    assert visitor.get("/api/session", headers={"host": "[::1]:8642"}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "192.168.1.5", "0.0.0.0"]
)
def test_a_host_name_that_could_be_rebound_is_refused(app: Starlette, host: str) -> None:
    assert status(app, host) == 421


@pytest.mark.parametrize(
    "host",
    [
        "[::1]evil.com",
        "[::1].evil.com:8642",
        "127.0.0.1:80@evil.com",
        "127.0.0.1@evil.com",
        "evil.com@127.0.0.1",
        "127.0.0.1:evil.com",
        "127.0.0.1:80:80",
        "127.0.0.1:",
        "127.0.0.1:123456",
        "127.0.0.1/evil.com",
        "127.0.0.1 evil.com",
        " 127.0.0.1",
        "127.0.0.1,evil.com",
        "localhost.evil.com",
        "[127.0.0.1]",
        "[::1",
        "::1",
        "[::1]]",
        "[fe80::1%eth0]",
        "[localhost]",
    ],
)
@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
def test_only_exactly_a_host_and_a_port_is_a_host(host: str, bound: str) -> None:
    with pytest.raises(RefusedError) as refused:
        check_host(host, bound)
    assert refused.value.status == 421


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:65535", "[::1]", "[::1]:80"]
)
def test_the_hosts_of_the_own_machine_are_taken(host: str) -> None:
    check_host(host, "127.0.0.1")


def test_a_missing_host_is_refused(visitor: TestClient) -> None:
    assert visitor.get("/api/session", headers={"host": ""}).status_code == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:1", "http://127.0.0.1:8643", ""]
)
def test_another_origin_is_refused(visitor: TestClient, origin: str) -> None:
    answer = visitor.post("/api/trace", json={"text": "a"}, headers={"origin": origin})
    assert answer.status_code == 403


def test_the_own_origin_is_answered(visitor: TestClient) -> None:
    headers = {"origin": "http://127.0.0.1:8642", "sec-fetch-site": "same-origin"}
    assert visitor.get("/api/session", headers=headers).status_code == 200


def test_another_sites_script_is_refused_but_its_link_is_followed(visitor: TestClient) -> None:
    fetched = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    linked = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert visitor.get("/api/session", headers=fetched).status_code == 403
    assert visitor.get("/overview", headers=linked).status_code == 200
    assert visitor.post("/api/trace", json={"text": "a"}, headers=linked).status_code == 403


def test_every_answer_forbids_scripts_from_elsewhere(visitor: TestClient) -> None:
    for path in ("/", "/api/session", "/no/such/page", "/static/explorer/main.js"):
        headers = visitor.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_an_open_address_has_a_token_and_loopback_has_none() -> None:
    assert Access.for_host("127.0.0.1").token is None
    assert Access.for_host("localhost").token is None
    first, second = Access.for_host("0.0.0.0").token, Access.for_host("0.0.0.0").token
    assert first and second and first != second and len(first) >= 32
    assert is_loopback("::1") and not is_loopback("::") and not is_loopback("my-machine")


def test_without_the_token_nothing_is_shown(guarded: TestClient) -> None:
    for path in ("/", "/api/session", "/static/explorer/main.js", "/?token=wrong"):
        assert guarded.get(path).status_code == 401
    assert guarded.get("/", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert guarded.get("/", headers={"cookie": "headscope_token=wrong"}).status_code == 401


def test_the_token_moves_from_the_address_into_a_strict_cookie(guarded: TestClient) -> None:
    answer = guarded.get(f"/overview?run=vig&token={TOKEN}")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/overview?run=vig"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert guarded.get("/api/session").status_code == 200


def test_the_token_never_redirects_to_another_host(guarded: TestClient) -> None:
    answer = guarded.get(f"http://192.168.1.5:8642//evil.example/?token={TOKEN}")
    assert answer.headers["location"] == "/evil.example/"


def test_a_script_may_send_the_token_as_a_header(guarded: TestClient) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert guarded.get("/api/session", headers=headers).status_code == 200


def test_an_open_address_still_refuses_names_of_others(guarded: TestClient) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "host": "evil.example"}
    assert guarded.get("/api/session", headers=headers).status_code == 421


def test_only_the_page_of_one_head_may_stand_in_a_frame_of_the_same_machine(
    visitor: TestClient,
) -> None:
    embedded, other = visitor.get("/embed").headers, visitor.get("/head").headers
    policy = embedded["content-security-policy"]
    assert "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*" in policy
    assert "x-frame-options" not in embedded and "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in other["content-security-policy"]
    assert other["x-frame-options"] == "DENY"
