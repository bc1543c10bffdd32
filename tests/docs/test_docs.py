"""The documents are true: generated pages are fresh, examples run, links and names lead somewhere."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hq.domain.transitions import TRANSITIONS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DECISIONS = DOCS / "decisions"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
LINK_OR_NAME = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|`([^`]+)`")
ELSEWHERE = ("http:", "https:", "mailto:")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def dead_links(page: Path, text: str) -> list[str]:
    """The links of a page that lead to no file."""
    links = [link for link in LINK.findall(FENCE.sub("", text)) if not link.startswith((*ELSEWHERE, "#"))]
    return [link for link in links if not (page.parent / link.partition("#")[0]).exists()]


def python_blocks(text: str) -> list[str]:
    return [block for language, block in FENCE.findall(text) if language == "python"]


def definitions(source: str) -> set[str]:
    """What a module defines at its top, and `Class.member` of its classes."""
    found = set()
    for node in ast.parse(source).body:
        names = defined_by(node)
        found |= names
        if isinstance(node, ast.ClassDef):
            members = [defined_by(member) for member in node.body]
            found |= {f"{node.name}.{member}" for names in members for member in names}
    return found


def defined_by(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return {name}
        case ast.AnnAssign(ast.Name(name)):
            return {name}
        case ast.Assign(targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
    return set()


def rule_table(text: str) -> list[tuple[str, str]]:
    """The rows of the table under `Where each rule lives`: a rule, and where."""
    _, _, section = text.partition("\n## Where each rule lives\n")
    rows = [
        line.strip("| ").split(" | ")
        for line in section.partition("\n## ")[0].splitlines()
        if line[:1] == "|"
    ]
    return [(rule, where) for rule, where in rows[2:]]


def wrong_places(where: str) -> list[str]:
    """The files and names of a rule's row that do not exist; a name is looked for in the file before it."""
    wrong, known, file = [], None, ""
    for link, name in LINK_OR_NAME.findall(where):
        if link:
            file = link
            known = definitions((ROOT / file).read_text()) if (ROOT / file).is_file() else None
            if known is None:
                wrong.append(file)
        elif known is not None and name not in known:
            wrong.append(f"{file}: {name}")
    return wrong


ARCHITECTURE = rule_table((ROOT / "ARCHITECTURE.md").read_text())


@pytest.fixture
def generate():
    """docs/generate.py as a module."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_not_stale():
    check = subprocess.run(
        [sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")


def test_a_page_that_is_missing_or_different_is_stale_until_it_is_written(generate, tmp_path):
    assert generate.stale(tmp_path) == list(generate.PAGES)

    generate.write(tmp_path)
    assert generate.stale(tmp_path) == []

    (tmp_path / "states.md").write_text("# Something else\n")
    assert generate.stale(tmp_path) == ["states.md"]


def test_a_stale_page_is_told_in_one_line(generate, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check"])
    monkeypatch.setattr(generate, "stale", lambda: ["states.md"])

    assert generate.main() == 1
    assert capsys.readouterr().out.splitlines() == ["Stale: states.md. Run make docs."]


@pytest.mark.parametrize("event", TRANSITIONS, ids=lambda event: event.__name__)
def test_every_event_of_the_transition_table_is_drawn_and_listed(event):
    page = (DOCS / "states.md").read_text()
    [(_, diagram)] = FENCE.findall(page)
    for before, after in TRANSITIONS[event].items():
        edge = rf"^ +{before.value} --> {after.value} : .*\b{event.__name__}\b"
        assert re.search(edge, diagram, re.MULTILINE)
    assert f"| `{event.__name__}` |" in FENCE.sub("", page)


def test_the_readme_has_an_example():
    assert python_blocks((ROOT / "README.md").read_text())


@pytest.mark.parametrize("block", python_blocks((ROOT / "README.md").read_text()))
def test_an_example_of_the_readme_runs(block):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-"],
        input=block,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_to_a_file(page):
    assert dead_links(page, page.read_text()) == []


def test_a_dead_link_is_noticed_and_a_link_elsewhere_is_not():
    text = "[a](README.md) [b](missing.md) [c](https://example.org) [d](#here)\n```\n[e](in/code.md)\n```\n"
    assert dead_links(ROOT / "README.md", text) == ["missing.md"]


@pytest.mark.parametrize(("rule", "where"), ARCHITECTURE, ids=[rule for rule, _ in ARCHITECTURE])
def test_a_rule_lives_where_the_architecture_says(rule, where):
    assert LINK.findall(where)
    assert wrong_places(where) == []


def test_a_rule_that_moved_is_noticed():
    where = "[names.py](hq/domain/names.py) `queue_name`, `gone`; [no.py](hq/no.py) `any`"
    assert wrong_places(where) == ["hq/domain/names.py: gone", "hq/no.py"]


def test_the_architecture_has_every_rule():
    rules = {rule for rule, _ in ARCHITECTURE}
    assert rules >= {
        "a message has", "order", "attempts", "lease", "token", "retry delay", "failed", "deduplication",
        "groups", "concurrency, capacity", "rate", "TTL", "pause", "delete, purge", "tasks", "names",
        "unknown queue", "payload", "ids", "schedules", "time",
    }  # fmt: skip


def test_every_decision_is_in_the_index():
    pages = {page.name for page in DECISIONS.glob("*.md")} - {"README.md"}
    assert set(LINK.findall((DECISIONS / "README.md").read_text())) == pages


def test_the_index_of_decisions_has_their_titles():
    index = (DECISIONS / "README.md").read_text()
    for page in DECISIONS.glob("0*.md"):
        number, _, title = page.read_text().splitlines()[0].removeprefix("# ").partition(" ")
        assert f"| [{number}]({page.name}) | {title} |" in index
