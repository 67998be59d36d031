"""MkDocs hook: each host of an integration has pages, which nothing else names.

Its page in the folder of the integration has links to files of the repository: relative ones, or, where a package index
shows the page, too, addresses on GitHub. Here they lead to pages of the site. A page of the reference has what its
Python module exports, and another one the record of the integration.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))  # the program mkdocs does not look there

from benches.hosts import CRATES, FOLDER, FOLDERS, HOSTS, Host, project

ROOT = FOLDER.parent
_LINK = re.compile(
    r"\]\((https://github\.com/dpnoise/dpnoise/blob/[^/]+/|(?!https?:|#|mailto:))([^)#\s]+)(#[^)\s]*)?\)"
)
_PAGES = {host.folder / host.page: f"integrations/{host.name}.md" for host in HOSTS + CRATES}
_RECORDS = {
    folder / "record.json": f"records/{folder.name}.md" for folder in FOLDERS if (folder / "record.json").exists()
}


def on_config(config: Any) -> None:
    """Add the pages to the navigation."""
    sections = dict(item for section in config.nav for item in section.items())
    sections["Integrations"] += [{host.title: f"integrations/{host.name}.md"} for host in HOSTS + CRATES]
    sections["Reference"].append(
        {"Integrations": [{host.imported: f"reference/integrations/{host.name}.md"} for host in HOSTS]}
    )
    (records,) = (item[name] for item in sections["Comparison"] if (name := "Records of the benchmarks") in item)
    records += [{project(path.parent)["project"]["name"]: page} for path, page in _RECORDS.items()]


def on_files(files: Any, *, config: Any) -> None:
    """Add the pages to the files of the site."""
    from mkdocs.structure.files import File

    for path, page in _PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(path)))
    for host in HOSTS:
        files.append(File.generated(config, f"reference/integrations/{host.name}.md", content=_reference(host)))
    for page in _RECORDS.values():
        files.append(File.generated(config, page, content="The record.\n"))


def _reference(host: Host) -> str:
    source = host.folder / "src" / host.imported.replace(".", "/")
    source = source / "__init__.py" if source.is_dir() else source.with_suffix(".py")
    exported = "".join(re.findall(r"(?ms)^__all__ = \[(.*?)\]", source.read_text(encoding="utf-8")))
    if not exported:
        raise ValueError(f"{source} has no __all__, from which its page of the reference is made")
    shown = "\n\n".join(f"::: {host.imported}.{name}" for name in re.findall(r'"(\w+)"', exported))
    return (
        f"# {host.imported}\n\n[This page](../../integrations/{host.name}.md) introduces it.\n\n::: {host.imported}\n"
        f"    options: {{members: false, show_root_heading: false}}\n\n{shown}\n"
    )


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Let the links of a page in a folder lead to pages of the site."""
    source = Path(page.file.abs_src_path or "")
    if source not in _PAGES:
        return markdown
    here = Path(_PAGES[source]).parent

    def link(found: re.Match[str]) -> str:
        target = Path(os.path.normpath((ROOT if found[1] else source.parent) / found[2]))
        if not target.exists():
            raise FileNotFoundError(f"{source.relative_to(ROOT)} links to {found[2]}, which is not there")
        if target.is_relative_to(ROOT / "docs"):
            page = str(target.relative_to(ROOT / "docs"))
        else:
            page = {**_PAGES, **_RECORDS}.get(target, "")
        place = os.path.relpath(page, here) if page else f"{config.repo_url}/blob/main/{target.relative_to(ROOT)}"
        return f"]({place}{found[3] or ''})"

    return _LINK.sub(link, markdown)
