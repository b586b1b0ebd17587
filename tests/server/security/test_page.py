"""docs/explanation/security.md names the tests of its guarantees."""

import re
from pathlib import Path

from tests.support.places import ROOT


def defined_in(module: Path) -> set[str]:
    return set(
        re.findall(r"^(?:async )?def (test_\w+)", module.read_text(encoding="utf-8"), re.MULTILINE)
    )


def test_the_page_names_the_tests() -> None:
    """Each test that it names exists, and it names each test here."""
    page = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
    here = [defined_in(path) for path in Path(__file__).parent.glob("test_*.py")]
    own = set().union(*here) - {"test_the_page_names_the_tests"}
    named = re.findall(r"`(?:([\w/]+)::)?(test_\w+)`", page)
    assert {test for module, test in named if not module} == own
    for module, test in named:
        assert not module or test in defined_in(ROOT / "tests" / f"{module}.py"), (module, test)
    guarantees = [
        line
        for line in page.splitlines()
        if line.startswith("| ") and not line.startswith(("| guarantee", "|--"))
    ]
    assert len(guarantees) > 20
    assert all("test_" in line for line in guarantees)
