"""The Python files of the project, and how the tidy tests look at them."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

Rule = Callable[[str], Iterator[str]]


def modules(*places: str) -> list[Path]:
    """Every Python file under these places, each a folder or a file that may not exist yet."""
    found: list[Path] = []
    for place in places:
        path = ROOT / place
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.is_file() else []
    return found


def findings(rule: Rule, paths: list[Path]) -> list[str]:
    """What a rule finds in these files, as `path:finding`."""
    return [f"{path.relative_to(ROOT)}:{finding}" for path in paths for finding in rule(path.read_text())]


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a name or attribute; the empty string for anything else at its root."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def imports(tree: ast.AST) -> Iterator[tuple[ast.stmt, str, str, str]]:
    """Every import: its statement, module, imported name (empty for `import m`) and local name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name, "", alias.asname or alias.name
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                yield node, module, alias.name, alias.asname or alias.name


def full_names(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Every name and attribute used, with local names spelled as what they were imported from."""
    local = {name: f"{module}.{member}" if member else module for _, module, member, name in imports(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, dot, rest = dotted(node).partition(".")
            yield node, local.get(first, first) + dot + rest
