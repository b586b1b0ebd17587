"""Real DBpedia files: found in a folder or fetched from a mirror, checked by their SHA-256, and made into N-Triples.

The files are no part of the project. Their sources are public repositories: `dbpedia/links` on GitHub (CC0) and the
sample of the 2015-10 release in `iai-group/nordlys` (CC BY-SA 3.0, DBpedia), named in docs/benchmarks.
"""

from __future__ import annotations

import bz2
import hashlib
import os
import shutil
import urllib.request
from pathlib import Path

import pyoxigraph as ox

from benchmarks.suite.datasets import FOLDER, Dataset

VARIABLE = "CONSTRUCT_MESSAGES_DBPEDIA"
"""The environment variable that names the folder or the mirror where `--real` names none."""

# the files of each data set, as they lie in the folder or under the mirror's URL, with their SHA-256
_LINKS = {
    "dnb-extended-links.nt.bz2": "04e7e22cba779c6c9812c67d75cc2927838023074fd8b71eb8c34270f7d99cc7",
    "wordnet_links.nt.bz2": "500e034d8a69082e74faa8519de0b23b82d291176329b0a82b6dc7e49293a7fa",
}
# without the texts of links, links between pages, page numbers and degrees, of which no query asks
_PARTS = {
    "article_categories": "11b11fbffcee56b4b4fb5915db37ce16d8e457018339e9571e81f1949a9fd4bd",
    "freebase_links": "39ba8828b4c23b8a27e471349dd2df11f4e5262d19af1bb4cac090818332483a",
    "geo_coordinates_mappingbased": "71c08e4e5f8a585408ed8997bc7cc070f164ee030b38c66cf23af99b3b3a365b",
    "homepages": "709167c60cfcd3bbf04c6d679348b7ef39432f03d805dddb611af7b7318a820f",
    "images": "fd957b2fcb541dac989b5b74e9d73fa71ffd1a0968f7d5b39893acb7ab8f1c20",
    "infobox_properties": "45210894607b1e798bd7fb70287f67eef69515e3666c383a0e8593b075e8af4d",
    "instance_types_transitive": "9abcb9b1b7cd32dceaa6cd57f15d39a07b2666ec1a61e92a4f234e422827aa2e",
    "labels": "12e64c72382e3d4ee67b44b74c6580d20851dd842a9d98900b32b6f8eae5a2fe",
    "long_abstracts": "b62dd234559da113161eaaffeeed8ff6441629b0534b4b698b3a764005e0485e",
    "mappingbased_literals": "fc6740b9af2bf12f195d9babdbca1b280c6b9b4bc925e46ae4177bb97d114f83",
    "mappingbased_objects": "19064b5b0a42e66f28f48b2262d64e6ff614731a3c36d444dfd51f4d783174a5",
    "persondata": "10a8c3db9e598bcff91923b993cebd8ea546e96f26f337f14c5bf2e09f53bc29",
    "short_abstracts": "dff6999c2890649e3dab33885579af73bfbdd6cc92ae6f211045f7b936ea6530",
    "specific_mappingbased_properties": "f4572c804f5cea83e08a4467ebfbcb2ef9bc49d17bc59de649444814a1604833",
    "transitive_redirects": "9fa32168cdec0992d663f2f0d44386823fd3f5eabe0ca63b84cfbf89ab9ea0da",
}
_SAMPLE = {f"2015-10-sample/{name}_en.ttl.bz2": checksum for name, checksum in _PARTS.items()}
_IN_SAMPLE = ("capped", "large-literals", "left-out", "optional", "star")


def real(place: str, folder: Path = FOLDER) -> list[Dataset]:
    """The real data sets.

    Args:
        place: a folder that holds the files, or the URL of a mirror, under which they are.
        folder: where the N-Triples files, and what is fetched, are written.
    """
    return [
        Dataset(
            "dbpedia-sample",
            4_819,
            lambda: _made("dbpedia-sample", _SAMPLE, place, folder),
            _IN_SAMPLE,
        ),
        Dataset(
            "dbpedia-links",
            669_847,
            lambda: _made("dbpedia-links", _LINKS, place, folder),
            ("links",),
        ),
    ]


def _made(name: str, files: dict[str, str], place: str, folder: Path) -> Path:
    """The N-Triples file of a data set; it is written where it is not there yet."""
    names = hashlib.sha256("".join(files.values()).encode()).hexdigest()[:8]
    path = folder / f"{name}-{names}.nt"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        store = ox.Store()  # which leaves out what is in several files
        for file, checksum in files.items():
            with bz2.open(checked(file, checksum, place, folder)) as content:
                store.bulk_load(content, ox.RdfFormat.TURTLE)
        beside = path.with_suffix(".part")
        store.dump(str(beside), ox.RdfFormat.N_TRIPLES, from_graph=ox.DefaultGraph())
        beside.replace(path)
    return path


def checked(file: str, checksum: str, place: str, folder: Path) -> Path:
    """A file, in the folder or fetched from the mirror, whose SHA-256 is the one given.

    Raises:
        SystemExit: it is not there, or is another one.
    """
    if place.startswith(("http://", "https://")):
        path = folder / file
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f"{path.name}.part")
            with (
                urllib.request.urlopen(f"{place.rstrip('/')}/{file}", timeout=60) as response,
                beside.open("wb") as out,
            ):
                shutil.copyfileobj(response, out)
            beside.replace(path)
    else:
        path = Path(place) / file
        if not path.is_file():
            raise SystemExit(
                f"{path} is not there: name the folder or mirror with {file} by --real or {VARIABLE}"
            )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != checksum:
        raise SystemExit(
            f"{path} is not the file that it should be: SHA-256 {found} instead of {checksum}"
        )
    return path


def place_of(argument: str | None) -> str | None:
    """The folder or mirror that an option or the environment names."""
    return argument or os.environ.get(VARIABLE)
