"""What the tests of the commands for logs read, and how much of it there is."""

from __future__ import annotations

from collections.abc import Callable

from construct_messages import read_log
from tests.support.commands import Done

Here = Callable[..., Done]

LOG = """PREFIX ex: <http://example.org/>

# @message
ex:a ex:p 1 , 2 .
# @message
# @message
PREFIX later: <http://example.org/later#>

ex:b ex:p [ later:q "text"@en ] .
# @message
ex:c ex:p ex:d .
"""
NAMED = (
    "@prefix ex: <http://example.org/> .\nex:g { ex:a ex:p 1 }\n# @message\nex:h { ex:a ex:p 2 }\n"
)


def sizes(path: str) -> list[int]:
    return [len(message) for message in read_log(path)]
