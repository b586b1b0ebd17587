"""Restricts the addresses that a server may connect to: public ones, and those that its operator configured.

Otherwise a name that an attacker controls, or a redirect, could make the server send requests to its own machine or
network. The check is part of connecting, so that a name cannot resolve to one address for the check and to another for
the connection. The IANA special-purpose registries (RFC 6890) define public addresses.
"""

from __future__ import annotations

import ipaddress
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from construct_messages.rdf.errors import SourceError
from construct_messages.sparql.client.timeouts import keep_alive

Address: TypeAlias = IPv4Address | IPv6Address

_UNICAST: Final = IPv6Network("2000::/3")
_SIX_TO_FOUR_RELAYS: Final = IPv4Network("192.88.99.0/24")
_NAT64: Final = IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Whether an address, and any IPv4 address embedded in it, is public.

    >>> [is_public(ipaddress.ip_address(text)) for text in ("8.8.8.8", "10.0.0.1", "::ffff:127.0.0.1", "2002:a00:1::")]
    [True, False, False, False]
    """
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and address not in _SIX_TO_FOUR_RELAYS
    held = address.ipv4_mapped or address.sixtofour
    if held is None and address in _NAT64:
        held = IPv4Address(int(address) & 0xFFFF_FFFF)
    if held is not None:
        return is_public(held)
    return address in _UNICAST and address.is_global


class Addresses:
    """The allowed addresses for one URL; with `allow_private`, all.

    A URL whose host is an address, or `localhost`, allows only this address, because its author chose it. Any other
    name must resolve to public addresses only.

    >>> Addresses("http://10.0.0.1:8890/sparql").check(ipaddress.ip_address("10.0.0.1"))
    >>> Addresses("https://example.org/sparql").check(ipaddress.ip_address("10.0.0.1"))
    Traceback (most recent call last):
    construct_messages.rdf.errors.SourceError: example.org is at 10.0.0.1, which is not a public address
      hint: set allow_private, if you trust the operator of example.org
    """

    def __init__(self, url: str, *, allow_private: bool = False) -> None:
        self._host = (urlsplit(url).hostname or "").lower()
        self._all = allow_private
        self._named: Address | None = None
        try:
            self._named = ipaddress.ip_address(self._host)
        except ValueError:  # a name
            self._all = allow_private or self._host == "localhost"

    def check(self, address: Address) -> None:
        """Checks that an address may be connected to."""
        if not (self._all or address == self._named or is_public(address)):
            raise SourceError(
                f"{self._host} is at {address}, which is not a public address",
                hint=f"set allow_private, if you trust the operator of {self._host}",
            )

    def open_socket(self, info: aiohttp.AddrInfoType) -> socket.socket:
        """A socket to connect to an address, for an aiohttp connector."""
        family, kind, protocol, _, address = info
        self.check(ipaddress.ip_address(address[0]))
        return keep_alive(socket.socket(family, kind, protocol))


class CheckedResolver(AbstractResolver):
    """A resolver that rejects a name if any of its addresses is not allowed."""

    def __init__(self, addresses: Addresses, resolver: AbstractResolver) -> None:
        self._addresses, self._resolver = addresses, resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for result in found:
            self._addresses.check(ipaddress.ip_address(result["host"]))
        return found

    async def close(self) -> None:
        await self._resolver.close()
