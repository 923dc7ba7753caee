"""Keys, hosts, headers, CORS: who may ask, and what a browser may do with the answers."""

import httpx
import pytest

from elmokit.errors import InputError
from elmokit.serve.security import CONTENT_POLICY, read_keys
from helpers.serving import service

KEY, OTHER = "first-secret-key", "second-secret-key"


@pytest.fixture(scope="module")
def locked(tmp_path_factory, tiny_folder):
    folder = tmp_path_factory.mktemp("locked")
    keys = folder / "keys"
    keys.write_text(f"# keys\n{KEY}\n\n")
    given = ("--api-key-file", keys, "--allow-origin", "https://example.org")
    with service(folder, "--model", tiny_folder, *given, ELMOKIT_API_KEY=OTHER) as running:
        yield running


@pytest.mark.parametrize("key", [None, "wrong-secret-key", KEY[:-1], KEY + "x", "ключ"])
def test_a_missing_or_wrong_key(locked, key):
    headers = {} if key is None else {"Authorization": f"Bearer {key}".encode()}
    for path in ("/embed", "/v1/embeddings", "/tokenize"):
        answer = httpx.post(locked.url + path, json={"inputs": "a"}, headers=headers)
        assert answer.status_code == 401
        assert "unauthorized" in answer.text
        assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/info", "/metrics"):
        assert httpx.get(locked.url + path, headers=headers).status_code == 401


@pytest.mark.parametrize("key", [KEY, OTHER])
def test_the_right_key(locked, key):
    headers = {"Authorization": f"Bearer {key}"}
    assert httpx.get(f"{locked.url}/info", headers=headers).status_code == 200
    answer = httpx.post(f"{locked.url}/embed", json={"inputs": "a"}, headers=headers)
    assert answer.status_code == 200


def test_probes_and_documentation_need_no_key(locked):
    for path in ("/health", "/ready", "/docs", "/docs.css", "/openapi.json"):
        assert httpx.get(locked.url + path).status_code == 200


def test_files_of_keys(tmp_path):
    path = tmp_path / "keys"
    with pytest.raises(InputError, match="cannot read the keys"):
        read_keys(path)
    for text, words in (
        ("# none\n", "has no key"),
        ("short\n", "at least 8"),
        ("a b c d e f\n", "no space"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=words):
            read_keys(path)


def test_cors_for_one_origin_only(locked, served):
    def allowed(url, origin):
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        answer = httpx.options(f"{url}/embed", headers=headers)
        return answer.headers.get("access-control-allow-origin")

    assert allowed(locked.url, "https://example.org") == "https://example.org"
    assert allowed(locked.url, "https://example.com") is None
    assert allowed(served.url, "https://example.org") is None


def test_the_host_header(served):
    for host, status in (
        ("localhost", 200),
        ("127.0.0.1:1234", 200),
        ("[::1]:80", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("", 421),
    ):
        answer = httpx.get(f"{served.url}/info", headers={"Host": host})
        assert answer.status_code == status, host
        assert httpx.get(f"{served.url}/health", headers={"Host": host}).status_code == 200


def test_security_headers(served):
    for path in ("/health", "/docs", "/nothing"):
        headers = httpx.get(served.url + path).headers
        assert headers["content-security-policy"] == CONTENT_POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
    assert "unsafe" not in CONTENT_POLICY


def test_the_documentation_has_no_script_and_nothing_from_elsewhere(served):
    page = httpx.get(f"{served.url}/docs").text
    for path in ("/embed", "/v1/embeddings", "/predict/{task}"):
        assert f"POST {path}" in page
    assert "<script" not in page
    assert "style=" not in page
    assert "//" not in page.replace("<!DOCTYPE", "")
