"""The shape of the generated data: figures measured on DBpedia, the names that stand in for its own, and their shares.

Numbers and words alone; `datasets.py` writes triples from them. Where each figure comes from is in docs/benchmarks.
"""

from __future__ import annotations

RESOURCE = "http://dbpedia.org/resource/"
ONTOLOGY = "http://dbpedia.org/ontology/"
PROPERTY = "http://dbpedia.org/property/"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"

# Triples of an entity on average: without links to other editions and pages, 49.7 in the 2015-10 sample.
MEAN_TRIPLES = 46.0

# Of a hundred entities. DBpedia 2014 counts 4.58 million things: 1,445,000 persons, 735,000 places, 411,000 works,
# 241,000 organisations (58,000 of them companies), 251,000 species.
KINDS = {"person": 32, "place": 16, "work": 9, "organisation": 6, "species": 5, "other": 32}

# The types of an entity: 7.3 on average of those that have any (the sample's instance_types_transitive).
_THING, _DUL, _SCHEMA = (
    "http://www.w3.org/2002/07/owl#Thing",
    "http://www.ontologydesignpatterns.org/ont/dul/DUL.owl#",
    "http://schema.org/",
)
_AGENT = (_THING, f"{ONTOLOGY}Agent", f"{_DUL}Agent")
_PERSON = (
    *_AGENT,
    f"{ONTOLOGY}Person",
    f"{_DUL}NaturalPerson",
    f"{_SCHEMA}Person",
    "http://xmlns.com/foaf/0.1/Person",
)
_PLACE = (_THING, f"{ONTOLOGY}Place", f"{ONTOLOGY}Location", f"{_SCHEMA}Place")
_SETTLED = (*_PLACE, f"{ONTOLOGY}PopulatedPlace", f"{ONTOLOGY}Settlement")
_ORGANISATION = (
    *_AGENT,
    f"{ONTOLOGY}Organisation",
    f"{_DUL}SocialPerson",
    f"{_SCHEMA}Organization",
)
_WORK = (_THING, f"{ONTOLOGY}Work", f"{_SCHEMA}CreativeWork")
COUNTRY_TYPES = (*_PLACE, f"{ONTOLOGY}PopulatedPlace", f"{ONTOLOGY}Country", f"{_SCHEMA}Country")
# Subclasses of a kind, the first the most frequent; sizes of classes fall with about the rank to the power of −0.7 in
# wordnet_links (33,696, 32,924, 28,095 … of 437,797 in 124 classes).
TYPES: dict[str, tuple[tuple[str, ...], ...]] = {
    "person": tuple(
        (*_PERSON, *(f"{ONTOLOGY}{name}" for name in names))
        for names in (
            ("Athlete", "SoccerPlayer"), (), ("Artist",), ("Politician",), ("Writer",), ("Scientist",), ("Royalty",),
        )
    ),
    "place": tuple(
        (*place, *(f"{ONTOLOGY}{name}" for name in names))
        for place, names in (
            (_SETTLED, ("Village",)), (_SETTLED, ("Town",)), (_SETTLED, ("City",)), (_PLACE, ("River",)),
        )
    ),
    "work": tuple(
        (*_WORK, *(f"{ONTOLOGY}{name}" for name in names))
        for names in (("Film",), ("MusicalWork", "Album"), ("WrittenWork", "Book"))
    ),
    "organisation": tuple(
        (*_ORGANISATION, *(f"{ONTOLOGY}{name}" for name in names))
        for names in (("Company",), ("EducationalInstitution", "University"), ("Band",))
    ),
    "species": ((_THING, f"{ONTOLOGY}Species", f"{ONTOLOGY}Eukaryote", f"{ONTOLOGY}Animal"),),
    "other": ((), (_THING,)),
}  # fmt: skip

# Languages of labels beside English, from the largest edition on. An entity has the i-th with the chance 0.6 / √i, and
# all before it too: 5.1 on average. In DBpedia 2014, 23.8 million things of other editions are among the 4.58 million
# of the English one.
LANGUAGES = (
    "de", "fr", "nl", "sv", "it", "es", "pl", "ru", "pt", "ja", "zh", "ar", "uk", "ca", "fa", "no", "fi", "cs", "hu",
    "ko", "tr", "ro", "vi", "el",
)  # fmt: skip
# One word for the label in scripts of their own; editions in Latin script mostly keep the name.
SCRIPTS = {
    "ru": "Место", "ja": "場所", "zh": "地方", "ar": "مكان", "uk": "Місце", "fa": "مکان", "ko": "장소", "el": "Τόπος",
}  # fmt: skip

# In-degree: the page that is k-th in rank has k to the power of −2/3 of the first's links (top ten of the page links of
# 2010: 440,151, 385,407, 124,206 … 90,673), as a draw of n·u³ gives.
HUBS = 3

CATEGORIES = 6.7  # of an entity, mean (article_categories)
ABSTRACT = (
    6.48,
    0.85,
)  # of the length's logarithm: median 648, mean 891 characters (long_abstracts); at most 3,600
INFOBOX = (
    2.9,
    0.9,
)  # of the number's logarithm: median 18, at most 277, for 72 of 98 entities (infobox_properties)
INFOBOX_SHARE = 0.73
IMAGES_SHARE = 0.79
# Links to other data sets. Of 4.58 million, 437,797 and 230,992 have one (wordnet_links, dnb-extended-links): twice and
# four times as many here, so that the smallest data set has things with both.
WORDNET_SHARE = 0.2
LIBRARY_SHARE = 0.2

PARENTHESES = 0.138  # of the names of wordnet_links
NOT_ASCII = 0.059

WORDS = (
    "River", "Stone", "North", "Saint", "Grand", "Royal", "White", "Union", "Star", "Lake", "Hill", "Castle", "Bridge",
    "Garden", "Port", "New", "Old", "Green", "Silver", "Golden", "Long", "High", "East", "West", "Battle", "Song",
    "House", "Field", "Forest", "Crown", "Iron", "Valley", "Spring", "Summer", "Winter", "Night", "Light", "Black",
)  # fmt: skip
ACCENTED = (
    "Île",
    "São",
    "Köln",
    "Łódź",
    "Ærø",
    "Жар",
    "Ñuñoa",
    "Åland",
    "Öland",
    "Čáslav",
    "東",
    "Ωmega",
)
CLARIFIED = (
    "film",
    "album",
    "band",
    "singer",
    "footballer",
    "novel",
    "politician",
    "town",
    "ship",
    "company",
)
INFOBOX_NAMES = (
    "name", "caption", "website", "title", "years", "location", "type", "image", "date", "nationality", "birthPlace",
    "alt", "genre", "party", "after", "before", "country", "area", "population", "leaderTitle", "leaderName", "length",
    "width", "height", "weight", "label", "producer", "writer", "artist", "published", "awards", "team", "goals",
    "caps", "clubs", "number", "position", "motto", "established", "students", "faculty", "city", "state", "district",
)  # fmt: skip
