"""The cells of the guide to notebooks run in a kernel and give what the page shows."""

from __future__ import annotations

from itertools import pairwise

import nbclient
import nbformat
import pytest

from tests.support.docs import BLOCKS
from tests.support.places import ROOT

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_the_cells_give_what_the_page_shows() -> None:
    blocks = [block for block in BLOCKS if block.page == "docs/guides/notebooks.md"]
    cells = [block for block in blocks if block.language == "ipython"]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(block.text) for block in cells]
    )
    nbclient.NotebookClient(
        notebook,
        allow_errors=True,
        timeout=120,
        resources={"metadata": {"path": str(ROOT)}},
    ).execute()
    loaded, query, listed, frame, source, prefixes, populations, failed = (
        cell.outputs for cell in notebook.cells
    )
    assert loaded == source == []
    assert query[0].data["text/html"].startswith("<p>3 messages</p>")
    assert "<th>name</th>" in frame[0].data["text/html"]
    assert "'dbo'" in prefixes[0].data["text/plain"]
    assert populations[0].data["text/html"].startswith("<p>2 messages</p>")
    shown = [
        after.text
        for block, after in pairwise(blocks)
        if block.language == "ipython" and after.language == "text"
    ]
    assert [listed[0].data["text/plain"] + "\n", "\n".join(failed[0].traceback) + "\n"] == shown
