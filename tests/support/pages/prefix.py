"""Nginx, which serves a server under a path prefix."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.places import absent

_NGINX: Final = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
_PLACES: Final = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextmanager
def prefixed(target: str, prefix: str, place: Path) -> Iterator[str]:
    """Nginx, with a server under a prefix; it is given a socket that listens already: no port is guessed."""
    if _NGINX is None:
        absent("nginx is not installed: apt-get install nginx-light")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = "{}:{}".format(*listening.getsockname())
        places = "".join(f"{name}_temp_path {place}/{name};\n" for name in _PLACES)
        (place / "nginx.conf").write_text(
            f"daemon off; pid {place}/pid; error_log {place}/error.log;\nevents {{}}\n"
            f"http {{ access_log off; {places} server {{ listen {address};\n"
            f"location {prefix} {{ proxy_pass {target}/; proxy_http_version 1.1; proxy_buffering off; }} }} }}\n"
        )
        nginx = subprocess.Popen(
            [_NGINX, "-e", str(place / "error.log"), "-c", str(place / "nginx.conf")],
            env=os.environ | {"NGINX": f"{listening.fileno()};"},
            pass_fds=[listening.fileno()],
        )
        try:
            yield f"http://{address}{prefix}"
        finally:
            nginx.terminate()
            nginx.wait()
