"""Which addresses may be connected to; names by a resolver of the test's, connections over real sockets."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import closing

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from construct_messages.errors import SourceError
from construct_messages.sparql.client.aiohttp_client import Addresses, CheckedResolver, is_public
from tests.support.http.fault_server import FaultServer, response

ADDRESSES = {
    "public": ("8.8.8.8", True),
    "public, IPv6": ("2606:4700::1111", True),
    "loopback": ("127.0.0.1", False),
    "loopback, another": ("127.255.0.9", False),
    "loopback, IPv6": ("::1", False),
    "private 10": ("10.1.2.3", False),
    "private 172": ("172.31.255.255", False),
    "not private": ("172.32.0.1", True),
    "private 192": ("192.168.0.1", False),
    "link-local": ("169.254.169.254", False),
    "link-local, IPv6": ("fe80::1", False),
    "link-local with its zone": ("fe80::1%lo", False),
    "unique local": ("fd00:ec2::254", False),
    "site-local": ("fec0::1", False),
    "CGNAT": ("100.64.0.1", False),
    "CGNAT's end": ("100.127.255.255", False),
    "behind CGNAT": ("100.128.0.1", True),
    "unspecified": ("0.0.0.0", False),
    "this network": ("0.1.2.3", False),
    "unspecified, IPv6": ("::", False),
    "multicast": ("224.0.0.1", False),
    "multicast, global": ("233.252.0.1", False),
    "multicast, IPv6": ("ff0e::1", False),
    "reserved": ("240.0.0.1", False),
    "broadcast": ("255.255.255.255", False),
    "documentation": ("203.0.113.7", False),
    "documentation, IPv6": ("2001:db8::1", False),
    "benchmarking": ("198.18.0.1", False),
    "6to4 relays": ("192.88.99.1", False),
    "mapped loopback": ("::ffff:127.0.0.1", False),
    "mapped private": ("::ffff:10.0.0.1", False),
    "mapped public": ("::ffff:8.8.8.8", True),
    "compatible": ("::7f00:1", False),
    "6to4 of loopback": ("2002:7f00:1::", False),
    "6to4 of private": ("2002:a00:1::1", False),
    "6to4 of public": ("2002:808:808::1", True),
    "NAT64 of loopback": ("64:ff9b::7f00:1", False),
    "NAT64 of link-local": ("64:ff9b::a9fe:a9fe", False),
    "NAT64 of public": ("64:ff9b::808:808", True),
    "NAT64, local": ("64:ff9b:1::808:808", False),
    "Teredo": ("2001:0:7f00:1::", False),
    "discard": ("100::1", False),
}


@pytest.mark.parametrize(("text", "public"), ADDRESSES.values(), ids=ADDRESSES)
def test_is_public(text: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(text)) is public


@pytest.mark.parametrize(
    ("url", "allowed", "refused"),
    [
        ("http://127.0.0.1:8890/sparql", ["127.0.0.1", "8.8.8.8"], ["127.0.0.2", "10.0.0.1"]),
        ("http://[::1]:8890/sparql", ["::1"], ["127.0.0.1", "fd00::1"]),
        ("http://localhost:8890/", ["127.0.0.1", "::1"], []),
        ("http://LOCALHOST/", ["127.0.0.1"], []),
        ("https://example.org/", ["8.8.8.8"], ["127.0.0.1", "10.0.0.1", "::1", "169.254.169.254"]),
        ("https://localhost.example.org/", [], ["127.0.0.1"]),
        ("https://10.0.0.1.example.org/", [], ["10.0.0.1"]),
        ("http://127.1/", [], ["127.0.0.1"]),
        ("http://2130706433/", [], ["127.0.0.1"]),
    ],
)
def test_what_a_url_allows(url: str, allowed: list[str], refused: list[str]) -> None:
    addresses = Addresses(url)
    for text in allowed:
        addresses.check(ipaddress.ip_address(text))
    for text in refused:
        with pytest.raises(SourceError, match="not a public address") as caught:
            addresses.check(ipaddress.ip_address(text))
        assert caught.value.status == 502
        assert not caught.value.transient
        Addresses(url, allow_private=True).check(ipaddress.ip_address(text))


class Names(AbstractResolver):
    """Resolves every name to the addresses given."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 the names have what they have
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=text,
                port=port,
                family=socket.AF_INET6 if ":" in text else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for text in self._texts
        ]

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        server.play(response(b"reached", "text/plain"))
        yield server


async def fetch(url: str, addresses: Addresses, resolver: AbstractResolver) -> str:
    connector = aiohttp.TCPConnector(resolver=resolver, socket_factory=addresses.open_socket)
    async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as response:
        return await response.text()


@pytest.mark.parametrize(
    "answer",
    [
        ["127.0.0.1"],
        ["8.8.8.8", "127.0.0.1"],
        ["127.0.0.1", "8.8.8.8"],
        ["8.8.8.8", "::ffff:127.0.0.1"],
    ],
)
async def test_a_name_with_any_address_that_is_not_public_is_refused(
    server: FaultServer, answer: list[str]
) -> None:
    url = f"http://sparql.example:{server.port}/"
    addresses = Addresses(url)
    with pytest.raises(
        SourceError, match=r"sparql\.example is at \S+, which is not a public address"
    ):
        await fetch(url, addresses, CheckedResolver(addresses, Names(answer)))
    assert server.connections == 0


async def test_the_connection_is_checked_whatever_the_resolver_said(server: FaultServer) -> None:
    """A resolver that is not checked, as a literal has none: the socket is refused."""
    url = f"http://sparql.example:{server.port}/"
    with pytest.raises(SourceError, match="not a public address"):
        await fetch(url, Addresses(url), Names(["127.0.0.1"]))
    with pytest.raises(SourceError, match="not a public address"):
        await fetch(server.url, Addresses("https://sparql.example/"), Names(["8.8.8.8"]))
    assert server.connections == 0


async def test_a_name_that_is_allowed(server: FaultServer) -> None:
    url = f"http://sparql.example:{server.port}/"
    addresses = Addresses(url, allow_private=True)
    assert (
        await fetch(url, addresses, CheckedResolver(addresses, Names(["127.0.0.1"]))) == "reached"
    )


async def test_localhost_and_literals(server: FaultServer) -> None:
    for host in ("localhost", "127.0.0.1"):
        url = f"http://{host}:{server.port}/"
        addresses = Addresses(url)
        assert (
            await fetch(url, addresses, CheckedResolver(addresses, aiohttp.DefaultResolver()))
            == "reached"
        )
