"""The bundle of CodeMirror is what its source gives, with its licences, and small."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.pages.bundle import BUNDLE, bundled, digest, named_digest


def test_the_bundle_is_of_this_source() -> None:
    assert named_digest(BUNDLE.read_bytes()) == digest(), "run `make editor`"


def test_the_bundle_is_small_and_has_its_licences() -> None:
    bundle = BUNDLE.read_bytes()
    assert len(gzip.compress(bundle)) < 150_000
    assert b"@codemirror/view 6." in bundle
    assert b"Permission is hereby granted" in bundle
    assert not any(name in bundle for name in (b"innerHTML", b"eval(", b"new Function"))


@pytest.mark.slow
@pytest.mark.engine
def test_the_bundle_is_what_the_source_gives(tmp_path: Path) -> None:
    """Where npm has kept the packages: `make editor` gets them."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    try:
        made = bundled(tmp_path, "--offline")
    except subprocess.CalledProcessError as error:
        if "ENOTCACHED" not in error.stderr:
            raise
        pytest.skip("npm has not kept the packages")
    assert made == BUNDLE.read_bytes()
