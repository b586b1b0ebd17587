"""The page behind a path prefix of a reverse proxy, here nginx: all its paths are relative."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from construct_messages.server.config import EndpointSettings
from tests.support.http.serving import serving
from tests.support.pages.browser import browsing
from tests.support.pages.stores import PEOPLE, store_of
from tests.support.places import absent

pytestmark = [pytest.mark.engine, pytest.mark.slow]

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
PLACES = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextmanager
def prefixed(target: str, prefix: str, place: Path) -> Iterator[str]:
    """Nginx, with a server under a prefix; it is given a socket that listens already: no port is guessed."""
    if NGINX is None:
        absent("nginx is not installed: apt-get install nginx-light")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = "{}:{}".format(*listening.getsockname())
        places = "".join(f"{name}_temp_path {place}/{name};\n" for name in PLACES)
        (place / "nginx.conf").write_text(
            f"daemon off; pid {place}/pid; error_log {place}/error.log;\nevents {{}}\n"
            f"http {{ access_log off; {places} server {{ listen {address};\n"
            f"location {prefix} {{ proxy_pass {target}/; proxy_http_version 1.1; proxy_buffering off; }} }} }}\n"
        )
        nginx = subprocess.Popen(
            [NGINX, "-e", str(place / "error.log"), "-c", str(place / "nginx.conf")],
            env=os.environ | {"NGINX": f"{listening.fileno()};"},
            pass_fds=[listening.fileno()],
        )
        try:
            yield f"http://{address}{prefix}"
        finally:
            nginx.terminate()
            nginx.wait()


async def test_behind_a_prefix(tmp_path: Path) -> None:
    endpoints = {
        name: EndpointSettings(source=(str(store_of(tmp_path / f"store{name}", PEOPLE)),)) for name in ("", "a")
    }
    async with serving(endpoints=endpoints) as server, browsing() as browser:
        with prefixed(server.url, "/data/linked/", tmp_path) as url:
            for path, endpoint in (("", "sparql"), ("sparql", "sparql"), ("a/", "a/sparql"), ("a/sparql", "a/sparql")):
                await browser.open(url + path)
                seen = await browser.run(
                    """
                    await page.waitForSelector("html[data-ready]");
                    const endpoint = await page.inputValue("#endpoint");
                    await page.click("#run");
                    await page.waitForSelector("#banner:not([hidden])");
                    return [endpoint, await page.getAttribute("#banner", "class")];
                    """
                )
                assert seen == [endpoint, "banner good"]
                assert await browser.errors() == []
                asked = await browser.asked()
                assert all(each.startswith(url) for each in asked), asked
                assert f"{url}{endpoint}" in asked
