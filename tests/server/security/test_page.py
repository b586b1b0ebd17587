"""docs/explanation/security.md and `GUARANTEES` have the same guarantees, and their tests exist."""

import re
from pathlib import Path

from tests.support.conformance.security import GUARANTEES
from tests.support.places import ROOT

PAGE = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")


def defined_in(module: Path) -> set[str]:
    return set(
        re.findall(r"^(?:async )?def (test_\w+)", module.read_text(encoding="utf-8"), re.MULTILINE)
    )


def test_each_guarantee_has_tests() -> None:
    _, _, text = PAGE.partition("## Guarantees\n")
    guarantees = [
        " ".join(item.split())
        for item in re.findall(
            r"^- (.*(?:\n  .*)*)", text.partition("## Not guaranteed")[0], re.MULTILINE
        )
    ]
    assert len(guarantees) == len(GUARANTEES) > 20
    for key, guarantee in zip(GUARANTEES, guarantees, strict=True):
        assert guarantee.startswith(key)


def test_the_tests_exist_and_each_of_this_folder_is_named() -> None:
    here = [
        defined_in(path)
        for path in Path(__file__).parent.glob("test_*.py")
        if path != Path(__file__)
    ]
    named = [test for tests in GUARANTEES.values() for test in tests]
    assert {test for test in named if "::" not in test} == set().union(*here)
    for module, _, test in (test.rpartition("::") for test in named):
        assert not module or test in defined_in(ROOT / "tests" / f"{module}.py"), (module, test)
