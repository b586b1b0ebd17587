"""The table of log formats: each record names classes that are there, and they are loaded when they are asked for."""

import inspect
import subprocess
import sys
from pkgutil import resolve_name
from typing import Any

import pytest

from construct_messages import logs
from construct_messages.errors import UsageError
from construct_messages.logs import (
    Decoder,
    DecoderOptions,
    Encoder,
    EncoderOptions,
    FormatOptions,
    check_options,
    decoder_for,
    encoder_for,
    options_class,
)
from construct_messages.logs.jelly.options import JellyOptions
from construct_messages.rdf.formats import FORMATS, JELLY, N_QUADS, RDFM, Format

each_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)


def members(cls: Any) -> list[str]:
    return [name for name in vars(cls) if not name.startswith("_")]


def parameters(function: Any) -> list[tuple[str, Any, Any, Any]]:
    return [
        (p.name, p.kind, p.default, p.annotation)
        for p in inspect.signature(function).parameters.values()
    ]


NAMED = [
    *((format, format.encoder, Encoder) for format in FORMATS),
    *((format, format.decoder, Decoder) for format in FORMATS),
    *((format, format.options, FormatOptions) for format in FORMATS if format.options is not None),
]


@pytest.mark.parametrize(
    ("format", "name", "protocol"), NAMED, ids=[f"{f.extension}-{p.__name__}" for f, _, p in NAMED]
)
def test_a_record_names_what_satisfies_the_protocol(
    format: Format, name: str, protocol: Any
) -> None:
    found = resolve_name(f"{logs.__name__}.{name}")
    for member in members(protocol):
        expected, there = inspect.getattr_static(protocol, member), getattr(found, member, None)
        if inspect.isfunction(expected):
            if protocol is not FormatOptions:  # whose methods take another of the same class
                assert parameters(there) == parameters(expected), f"{name}.{member}"
            assert callable(there)
        elif protocol is Decoder:
            assert hasattr(decoder_for(format), member), f"{name} has no {member}"
        else:
            assert there is not None, f"{name} has no {member}"


@each_format
def test_an_empty_log(format: Format) -> None:
    encoder = encoder_for(format, format.own or RDFM)
    decoder = decoder_for(format)
    assert [*decoder.feed(encoder.start() + encoder.finish()), *decoder.close()] == []
    # what a format has beside messages is there without any
    own = options_class(format)
    assert decoder.options is None if own is None else isinstance(decoder.options, own)


def test_no_name_means_two_formats() -> None:
    # of one format, an extension may be its name, too
    names = [
        name
        for f in FORMATS
        for name in {f.name.lower(), f.subprotocol, *f.media_types, *f.extensions, *f.names}
    ]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("base", ["", "x", "/a", "http://example.org/ ", "http://[", "<urn:a>"])
@each_format
def test_a_base_is_an_absolute_iri(format: Format, base: str) -> None:
    with pytest.raises(UsageError, match="is no absolute IRI"):
        decoder_for(format, options=DecoderOptions(base=base))
    decoder_for(format, options=DecoderOptions(base="http://example.org/é"))


@each_format
def test_options_are_those_of_one_format(format: Format) -> None:
    options = JellyOptions()
    if options_class(format) is JellyOptions:
        check_options(format, options)
        return
    with pytest.raises(UsageError, match=f"options of Jelly have no meaning for {format.name}"):
        encoder_for(format, format.own or RDFM, EncoderOptions(own=options))


def loaded(code: str) -> list[str]:
    """The modules of `logs` that a program has loaded at its end."""
    code += "\nimport sys; print(*(name for name in sys.modules if name.startswith('construct_messages.logs.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [name.removeprefix("construct_messages.logs.") for name in done.stdout.split()]


def test_a_syntax_is_loaded_when_it_is_asked_for() -> None:
    assert not [
        name
        for name in loaded("import construct_messages")
        if name.endswith((".encoder", ".decoder"))
    ]


@pytest.mark.parametrize("format", [JELLY, N_QUADS], ids=lambda format: format.extension)
def test_other_syntaxes_are_not_loaded(format: Format) -> None:
    code = (
        "from construct_messages.rdf.formats.lookup import find_format\n"
        "from construct_messages.logs import decoder_for\n"
        f"decoder_for(find_format({format.extension!r})[0])"
    )
    found = [name for name in loaded(code) if name.endswith((".encoder", ".decoder"))]
    assert found == [format.decoder.partition(":")[0]]
