"""One spelling for each base URL, and which endpoint a URL means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.errors import SettingError
from thinkback.model.rule import Endpoint
from thinkback.rules import load_rulebook, normalise_url
from thinkback.rules.urls import host_of, is_loopback, server_of

BOOK = load_rulebook()

MEANT = [
    ("https://api.deepseek.com", "deepseek"),
    ("https://API.DeepSeek.com/v1/", "deepseek"),
    ("https://api.moonshot.cn/v1", "kimi"),
    ("https://api.z.ai/api/paas/v4", "zai"),
    ("https://open.bigmodel.cn/api/paas/v4/", "zai"),
    ("https://api.z.ai/api/coding/paas/v4", "zai-coding"),
    ("https://open.bigmodel.cn/api/coding/paas/v4", "zai-coding"),
    ("https://api.z.ai/api/anthropic", "zai-anthropic"),
    ("https://api.deepseek.com/anthropic/v1", "deepseek-anthropic"),
    ("https://api.anthropic.com/v1", "anthropic"),
    ("https://generativelanguage.googleapis.com/v1beta", "gemini"),
    ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-openai"),
    ("https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5", "vertex"),
    ("https://bedrock-runtime.us-east-1.amazonaws.com", "bedrock"),
    ("https://api.cohere.com/v2", "cohere"),
    ("https://api.mistral.ai/v1", "mistral"),
    ("http://localhost:11434/api", "ollama-native"),
    ("https://api.z.ai/api/paasword", "unknown"),
    ("https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen"),
    ("https://dashscope-us.aliyuncs.com/compatible-mode/v1", "qwen"),
    ("https://mine.openai.azure.com/openai/v1?api-version=preview", "azure-openai"),
    ("https://eu.api.openai.com/v1", "openai"),
    ("https://bedrock-mantle.eu-west-1.api.aws/v1", "bedrock-mantle"),
    ("https://acme.snowflakecomputing.com/api/v2/cortex/v1", "snowflake"),
    ("http://192.168.1.5:11434/v1", "ollama"),
    ("http://[::1]:11434/v1", "ollama"),
    ("https://ollama.com/v1", "ollama-cloud"),
    ("http://localhost:1234/v1", "lmstudio"),
    ("http://localhost:8000/v1", "unknown"),
    ("https://api.deepseek.com.evil.example/v1", "unknown"),
    ("https://api.openai.com:8443/v1", "unknown"),
    ("https://llm.example.org/v1", "unknown"),
]

SPELLINGS = [
    ("https://api.deepseek.com", "https://api.deepseek.com"),
    (" HTTPS://API.DeepSeek.COM:443/ ", "https://api.deepseek.com"),
    ("http://box:80/V1//", "http://box/V1"),
    ("http://box:443/v1", "http://box:443/v1"),
    ("http://[2001:DB8::1]:8000/v1/", "http://[2001:db8::1]:8000/v1"),
    ("https://x.example/a?api-version=1#top", "https://x.example/a?api-version=1"),
]


@pytest.mark.parametrize(("url", "endpoint"), MEANT)
def test_endpoint_for_url(url: str, endpoint: str) -> None:
    """Host and path name the endpoint; what nothing names is the unknown host."""
    assert endpoint == BOOK.endpoint_for_url(url).id


@pytest.mark.parametrize(("url", "expected"), SPELLINGS)
def test_normalise(url: str, expected: str) -> None:
    """Scheme and host in lower case, no default port, no trailing slash, no fragment; path and query stay."""
    assert expected == normalise_url(url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("localhost:8000/v1", "http:// or https://"),
        ("", "http:// or https://"),
        ("ftp://x.example", "http:// or https://"),
        ("https:///v1", "http:// or https://"),
        ("https://x.example:port/v1", "not a URL"),
        ("https://[::1/v1", "not a URL"),
        ("https://me:secret@x.example/v1", "user name or password"),
    ],
)
def test_refused_urls(url: str, reason: str) -> None:
    """What is no base URL, or holds a password, is refused with the reason."""
    with pytest.raises(SettingError, match=reason):
        normalise_url(url)


@pytest.mark.parametrize("url", ["https://me:secret@x.example/v1", "me:secret@x.example", "https://me:secret@[x/v1"])
def test_a_password_is_never_repeated(url: str) -> None:
    """The error for a URL with a password does not hold the password."""
    with pytest.raises(SettingError) as caught:
        normalise_url(url)
    assert "secret" not in f"{caught.value} {caught.value.details}"


@given(
    st.sampled_from(["http", "HTTPS"]),
    st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,10}[A-Za-z0-9])?", fullmatch=True),
    st.sampled_from(["", ":80", ":443", ":8000"]),
    st.from_regex(r"(/[A-Za-z0-9._~-]{0,6}){0,4}", fullmatch=True),
)
def test_normalising_twice_changes_nothing(scheme: str, host: str, port: str, path: str) -> None:
    """The one spelling of a URL is its own spelling, and always means one endpoint."""
    once = normalise_url(f"{scheme}://{host}{port}{path}")
    assert once == normalise_url(once)
    assert BOOK.endpoint_for_url(once) in BOOK.endpoints()


@pytest.mark.parametrize(
    "endpoint", [row for row in BOOK.endpoints() if row.base_url and row.hosts], ids=lambda row: row.id
)
def test_own_url_means_the_endpoint(endpoint: Endpoint) -> None:
    """Every endpoint with hosts is recognised by its own base URL."""
    assert endpoint == BOOK.endpoint_for_url(endpoint.base_url)


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://API.example.com/v1?x=1", "https://api.example.com:443"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://[::1]:80/", "http://::1:80"),
        ("https://u:p@api.example.com", ""),
        ("ftp://api.example.com", ""),
        ("", ""),
    ],
)
def test_a_server_is_scheme_host_and_port(url: str, server: str) -> None:
    """In one spelling; what is no base URL has none."""
    assert server == server_of(url)


@pytest.mark.parametrize(
    ("url", "host", "is_near"),
    [
        ("http://127.0.0.1:8077/v1", "127.0.0.1", True),
        ("http://[::1]/v1", "::1", True),
        ("http://LOCALHOST:1/", "localhost", True),
        ("https://localhost.example", "localhost.example", False),
        ("http://10.0.0.1", "10.0.0.1", False),
        ("http://[", "", False),
        ("", "", False),
    ],
)
def test_this_machine_is_known_by_its_names(url: str, host: str, is_near: bool) -> None:
    """What is no address names no host, and that is not this machine."""
    assert (host, is_near) == (host_of(url), is_loopback(host_of(url)))
