"""What the READMEs say holds: commands, dependencies, links, and the figures of the front page."""

import re
import shlex
from itertools import groupby
from pathlib import Path

import pytest
from readme_renderer.markdown import render

from benches.libraries import LIBRARIES, library
from benches.page import RIVALS, front_parts, number
from benches.record import WHOLE, kept

ROOT = Path(__file__).parents[2]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def files(pattern):
    """Return the names of files of the sources, not of copies that were built."""
    names = [path.relative_to(ROOT) for path in sorted(ROOT.glob(pattern))]
    return [str(name) for name in names if not {"dist", "target", ".venv", ".pytest_cache"} & {*name.parts}]


TOPS = ("clients", "integrations", "python", "rust")
READMES = ["README.md", "README.zh.md", *(name for top in TOPS for name in files(f"{top}/**/README.md"))]


# --- commands --------------------------------------------------------------------------------------------------------


def commands(page):
    """Yield the words of each command: in blocks for a shell, in code within a line, and in comments of other code."""
    blocks = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
    lines = []
    for language, code in blocks.findall(page):
        if language == "sh":
            lines += code.splitlines()
        elif language != "python":
            lines += re.findall(r"\bdpnoise [a-z][^`\n]*", code)
    spans = [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", blocks.sub("", page))]
    for line in lines + [code for code in spans if code.partition(" ")[0] in CHECKS and " " in code]:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        for between, words in groupby(lexer, lambda word: set(word) <= set("();<>|&$")):
            if not between:
                yield list(words)


def is_made(words):
    if words[0] == "-C":
        _, folder, *words = words
        makefiles = text(f"{folder}/Makefile") + text(f"{folder}/../client.mk")
    else:
        makefiles = text("Makefile")
    everywhere = "".join(map(text, ["Makefile", *files("clients/*/Makefile")]))
    variables = [word.partition("=")[0] for word in words if "=" in word]
    targets = [word for word in words if "=" not in word]
    return all(f"$({name})" in everywhere for name in variables) and all(
        re.search(rf"^{re.escape(target)}:", makefiles, re.MULTILINE) for target in targets
    )


def is_parsed(words):
    """Say whether the parser of the program takes the words. A command without any is only named."""
    typer = pytest.importorskip("typer", reason="the extra `cli` is not installed")
    from dpnoise.cli.app import app_for

    command = typer.main.get_command(app_for(words)).commands.get(words[0])
    try:
        return command is not None and (not words[1:] or bool(command.make_context(words[0], words[1:])))
    except Exception as error:
        if not hasattr(error, "format_message"):  # as the errors of the parser have
            raise
        return False


def is_installed(words):
    """Say whether the packages are there: that of the root with some of its extras, and those of integrations."""
    form = r"(?:\.|dpnoise)(?:\[([\w,-]+)\]|(?:/integrations/|-)(\w+))?(?:==[\w.]+)?"  # of a checkout, and of an index
    what = [re.fullmatch(form, word) for word in words[1:]]
    return words[0] == "install" and all(
        found
        and all(f"\n{extra} = [" in text("pyproject.toml") for extra in (found[1] or "").split(",") if extra)
        and (not found[2] or (ROOT / "integrations" / found[2] / "pyproject.toml").exists())
        for found in what
    )


def is_built(words):
    *command, package = words
    packages = [text(manifest) for manifest in files("*/*/Cargo.toml")]
    return command in (["build", "--release", "--package"], ["bench", "--package"]) and any(
        f'name = "{package}"' in one for one in packages
    )


CHECKS = {
    "make": is_made,
    "dpnoise": is_parsed,
    "pip": is_installed,
    "cargo": is_built,
    "go": lambda words: words[0] == "get" and text("clients/go/go.mod").startswith(f"module {words[1]}\n"),
    "npm": lambda words: (
        words == ["install", "./clients/web/dist"] and f"dist={words[1][2:]}\n" in text("clients/web/build.sh")
    ),
    "uvx": lambda words: (
        words[0] == "--from" and is_installed(["install", words[1]]) and words[2] == "dpnoise" and is_parsed(words[3:])
    ),
    # clients/c/tests/test_c.py runs these.
    **dict.fromkeys(("cc", "c++", "pkg-config", "sed"), lambda _: True),
}


def wrong_commands(page):
    return [words for words in commands(page) if words[0] not in CHECKS or not CHECKS[words[0]](words[1:])]


@pytest.mark.parametrize("name", READMES)
def test_every_command_exists(name):
    assert wrong_commands(text(name)) == []


@pytest.mark.parametrize(
    "page",
    [
        "```js\nmessage(7); // for dpnoise aggregate --messages\n```\n",
        "```sh\ndpnoise ledger a.db  # right\ndpnoise ledger a.db --wrong\n```\n",
        "`dpnoise estimate\n--wrong a`",
        "```sh\nmake demo test-pascal\n```\n",
        "`make -C clients/go wrong`",
        "`make ffi WRONG=1`",
        "```sh\nrm -r everything\n```\n",
        "`pip install '.[cli,wrong]'`",
        "`pip install . ./integrations/wrong`",
        "`pip install dpnoise-wrong`",
        "`cargo build --release --package dpnoise-wrong`",
        "`go get github.com/dpnoise/wrong`",
        "`uvx --from '.[wrong]' dpnoise demo`",
        "`uvx --from '.[cli]' dpnoise wrong`",
    ],
)
def test_a_wrong_command_is_noticed(page):
    assert len(wrong_commands(page)) == 1


def test_the_commands_are_found():
    assert {words[0] for name in READMES for words in commands(text(name))} == CHECKS.keys()


# --- dependencies and links ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manifest", ["rust/core/Cargo.toml", *files("integrations/*/Cargo.toml")])
def test_a_crate_begins_with_its_dependency(manifest):
    _, _, code = text(Path(manifest).with_name("README.md")).partition("\n```")
    [crate] = re.findall(r'(?m)^name = "(dpnoise-.*)"', text(manifest))
    assert code.startswith(f"toml\n[dependencies]\n{crate} = ")


OURS = r"https://(?:github\.com/dpnoise/dpnoise/(?:blob|tree|raw)|raw\.githubusercontent\.com/dpnoise/dpnoise)/[^/]+/"
"""How a link to a file begins on a page that an index shows."""
SITE = "https://dpnoise.github.io/dpnoise/"


def dead_links(page, folder):
    """Return the links of a page to files of ours that do not exist, relative or absolute."""
    linked = ["".join(found) for found in re.findall(r"\]\(([^)#]+)[^)]*\)|src(?:set)?=\"(.*?)\"", page)]
    linked += [f"/{path}" for path in re.findall(r"`((?:docs|proofs|scripts|tools)/[\w/.]+)`", page)]
    dead = []
    for target in linked:
        if target.startswith(SITE):
            place = target.removeprefix(SITE).strip("/")
            found = any(
                (ROOT / f"{path}.md").exists() for path in (f"docs/{place}", f"docs/{place}/index", f"{place}/README")
            )
        else:
            path = re.sub(OURS, "/", target)
            found = path.startswith("https://") or (ROOT / (path[1:] if path[0] == "/" else folder / path)).exists()
        dead += [] if found else [target]
    return dead


@pytest.mark.parametrize("name", [*READMES, "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_linked_files_exist(name):
    assert dead_links(text(name), Path(name).parent) == []


@pytest.mark.parametrize(
    "link",
    [
        "[a](b.md#c)",
        "`docs/b.md`",
        "[a](https://github.com/dpnoise/dpnoise/blob/main/b.md#c)",
        '<img src="https://raw.githubusercontent.com/dpnoise/dpnoise/v1.0.0-rc.1/docs/b.svg">',
        f"[a]({SITE}guide/b/)",
    ],
)
def test_a_dead_link_is_noticed(link):
    assert len(dead_links(f"[r](../README.md), [s]({SITE}), [t]({SITE}guide/tables/#d), {link}", Path("docs"))) == 1


# --- the front page --------------------------------------------------------------------------------------------------

PAGE = text("README.md")
RECORD = kept()[WHOLE]
ENTRANTS = {"**dpnoise**": RECORD.ours, "python-dp (Google)": "python-dp", **RIVALS}
"""The entrants of the record by the first cells of the rows."""


def said(page):
    """Return the cells for exact, secure and ns per sample by row, the ratios by library, our ns, and the record."""
    rows = re.findall(r"^\| (.+?) \| (yes|no)\b.*? \| (yes|no) \| .* \| ([\d.]+) \|$", page, re.MULTILINE)
    ratios = re.findall(r"([\d.]+) times\s+as\s+fast\s+as\s+(\w+)", page)
    [(date, cpu, instruction_set)] = re.findall(r"the record of ([\d-]+)\].*\n\((.*), (.*)\)", page)
    return (
        {name: cells for name, *cells in rows},
        {name: ratio for ratio, name in ratios},
        re.findall(r"noise takes ([\d.]+) ns", page),
        [date, cpu, instruction_set.replace("-", "").lower()],
    )


def known():
    """Return the same from the record and the list of libraries."""
    table = RECORD.tables["Discrete Laplace"]
    libraries = {name: LIBRARIES[library(entrant)] for name, entrant in ENTRANTS.items()}
    ns = {name: number(table.amounts[entrant]["10"]) for name, entrant in ENTRANTS.items()}
    return (
        {name: [library.exact, library.secure, ns[name]] for name, library in libraries.items()},
        {name: figure for name, figure in front_parts(RECORD).items() if name in RIVALS},
        [ns["**dpnoise**"]],
        [RECORD.date, RECORD.cpu, RECORD.instruction_set],
    )


def test_the_figures_are_those_of_the_record():
    assert said(PAGE) == known()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("**4928 times", "**4982 times"),
        ("takes 1.17 ns", "takes 1.71 ns"),
        ("| 5766 |", "| 5676 |"),
        ("| no, but", "| yes, but"),
        ("record of 2026", "record of 2025"),
    ],
)
def test_a_wrong_figure_is_noticed(right, wrong):
    assert PAGE.count(right) == 1
    assert said(PAGE.replace(right, wrong)) != known()


# --- as a package index shows them ------------------------------------------------------------------------------------


PUBLISHED = ["README.zh.md"] + [
    str(Path(name).with_name("README.md"))
    for name in ["pyproject.toml", *files("*/*/pyproject.toml"), *files("*/*/Cargo.toml")]
    if '\nreadme = "README.md"\n' in text(name)
]
"""The pages of packages on their indexes, and the Chinese page, for which the same rule holds."""


def lost(page):
    """List the links that lead nowhere on an index, and the marks that it shows as text."""
    shown = re.sub(r"<pre\b.*?</pre>|<code\b.*?</code>", "", render(page), flags=re.DOTALL)
    links = [link for link in re.findall(r'(?:href|src)="(.*?)"', shown) if not link.startswith(("https://", "#"))]
    return links + re.findall(r"&lt;[!/\w]\S*|```\S*", shown)


@pytest.mark.parametrize("name", PUBLISHED)
def test_nothing_is_lost_on_an_index(name):
    page = text(name)
    assert lost(page) == []
    assert render(page).count("<img ") == page.count("<img ")


def test_what_is_lost_on_an_index_is_noticed():
    assert {"README.md", "integrations/opacus/README.md", "rust/core/README.md"} < {*PUBLISHED}
    assert lost(f"{PAGE}\n[here](docs/start.md)\n") == ["docs/start.md"]
    assert lost(f'{PAGE}\n<img src="docs/demo.svg">\n') == ["docs/demo.svg"]
    assert lost(f"{PAGE}\n<script>\n") == ["&lt;script&gt;"]
