"""What all decoders and encoders have in common: how they are found."""

import subprocess
import sys

import pytest

from construct_messages.errors import UsageError
from construct_messages.formats import FORMATS, Format
from construct_messages.logs import decoder_for


@pytest.mark.parametrize("base", ["", "x", "/a", "http://example.org/ ", "http://[", "<urn:a>"])
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
def test_a_base_is_an_absolute_iri(format: Format, base: str) -> None:
    with pytest.raises(UsageError, match="is no absolute IRI"):
        decoder_for(format, base=base)
    decoder_for(format, base="http://example.org/é")


def test_a_syntax_is_loaded_when_it_is_asked_for() -> None:
    code = "import sys, construct_messages; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    modules = [name for name in loaded if name.startswith("construct_messages.logs.")]
    assert not [name for name in modules if name.endswith((".encoder", ".decoder", ".lines", ".documents"))]
