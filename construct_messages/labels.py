"""Blank node labels: every one that this package makes is made here, and none of them can ever meet another.

Each stream (a query's messages, a log that is read, a log that is folded, a job of Spark) makes labels of its own: a
prefix that no other stream has, `_`, and a letter for the kind of node, so that labels of two kinds never collide
within the stream. A random prefix is recognised when it is read again. So such labels are kept, and do not grow each
time a log is read and written. No serialization here, and nothing about where nodes come from.

RDF 1.2 Concepts, section 3.4: labels have meaning in one document only. docs/decisions/027-labels-with-a-prefix.md.
"""

from __future__ import annotations

import os
import re
import threading
from typing import Final, cast

from construct_messages.errors import UsageError
from construct_messages.terms import Term, has_blank

# without vowels: a prefix is no word, and no number, as labels of other programs may be
_LETTERS: Final = "bcdfghjkmnpqrstvwxz"
_CHARACTERS: Final = "0123456789" + _LETTERS
_LENGTH: Final = 12  # 57 bits
_NUMBER_BYTES: Final = 16  # of which a prefix is made: enough to make all prefixes equally likely

_MAKING: Final = threading.Lock()
"""Held while a random prefix is made."""

_PREFIX: Final = re.compile(r"[a-z][a-z0-9]{0,31}")
_UNIQUE: Final = re.compile(
    "|".join(
        f"_:[{letters}][{characters}]{{{_LENGTH - 1}}}_[{kinds}]"
        for letters, characters, kinds in (
            (_LETTERS, _CHARACTERS, "a-z"),
            (_LETTERS.upper(), _CHARACTERS.upper(), "A-Z"),  # see `terms.blank`
        )
    )
)


def are_unique(text: str) -> bool:
    """Whether all blank node labels in a text are unique, so that `Labels.in_log` keeps them. False may be wrong.

    >>> are_unique("<urn:s> <urn:p> _:b ."), are_unique(f"_:{Labels().of_data}1 <urn:p> <urn:o> .")
    (False, True)
    """
    # to look for one character takes a tenth of the time
    return "_" not in text or text.count("_:") == len(_UNIQUE.findall(text))


class Labels:
    """The blank node labels of one stream.

    Args:
        prefix: what the labels begin with; None: a random one, which no other stream has. A fixed prefix makes the same
            labels each time, so use it for only one of several streams that will be joined.
        keep: whether labels that hold for a whole log stay as they are (see `in_log`).

    Attributes:
        prefix: what the labels begin with.

    Raises:
        UsageError: a prefix that is more than a lower-case letter and up to 31 more, or digits.

    >>> from construct_messages.terms import blank
    >>> labels = Labels("x")
    >>> labels.of_template(7, 0), blank("b0", labels.of_data), blank("b0", labels.of_response(3))
    ('_:x_t7b0', '_:x_db0', '_:x_p3_b0')
    >>> Labels().prefix == Labels().prefix
    False
    """

    __slots__ = ("_keep", "_of_log", "of_data", "prefix")

    @classmethod
    def at(cls, place: str) -> Labels:
        """The labels of what is read at a place: unique as random ones are, and the same whenever it is read again.

        >>> Labels.at("file:///log.nq").of_data, Labels.at("file:///other.nq").of_data
        ('scjwxz1vz0bc_d', 'q4p4rqv81wnc_d')
        """
        from hashlib import blake2b  # OpenSSL takes long to load, and queries do without

        return cls(
            _prefix(
                blake2b(place.encode("utf-8", "surrogatepass"), digest_size=_NUMBER_BYTES).digest()
            )
        )

    def __init__(self, prefix: str | None = None, *, keep: bool = False) -> None:
        self._keep = keep
        if prefix is None:
            return  # most documents of one message have no blank nodes: see `__getattr__`
        if not _PREFIX.fullmatch(prefix):
            raise UsageError(
                f"the prefix {prefix!r} of labels is not a lower-case letter followed by lower-case letters and digits",
                hint='give a short one, such as "x"',
            )
        self._begin(prefix)

    def _begin(self, prefix: str) -> None:
        self._of_log = f"_:{prefix}_d"
        self.of_data = f"{prefix}_d"
        """The scope (see `terms.blank`) of labels of the data that mean the same in every response of a source."""
        self.prefix = prefix

    def __getattr__(self, name: str) -> str:
        """Makes a random prefix when it is first needed."""
        if name not in ("prefix", "_of_log", "of_data"):
            raise AttributeError(name)
        with _MAKING:
            try:
                object.__getattribute__(self, name)
            except AttributeError:  # no other thread has made it
                self._begin(_prefix(os.urandom(_NUMBER_BYTES)))
        return cast(str, object.__getattribute__(self, name))

    def __repr__(self) -> str:
        return f"Labels({self.prefix!r})"

    # --- a query's messages -----------------------------------------------------------------------------------------

    def of_template(self, number: int | str, index: int) -> Term:
        """Blank node `index` of the template in solution `number` (or its replacement)."""
        return Term(f"_:{self.prefix}_t{number}b{index}")

    def in_template(self, term: Term) -> bool:
        """Whether a term is, or holds, a blank node of the template."""
        return has_blank(term, f"{self.prefix}_t")

    def of_response(self, number: int) -> str:
        """The scope (see `terms.blank`) of labels of the data that mean something in response `number` only."""
        return f"{self.prefix}_p{number}_"

    # --- logs -------------------------------------------------------------------------------------------------------

    def in_message(self, number: int) -> MessageLabels:
        """The labels of nodes that message `number` of a log, from 1, has to itself."""
        return MessageLabels(f"_:{self.prefix}_m{number}b")

    def in_log(self, node: Term) -> Term:
        """The label of a node that a whole log knows by one label; the same for the same.

        Labels that were made unique before stay as they are.

        >>> labels = Labels("x")
        >>> labels.in_log(Term("_:b0")), Labels("x", keep=True).in_log(Term("_:b0"))
        ('_:x_db0', '_:b0')
        >>> unique = Labels().in_log(Term("_:b0"))
        >>> labels.in_log(unique) == unique
        True
        """
        if self._keep or _UNIQUE.match(node):
            return node
        return cast(
            Term, self._of_log + node[2:]
        )  # a call less than Term(…): there may be very many

    def of_fold(self, number: int) -> str:
        """Returns the beginning of labels of nodes that folding creates in message `number`, from 1."""
        return f"{self.prefix}_f{number}b"


def _prefix(entropy: bytes) -> str:
    """A letter and further characters, of a number."""
    number, first = divmod(int.from_bytes(entropy), len(_LETTERS))
    prefix = _LETTERS[first]
    for _ in range(_LENGTH - 1):
        number, digit = divmod(number, len(_CHARACTERS))
        prefix += _CHARACTERS[digit]
    return prefix


FILE_DIGITS: Final = 16
"""How many hexadecimal digits of the SHA-256 of its path the labels of a file have in a table of quads."""


def of_file(file: str) -> str:
    """The scope (see `terms.blank`) of a file's labels in a table of quads: the same whenever it is loaded.

    SQL makes the same of a column (`spark/quads/loading.py`). Messages of a table get their query's prefix before it.

    >>> of_file("file:///data.nt")
    'fcbec6be419f38a57_'
    """
    from hashlib import sha256

    return f"f{sha256(file.encode()).hexdigest()[:FILE_DIGITS]}_"


class MessageLabels(dict[Term, Term]):
    """The labels of the nodes of one message, in order of first appearance: by what each was called before.

    >>> labels = Labels("x").in_message(7)
    >>> labels[Term("_:a")], labels[Term("_:b")], labels[Term("_:a")]
    ('_:x_m7b0', '_:x_m7b1', '_:x_m7b0')
    """

    def __init__(self, stem: str) -> None:
        super().__init__()
        self._stem = stem

    def __missing__(self, label: Term) -> Term:
        renamed = self[label] = Term(f"{self._stem}{len(self)}")
        return renamed
