"""The domain computes: it may import little, and calls no clock, no chance and no I/O."""

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.source import dotted, findings, full_names, imports, modules

PURE_MODULES = {
    "__future__",
    "abc",
    "collections",
    "collections.abc",
    "dataclasses",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "hmac",
    "itertools",
    "math",
    "operator",
    "re",
    "types",
    "typing",
    "uuid",
}
OWN_PACKAGES = ("hq.domain", "hq.errors")

# Reached through an allowed module, yet a clock, chance or I/O; a mere mention is too much.
IMPURE_MEMBERS = {
    "hashlib.file_digest",
    "uuid.getnode",
    "uuid.uuid1",
    "uuid.uuid4",
    "uuid.uuid6",
    "uuid.uuid7",
}
IMPURE_BUILTINS = {"__import__", "breakpoint", "compile", "eval", "exec", "input", "open", "print"}

# Calling one of these on anything asks a clock or a dice that was passed in as an object: pass its answer.
CLOCKS_AND_DICE = {
    "choice",
    "monotonic",
    "monotonic_ns",
    "now",
    "perf_counter",
    "perf_counter_ns",
    "randbelow",
    "randbytes",
    "randint",
    "random",
    "randrange",
    "sleep",
    "time",
    "time_ns",
    "today",
    "token_bytes",
    "token_hex",
    "uniform",
    "urandom",
    "utcnow",
}


def impurities(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    for statement, module, member, _ in imports(tree):
        if not allowed(module, member):
            yield f"{statement.lineno}: imports {module}{member and '.'}{member}"
    for node, name in full_names(tree):
        if name in IMPURE_MEMBERS or name in IMPURE_BUILTINS:
            yield f"{node.lineno}: {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in CLOCKS_AND_DICE:
                yield f"{node.lineno}: calls {dotted(node.func)}"
        elif isinstance(node, ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith | ast.Await):
            yield f"{node.lineno}: {type(node).__name__}"


def allowed(module: str, member: str) -> bool:
    if module in PURE_MODULES:
        return f"{module}.{member}" not in IMPURE_MEMBERS
    full = f"{module}.{member}" if module == "hq" else module
    return any(full == own or full.startswith(f"{own}.") for own in OWN_PACKAGES)


@pytest.mark.parametrize(
    "sample",
    [
        "import time",
        "import random",
        "import os.path",
        "import importlib",
        "from datetime import datetime",
        "from logging import getLogger",
        "import collections.abcdef",
        "import msgspec",
        "from sqlalchemy import select",
        "import hq.domainlike",
        "from hq.backends import port",
        "from hq import system",
        "import hq",
        "from . import state",
        "def f():\n    import time",
        "from uuid import uuid4",
        "import uuid\nfield(default_factory=uuid.uuid4)",
        "import uuid as u\nu.uuid1()",
        "open('x')",
        "print(1)",
        "show = print",
        "eval('1')",
        "self.clock.now()",
        "clocks[0].monotonic()",
        "chance.random()",
        "async def f(): ...",
        "async def f():\n    await g()",
    ],
)
def test_an_impurity_is_noticed(sample):
    assert list(impurities(sample))


@pytest.mark.parametrize(
    "sample",
    [
        "from __future__ import annotations",
        "from collections.abc import Mapping",
        "import hashlib\nhashlib.sha256(b'').digest()",
        "from uuid import UUID\nUUID(int=1)",
        "import uuid\nuuid.uuid5(space, name)",
        "from hq.domain.state import QueueState",
        "from hq import errors",
        "from hq.errors import LeaseExpired",
        "lease.expires_at <= now",
        "decide(state, command, command.now, chance)",
        "window.open()",
    ],
)
def test_a_computation_is_let_be(sample):
    assert not list(impurities(sample))


def test_the_domain_is_pure():
    assert findings(impurities, modules("hq/domain")) == []
