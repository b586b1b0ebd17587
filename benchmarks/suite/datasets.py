"""The data sets of the suite: DBpedia-shaped triples from a seed, and real DBpedia files by path or from a mirror.

Shares and words are in `shape.py`. An entity is made from its number alone, so that others can name it: memory stays
the same for any size.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.suite.records import Group
from benchmarks.suite.shape import (
    ABSTRACT,
    ACCENTED,
    CATEGORIES,
    CLARIFIED,
    COUNTRY_TYPES,
    HUBS,
    IMAGES_SHARE,
    INFOBOX,
    INFOBOX_NAMES,
    INFOBOX_SHARE,
    KINDS,
    LABEL,
    LANGUAGES,
    LIBRARY_SHARE,
    MEAN_TRIPLES,
    NOT_ASCII,
    ONTOLOGY,
    PARENTHESES,
    PROPERTY,
    RDF_TYPE,
    RESOURCE,
    SCRIPTS,
    TYPES,
    WORDNET_SHARE,
    WORDS,
    XSD,
)

FOLDER = Path(__file__).parents[1] / "results" / "data"


@dataclass(frozen=True)
class Dataset:
    """Data to ask queries of.

    Args:
        name: as in rows.
        size: triples.
        path: writes or fetches the N-Triples file if need be, and says where it is.
        queries: names of the queries that find something in it; empty for all.
        endpoint: the URL where it is, for data that are in no file.
        truth: what each query must give, where there is no file that it could be computed from.
    """

    name: str
    size: int
    path: Callable[[], Path]
    queries: tuple[str, ...] = ()
    endpoint: str | None = None
    truth: Mapping[str, Sequence[Group]] | None = None


# --- generated ---


def generated(triples: int, seed: int = 42) -> Dataset:
    """The DBpedia-shaped data set of a size."""
    return Dataset("dbpedia-shaped", triples, lambda: dbpedia_shaped(triples, seed))


def dbpedia_shaped(triples: int, seed: int = 42, folder: Path = FOLDER) -> Path:
    """The file of a generated data set; it is written where it is not there yet."""
    path = folder / f"dbpedia-shaped-{triples}-{seed}-{_version()}.nt"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".part")
        write_dbpedia_shaped(beside, triples, seed)
        beside.replace(path)
    return path


def write_dbpedia_shaped(path: Path, triples: int, seed: int = 42) -> None:
    """Writes N-Triples of the shape of DBpedia: as many as asked for, no two equal, the same for a seed and size."""
    with path.open("w", encoding="utf-8", buffering=1 << 20) as file:
        left = triples
        for lines in _Generator(triples, seed).entities():
            del lines[left:]
            file.writelines(lines)
            left -= len(lines)
            if not left:
                return


def _version() -> str:
    """Names the generator: what it wrote before it was changed is not taken for what it writes now."""
    sources = (Path(__file__), Path(__file__).with_name("shape.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:8]


class _Generator:
    """Entities and their triples. `_random` is asked in the order of the file; names and links need no memory."""

    def __init__(self, triples: int, seed: int) -> None:
        chance = Random(seed)
        self._random = chance.random
        self._normal = chance.gauss
        self._entities = max(100, int(triples / MEAN_TRIPLES))
        self._countries = min(200, max(8, triples // 5000))
        self._categories = max(20, self._entities // 4)
        slots = [kind for kind, share in KINDS.items() for _ in range(share)]
        chance.shuffle(slots)
        self._slots = slots
        self._places = {
            kind: [at for at, slot in enumerate(slots) if slot == kind] for kind in KINDS
        }
        self._heads = [self._head(chance) for _ in range(1009)]
        self._tails = [
            f"_({chance.choice(CLARIFIED)})" if chance.random() < PARENTHESES else ""
            for _ in range(1013)
        ]
        self._words = [f"{chance.choice(WORDS)} {chance.choice(WORDS)}" for _ in range(2003)]
        self._text = " ".join(chance.choice(WORDS).lower() for _ in range(20_000))
        names = [
            *INFOBOX_NAMES,
            *(f"{name}{number}" for number in range(1, 12) for name in INFOBOX_NAMES),
        ][:523]
        self._properties = [f"<{PROPERTY}{name}>" for name in names]
        self._details: dict[str, Callable[[str, str, int], list[str]]] = {
            "person": self._person,
            "place": self._place,
            "work": self._work,
            "organisation": self._organisation,
            "species": self._species,
            "other": self._other,
        }
        self._types = {
            kind: ["".join(f"{{s}} {RDF_TYPE} <{type}> .\n" for type in types) for types in classes]
            for kind, classes in TYPES.items()
        }

    def _head(self, chance: Random) -> str:
        # a name has two parts or one of them
        share = 1 - math.sqrt(1 - NOT_ASCII)
        return "_".join(
            chance.choice(ACCENTED if chance.random() < share else WORDS) for _ in range(2)
        )

    def entities(self) -> Iterator[list[str]]:
        """The lines of each entity."""
        for number in range(self._countries):
            yield self._country(number)
        number = 0
        while True:
            yield self._entity(number)
            number += 1

    # --- names ---

    def _name(self, number: int) -> str:
        return f"{self._heads[number % 1009]}_{number}{self._tails[number % 1013]}"

    def _link(self, kind: str) -> str:
        """An entity of a kind, hubs first."""
        places = self._places[kind]
        rank = int(self._entities * len(places) / 100 * self._random() ** HUBS)
        return f"<{RESOURCE}{self._name(rank // len(places) * 100 + places[rank % len(places)])}>"

    def _any_country(self) -> str:
        return f"<{RESOURCE}Country_{int(self._countries * self._random() ** HUBS)}>"

    # --- what all have ---

    def _common(self, s: str, label: str, languages: int) -> list[str]:
        random = self._random
        lines = [f'{s} {LABEL} "{label}"@en .\n']
        for language in LANGUAGES[:languages]:
            word = SCRIPTS.get(language)
            lines.append(
                f'{s} {LABEL} "{label if word is None else f"{word} {label}"}"@{language} .\n'
            )
        lines.append(f'{s} <{ONTOLOGY}abstract> "{self._abstract()}"@en .\n')
        lines += [
            f'{s} <{ONTOLOGY}abstract> "{self._abstract()}"@{language} .\n'
            for language in LANGUAGES[: languages // 5]
        ]
        categories = {
            int(self._categories * random() ** HUBS)
            for _ in range(1 + int(random() * CATEGORIES * 2))
        }
        lines += [
            f"{s} <http://purl.org/dc/terms/subject> <{RESOURCE}Category:{self._words[each % 2003].replace(' ', '_')}"
            f"_{each}> .\n"
            for each in sorted(categories)
        ]
        if random() < IMAGES_SHARE:
            file = f"http://commons.wikimedia.org/wiki/Special:FilePath/{self._words[int(random() * 2003)][:9]}"
            file = f"{file.replace(' ', '_')}_{s[29:-1]}.jpg"
            lines.append(f"{s} <http://xmlns.com/foaf/0.1/depiction> <{file}> .\n")
            lines.append(f"{s} <{ONTOLOGY}thumbnail> <{file}?width=300> .\n")
        if random() < WORDNET_SHARE:
            synset = f"http://www.w3.org/2006/03/wn/wn20/instances/synset-{int(124 * random() ** HUBS)}-noun-1"
            lines.append(f"{s} <{PROPERTY}wordnet_type> <{synset}> .\n")
        if random() < LIBRARY_SHARE:
            record = f"http://d-nb.info/gnd/{int(random() * 9e8)}"
            lines.append(f"{s} <http://www.w3.org/2002/07/owl#sameAs> <{record}> .\n")
        return lines

    def _abstract(self) -> str:
        length = min(3600, int(math.exp(self._normal(*ABSTRACT))))
        start = int(self._random() * 100_000)
        text = self._text[start : start + length]
        return text if length % 20 else f'{text} \\"{self._words[length % 2003]}\\"\\n'

    def _infobox(self, s: str) -> list[str]:
        random = self._random
        if random() > INFOBOX_SHARE:
            return []
        lines = []
        for _ in range(min(277, int(math.exp(self._normal(*INFOBOX))))):
            p, which, number = (
                self._properties[int(523 * random() ** HUBS)],
                random(),
                int(random() * 2000),
            )
            if which < 0.36:
                o = f'"{self._words[number]}"@en'
            elif which < 0.64:
                o = f"<{RESOURCE}{self._name(int(self._entities * random() ** HUBS))}>"
            elif which < 0.84:
                o = f'"{number}"^^<{XSD}integer>'
            elif which < 0.95:
                o = f'"{number / 10}"^^<{XSD}double>'
            elif which < 0.98:
                o = f'"{number * 1000}.0"^^<http://dbpedia.org/datatype/usDollar>'
            else:
                o = f'"{self._date(number)}"^^<{XSD}date>'
            lines.append(f"{s} {p} {o} .\n")
        return lines

    def _date(self, number: int) -> str:
        return f"{1900 + number % 120}-{1 + number % 12:02}-{1 + number % 28:02}"

    # --- entities ---

    def _country(self, number: int) -> list[str]:
        s, random = f"<{RESOURCE}Country_{number}>", self._random
        return [
            *(f"{s} {RDF_TYPE} <{type}> .\n" for type in COUNTRY_TYPES),
            *self._common(s, f"Country {number}", len(LANGUAGES) if number % 2 else 11),
            f'{s} <{ONTOLOGY}populationTotal> "{int(10 ** (4 + 5 * random()))}"^^<{XSD}nonNegativeInteger> .\n',
            f"{s} <{ONTOLOGY}capital> {self._link('place')} .\n",
            f"{s} <{ONTOLOGY}language> <{RESOURCE}Language_{number % 40}> .\n",
            f"{s} <{ONTOLOGY}currency> <{RESOURCE}Currency_{number % 60}> .\n",
        ]

    def _entity(self, number: int) -> list[str]:
        kind, random = self._slots[number % 100], self._random
        name = self._name(number)
        s, label = f"<{RESOURCE}{name}>", name.replace("_", " ")
        fame = random()
        classes = self._types[kind]
        # the first class most often, as the sizes of classes fall
        types = classes[int(len(classes) * random() ** 1.7)].replace("{s}", s)
        lines = types.splitlines(keepends=True)
        lines += self._common(s, label, min(len(LANGUAGES), int((0.6 / (fame + 1e-9)) ** 2)))
        lines += self._details[kind](s, name, number)
        lines += self._infobox(s)
        return list(dict.fromkeys(lines))  # no two equal

    def _person(self, s: str, name: str, number: int) -> list[str]:
        random = self._random
        lines = [
            f'{s} <http://xmlns.com/foaf/0.1/name> "{self._words[number % 2003]}"@en .\n',
            f'{s} <{ONTOLOGY}birthDate> "{self._date(int(random() * 40_000))}"^^<{XSD}date> .\n',
            f"{s} <{ONTOLOGY}birthPlace> {self._link('place')} .\n",
        ]
        if random() < 0.5:
            lines.append(f"{s} <{ONTOLOGY}birthPlace> {self._any_country()} .\n")
        if random() < 0.4:
            lines.append(
                f'{s} <{ONTOLOGY}deathDate> "{self._date(int(random() * 40_000))}"^^<{XSD}date> .\n'
            )
            lines.append(f"{s} <{ONTOLOGY}deathPlace> {self._link('place')} .\n")
        if random() < 0.15:
            lines.append(f"{s} <{ONTOLOGY}almaMater> {self._link('organisation')} .\n")
        if random() < 0.08:
            lines.append(f"{s} <{ONTOLOGY}spouse> {self._link('person')} .\n")
        if random() < 0.25:
            # DBpedia calls these nodes `X__CareerStation__1`; here every second career has blank nodes
            for station in range(1 + int(random() * 5)):
                node = (
                    f"_:c{number}x{station}"
                    if number % 2
                    else f"<{RESOURCE}{name}__CareerStation__{station + 1}>"
                )
                lines += (
                    f"{s} <{ONTOLOGY}careerStation> {node} .\n",
                    f"{node} {RDF_TYPE} <{ONTOLOGY}CareerStation> .\n",
                    f"{node} <{ONTOLOGY}team> {self._link('organisation')} .\n",
                    f'{node} <{ONTOLOGY}years> "{1950 + int(random() * 70)}"^^<{XSD}gYear> .\n',
                )
        return lines

    def _place(self, s: str, _name: str, _number: int) -> list[str]:
        random = self._random
        lines = [
            f"{s} <{ONTOLOGY}country> {self._any_country()} .\n",
            f'{s} <http://www.w3.org/2003/01/geo/wgs84_pos#lat> "{random() * 180 - 90:.4f}"^^<{XSD}float> .\n',
            f'{s} <http://www.w3.org/2003/01/geo/wgs84_pos#long> "{random() * 360 - 180:.4f}"^^<{XSD}float> .\n',
        ]
        if random() < 0.7:
            people = int(10 ** (1 + 5 * random()))
            lines.append(
                f'{s} <{ONTOLOGY}populationTotal> "{people}"^^<{XSD}nonNegativeInteger> .\n'
            )
        if random() < 0.6:
            lines.append(f"{s} <{ONTOLOGY}isPartOf> {self._link('place')} .\n")
        if random() < 0.2:
            lines.append(f"{s} <{ONTOLOGY}leaderName> {self._link('person')} .\n")
        return lines

    def _work(self, s: str, _name: str, _number: int) -> list[str]:
        random = self._random
        lines = [
            f"{s} <{ONTOLOGY}author> {self._link('person')} .\n",
            f'{s} <{ONTOLOGY}releaseDate> "{self._date(int(random() * 40_000))}"^^<{XSD}date> .\n',
            f"{s} <{ONTOLOGY}language> <{RESOURCE}Language_{int(40 * random() ** HUBS)}> .\n",
        ]
        lines += [
            f"{s} <{ONTOLOGY}starring> {self._link('person')} .\n" for _ in range(int(random() * 7))
        ]
        if random() < 0.1:
            lines.append(f"{s} <{ONTOLOGY}previousWork> {self._link('work')} .\n")
        return lines

    def _organisation(self, s: str, _name: str, _number: int) -> list[str]:
        random = self._random
        lines = [
            f"{s} <{ONTOLOGY}location> {self._any_country()} .\n",
            f'{s} <{ONTOLOGY}foundingDate> "{self._date(int(random() * 40_000))}"^^<{XSD}date> .\n',
        ]
        if random() < 0.06:
            # mapped from a text that names no page: what CONSTRUCT must leave out where it is a subject
            lines.append(f'{s} <{ONTOLOGY}location> "{self._words[int(random() * 2003)]}"@en .\n')
        if random() < 0.4:
            lines.append(
                f'{s} <{ONTOLOGY}numberOfEmployees> "{int(10 ** (1 + 4 * random()))}"^^<{XSD}nonNegativeInteger> .\n'
            )
        lines += [
            f"{s} <{ONTOLOGY}keyPerson> {self._link('person')} .\n"
            for _ in range(int(random() * 3))
        ]
        lines += [
            f"{s} <{ONTOLOGY}subsidiary> {self._link('organisation')} .\n"
            for _ in range(int(random() * 2))
        ]
        if random() < 0.5:
            lines.append(f"{s} <{ONTOLOGY}industry> {self._link('other')} .\n")
        if random() < 0.5:
            lines.append(
                f"{s} <http://xmlns.com/foaf/0.1/homepage> <http://www.example.com/{_number}> .\n"
            )
        return lines

    def _species(self, s: str, _name: str, number: int) -> list[str]:
        return [
            f"{s} <{ONTOLOGY}kingdom> <{RESOURCE}Animal> .\n",
            f"{s} <{ONTOLOGY}family> <{RESOURCE}Family_{int(500 * self._random() ** HUBS)}> .\n",
            f"{s} <{ONTOLOGY}genus> <{RESOURCE}Genus_{int(number * self._random() ** HUBS)}> .\n",
        ]

    def _other(self, s: str, _name: str, _number: int) -> list[str]:
        if self._random() < 0.3:
            return [f"{s} <http://www.w3.org/2000/01/rdf-schema#seeAlso> {self._link('other')} .\n"]
        return []
