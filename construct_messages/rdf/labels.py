"""Blank node labels: creates all labels of this package, so that they never collide.

Each stream (a query's messages, a log that is read, a log that is folded, a job of Spark) has its own labels: a unique
prefix, `_`, and a letter for the kind of node, so that labels of two kinds never collide within the stream. Labels with
a random prefix are recognised when they are read again, and are kept, so that they do not grow each time a log is read
and written. No serialization here.

RDF 1.2 Concepts, section 3.4: labels have meaning in one document only. docs/decisions/027-labels-with-a-prefix.md.
"""

from __future__ import annotations

import os
import re
from _thread import allocate_lock  # `threading` has the same, and takes longer to import
from typing import Final, cast

from construct_messages.errors import UsageError
from construct_messages.rdf.terms import Term, has_blank

# without vowels: a prefix is neither a word nor a number, unlike labels of other programs
_LETTERS: Final = "bcdfghjkmnpqrstvwxz"
_CHARACTERS: Final = "0123456789" + _LETTERS
_LENGTH: Final = 12  # 57 bits
_NUMBER_BYTES: Final = 16  # random bytes of a prefix: enough to make all prefixes equally likely

_MAKING: Final = allocate_lock()
"""Held while a random prefix is created."""

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


_UNDERSCORE: Final = ord("_")


def may_have_labels(lines: bytes) -> bool:
    """Whether N-Quads may have blank nodes. True may be wrong.

    >>> may_have_labels(b"<urn:s> <urn:p> _:b ."), may_have_labels(b"<urn:s> <urn:p> <urn:o_o> .")
    (True, False)
    """
    # to search for one byte, by its number, takes a tenth of the time
    return _UNDERSCORE in lines and b"_:" in lines


def are_unique(text: str) -> bool:
    """Whether all blank node labels in a text are unique, so that `Labels.in_log` keeps them. False may be wrong.

    >>> are_unique("<urn:s> <urn:p> _:b ."), are_unique(f"_:{Labels().of_data}1 <urn:p> <urn:o> .")
    (False, True)
    """
    # searching for one character takes a tenth of the time
    return "_" not in text or text.count("_:") == len(_UNIQUE.findall(text))


class Labels:
    """The blank node labels of one stream.

    Args:
        prefix: the beginning of the labels; None: a random one, which is unique. A fixed prefix creates the same labels
            each time, so use it for only one of several streams that will be joined.
        keep: whether to keep labels that are valid in a whole log (see `in_log`).

    Raises:
        UsageError: the prefix is not a lower-case letter followed by up to 31 lower-case letters or digits.

    >>> from construct_messages.rdf.terms import blank
    >>> labels = Labels("x")
    >>> labels.of_template(7, 0), blank("b0", labels.of_data), blank("b0", labels.of_response(3))
    ('_:x_t7b0', '_:x_db0', '_:x_p3_b0')
    >>> Labels().prefix == Labels().prefix
    False
    """

    __slots__ = ("_keep", "_of_log", "of_data", "prefix")

    @classmethod
    def at(cls, place: str) -> Labels:
        """Returns labels for data at an address: unique like random ones, and the same each time it is read.

        >>> Labels.at("file:///log.nq").of_data, Labels.at("file:///other.nq").of_data
        ('scjwxz1vz0bc_d', 'q4p4rqv81wnc_d')
        """
        from hashlib import blake2b  # OpenSSL takes long to load, and queries do not need it

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
                hint='use a short one, such as "x"',
            )
        self._begin(prefix)

    def _begin(self, prefix: str) -> None:
        self._of_log = f"_:{prefix}_d"
        self.of_data = f"{prefix}_d"
        """The scope (see `terms.blank`) of labels of the data that mean the same in every response of a source."""
        self.prefix = prefix

    def __getattr__(self, name: str) -> str:
        """Creates a random prefix when it is first needed."""
        if name not in ("prefix", "_of_log", "of_data"):
            raise AttributeError(name)
        with _MAKING:
            try:
                object.__getattribute__(self, name)
            except AttributeError:  # no other thread has created it
                self._begin(_prefix(os.urandom(_NUMBER_BYTES)))
        return cast(str, object.__getattribute__(self, name))

    def __repr__(self) -> str:
        return f"Labels({self.prefix!r})"

    # --- a query's messages -----------------------------------------------------------------------------------------

    def of_template(self, number: int | str, index: int) -> Term:
        """Blank node `index` of the template in solution `number` (or its replacement)."""
        return Term(f"_:{self.prefix}_t{number}b{index}")

    def in_template(self, term: Term) -> bool:
        """Whether a term is, or contains, a blank node of the template."""
        return has_blank(term, f"{self.prefix}_t")

    def of_response(self, number: int) -> str:
        """The scope (see `terms.blank`) of labels of the data that mean something in response `number` only."""
        return f"{self.prefix}_p{number}_"

    # --- logs -------------------------------------------------------------------------------------------------------

    def in_message(self, number: int) -> MessageLabels:
        """The labels of the nodes that are local to message `number` of a log, from 1."""
        return MessageLabels(f"_:{self.prefix}_m{number}b")

    def in_log(self, node: Term) -> Term:
        """The label of a node whose label is valid in a whole log.

        Labels that are already unique are kept.

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
        )  # avoids the call of Term(…), as there may be very many

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
"""The number of hexadecimal digits of the SHA-256 of its path in the labels of a file in a table of quads."""


def of_file(file: str) -> str:
    """The scope (see `terms.blank`) of a file's labels in a table of quads: the same whenever it is loaded.

    SQL makes the same of a column (`spark/quads/loading.py`). Messages of a table get their query's prefix before it.

    >>> of_file("file:///data.nt")
    'fcbec6be419f38a57_'
    """
    from hashlib import sha256

    return f"f{sha256(file.encode()).hexdigest()[:FILE_DIGITS]}_"


class MessageLabels(dict[Term, Term]):
    """The labels of the nodes of one message, in order of first appearance, by their original labels.

    >>> labels = Labels("x").in_message(7)
    >>> labels[Term("_:a")], labels[Term("_:b")], labels[Term("_:a")]
    ('_:x_m7b0', '_:x_m7b1', '_:x_m7b0')
    """

    def __init__(self, stem: str) -> None:
        super().__init__()
        # how its labels begin, before their numbers
        self.stem = stem

    def __missing__(self, label: Term) -> Term:
        renamed = self[label] = Term(f"{self.stem}{len(self)}")
        return renamed
