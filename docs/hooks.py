"""Fill what the site takes from elsewhere: the README as the home page and the list of decisions (MkDocs), and the
doctests of docstrings (Griffe)."""

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
    """Return the home page with the README below its table, and `decisions/index.md` with links to all decisions."""
    path = Path(page.file.abs_src_path)
    if page.file.src_uri == "index.md":
        doors, _, _ = markdown.partition("<!--")
        readme = (path.parent.parent / "README.md").read_text(encoding="utf-8")
        return doors + home(readme).partition("\n")[2]
    if page.file.src_uri != "decisions/index.md":
        return markdown
    lines = []
    for decision in sorted(path.parent.glob("[0-9]*.md")):
        heading = decision.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        number, _, title = heading.partition(" · ")
        lines.append(f"- [{number}]({decision.name}) {title}")
    return markdown.replace("<!-- list -->", "\n".join(lines))


def home(readme: str) -> str:
    """The README with links as seen from `docs`; files outside of it are only named."""
    named = re.sub(r"\[[^]]+\]\((?!docs/|http)([^)]+)\)", r"`\1`", readme)
    return named.replace("](docs/decisions/)", "](decisions/index.md)").replace("](docs/", "](")
