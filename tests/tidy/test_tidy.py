"""Sizes, names and leftovers. Each rule is shown to bite on a sample before it is put to the project."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidy.source import ROOT, findings, full_names, modules

MODULE_LINES = 450
FUNCTION_LINES = 70
NAMES_THAT_SAY_NOTHING = re.compile(r"(^|_)(manager|helper|util|common|misc)s?(_|$)")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
SLEEPS = {"time.sleep", "asyncio.sleep", "anyio.sleep", "trio.sleep"}


def oversized_modules(source: str) -> Iterator[str]:
    lines = len(source.splitlines())
    if lines > MODULE_LINES:
        yield f"1: {lines} lines, more than {MODULE_LINES}"


def oversized_functions(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{node.lineno}: {node.name} has {lines} lines, more than {FUNCTION_LINES}"


def missing_docstrings(source: str) -> Iterator[str]:
    if not ast.get_docstring(ast.parse(source)):
        yield "1: no module docstring"


def unfinished_work(source: str) -> Iterator[str]:
    for number, line in enumerate(source.splitlines(), start=1):
        if found := UNFINISHED.search(line):
            yield f"{number}: {found[0]}"


def prints(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id == "print":
            yield f"{node.lineno}: print"


def sleeps(source: str) -> Iterator[str]:
    for node, name in full_names(ast.parse(source)):
        if name in SLEEPS:
            yield f"{node.lineno}: {name}"


def says_nothing(module: str) -> bool:
    """Whether a dotted module name has a part that could hold anything."""
    return any(NAMES_THAT_SAY_NOTHING.search(part) for part in module.lower().split("."))


@pytest.mark.parametrize(
    ("rule", "sample"),
    [
        (oversized_modules, "x = 1\n" * (MODULE_LINES + 1)),
        (oversized_functions, "def f():\n" + "    x = 1\n" * FUNCTION_LINES),
        (oversized_functions, "class C:\n    async def f(self):\n" + "        x = 1\n" * FUNCTION_LINES),
        (missing_docstrings, ""),
        (missing_docstrings, "x = 1\n"),
        (unfinished_work, "x = 1  # TODO: later\n"),
        (unfinished_work, "raise NotImplementedError\n"),
        (prints, "print(1)\n"),
        (prints, "show = print\n"),
        (sleeps, "import time\ntime.sleep(1)\n"),
        (sleeps, "from asyncio import sleep as pause\nawait pause(0)\n"),
        (sleeps, "import anyio as a\nawait a.sleep(1)\n"),
    ],
)
def test_a_rule_bites(rule, sample):
    assert list(rule(sample))


@pytest.mark.parametrize(
    ("rule", "sample"),
    [
        (oversized_modules, "x = 1\n" * MODULE_LINES),
        (oversized_functions, "def f():\n" + "    x = 1\n" * (FUNCTION_LINES - 1)),
        (missing_docstrings, '"""Its job."""\n'),
        (unfinished_work, "TODOS = 1\n"),
        (prints, "fingerprint(1)\nself.print()\n"),
        (sleeps, "clock.sleep(1)\n"),
    ],
)
def test_a_rule_lets_tidy_code_be(rule, sample):
    assert not list(rule(sample))


def test_a_module_holds_one_idea():
    assert findings(oversized_modules, modules("hq")) == []


def test_a_function_fits_on_a_screen():
    assert findings(oversized_functions, modules("hq")) == []


def test_a_module_says_what_its_job_is():
    assert findings(missing_docstrings, modules("hq")) == []


def test_nothing_is_left_for_later():
    assert findings(unfinished_work, modules("hq")) == []


def test_only_the_command_line_prints():
    command_line = modules("hq/cli", "hq/cli.py")
    assert findings(prints, [path for path in modules("hq") if path not in command_line]) == []


def test_no_test_waits_for_a_clock():
    assert findings(sleeps, modules("tests")) == []


@pytest.mark.parametrize("name", ["hq.utils", "hq.queue_manager", "hq.common.names", "tests.helpers"])
def test_a_name_that_could_hold_anything_is_noticed(name):
    assert says_nothing(name)


@pytest.mark.parametrize("name", ["hq.domain.state", "hq.actors.supervisor", "hq.domain.uncommonly"])
def test_a_name_with_a_meaning_is_let_be(name):
    assert not says_nothing(name)


def test_a_module_is_named_for_its_job():
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules("hq", "tests")]
    assert [name for name in names if says_nothing(name)] == []


def test_the_tidy_tests_see_the_project():
    assert ROOT / "hq" / "__init__.py" in modules("hq")
    assert modules("tests")
