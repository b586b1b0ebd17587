"""Which test modules take long: they run in `make check` and in CI, and not by `pytest` alone.

The quick lane still touches every room. What it leaves out asks other engines and programs, asks Spark, plays every
fault by every client, or counts work over large inputs. A module that is named on the command line always runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_TESTS: Final = Path(__file__).parents[1]

QUICK_SPARK: Final = frozenset(("spark/frames/test_messages.py",))

LONG: Final = frozenset(
    (
        # other engines and programs
        *("server/test_clients.py", "sources/test_engines.py", "logs/test_peers.py", "server/test_nginx.py"),
        *("server/test_virtuoso.py", "sources/test_virtuoso.py"),
        # faults, at every byte and by every client
        *(
            "sources/http/test_faults.py",
            "sources/http/test_fault_table.py",
            "sources/http/test_pages.py",
            "sources/http/test_retries.py",
            "server/test_security.py",
            "server/test_faults.py",
        ),
        # large and broken inputs
        *("terms/test_hostile_terms.py", "logs/test_fuzz.py", "logs/test_growth.py", "logs/test_round_trip.py"),
        *("logs/turtle/test_scanner.py", "test_isomorphism.py", "query/test_mutations.py", "query/test_oracle.py"),
        *("query/test_tokens.py", "query/test_work.py", "results/test_work.py", "server/http/test_requests.py"),
        # processes that are started, stopped and killed
        *(
            "cli/test_edges.py",
            "cli/test_spark.py",
            "sources/evaluators/test_loading.py",
            "server/test_load.py",
            "server/runtime/test_supervisor.py",
        ),
        *(
            "test_docs.py",
            "server/sparql/test_service_proxy.py",
            "sources/test_oxigraph.py",
            "sources/evaluators/test_pool.py",
        ),
    )
)


def is_long(path: Path) -> bool:
    """Whether a test module takes long."""
    if not path.is_relative_to(_TESTS):
        return False
    name = path.relative_to(_TESTS).as_posix()
    return name in LONG or (name.startswith("spark/") and name not in QUICK_SPARK)
