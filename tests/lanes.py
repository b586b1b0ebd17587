"""Which test modules take long: they run in `make check` and in CI, and not by `pytest` alone.

The quick lane still touches every room. What it leaves out asks other engines and programs, asks Spark, plays every
fault by every client, or counts work over large inputs. A module that is named on the command line always runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

QUICK_SPARK: Final = frozenset(("test_spark_messages.py", "test_spark_optimize.py", "test_spark_parse_tree.py"))

LONG: Final = frozenset(
    (
        # other engines and programs
        *("test_clients.py", "test_engines.py", "test_logs_peers.py", "test_server_nginx.py"),
        *("test_server_virtuoso.py", "test_virtuoso.py"),
        # faults, at every byte and by every client
        *("test_endpoint_faults.py", "test_retries.py", "test_security.py", "test_server_faults.py"),
        # large and broken inputs
        *("test_hostile_terms.py", "test_logs_fuzz.py", "test_logs_growth.py", "test_logs_round_trip.py"),
        *("test_logs_turtle_scanner.py", "test_isomorphism.py", "test_query_mutations.py", "test_query_oracle.py"),
        *("test_query_tokens.py", "test_query_work.py", "test_results_work.py", "test_server_http.py"),
        # processes that are started, stopped and killed
        *("test_cli_edges.py", "test_loading.py", "test_server_load.py", "test_server_supervisor.py"),
        *("test_docs.py", "test_server_gate.py", "test_sources_oxigraph.py", "test_workers.py"),
    )
)


def is_long(path: Path) -> bool:
    """Whether a test module takes long."""
    name = path.name
    return name in LONG or (name.startswith("test_spark_") and name not in QUICK_SPARK) or name == "test_cli_spark.py"
