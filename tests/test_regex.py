"""Expressions that are compiled on first use are those of `re.compile`."""

from __future__ import annotations

import re

import pytest

from construct_messages.regex import regex


@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
def test_it_is_the_expression_of_re(flags: int) -> None:
    lazy, compiled = regex(r"(?P<word>[a-z]+)\d*", flags), re.compile(r"(?P<word>[a-z]+)\d*", flags)
    for text in ("abc1 d", "ABC", "", "1"):
        assert lazy.sub("-", text) == compiled.sub("-", text)
        assert lazy.findall(text) == compiled.findall(text)
        assert [match is None for match in (lazy.fullmatch(text), lazy.search(text, 1))] == [
            match is None for match in (compiled.fullmatch(text), compiled.search(text, 1))
        ]
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (
        compiled.pattern,
        compiled.flags,
        compiled.groupindex,
    )


def test_it_is_compiled_once_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    compile = re.compile
    monkeypatch.setattr(re, "compile", lambda *given: compiled.append(given[0]) or compile(*given))
    lazy = regex(b"a+")
    assert compiled == []
    assert [lazy.findall(b"aba"), lazy.findall(b"b")] == [[b"a", b"a"], []]
    assert compiled == [b"a+"]


def test_it_has_no_attributes_of_its_own() -> None:
    with pytest.raises(AttributeError, match="no_such_method"):
        regex("a").no_such_method  # type: ignore[attr-defined]  # noqa: B018 - looking it up is the test
