"""Fill what the site takes from elsewhere: the list of decisions (MkDocs) and the doctests of docstrings (Griffe)."""

import re
from pathlib import Path
from typing import Any

import griffe

# an example of a docstring: from its first prompt to the next blank line, or the end
_DOCTEST = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Fence doctests, which stand in docstrings as plain text, so that they are shown as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object that has been loaded."""
        if obj.docstring:
            obj.docstring.value = _DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace the marker in `decisions/index.md` by links to all decisions."""
    if page.file.src_uri != "decisions/index.md":
        return markdown
    lines = []
    for path in sorted(Path(page.file.abs_src_path).parent.glob("[0-9]*.md")):
        number, _, title = (
            path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").partition(" · ")
        )
        lines.append(f"- [{number}]({path.name}) {title}")
    return markdown.replace("<!-- list -->", "\n".join(lines))
