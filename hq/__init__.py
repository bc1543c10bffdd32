"""hq: a message and job queue with one set of semantics, embedded or served.

What is public is listed in hq/api.py. It is imported when the first of its names is wanted, so that the
command line, which is itself in this package, answers `--help` without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hq.api import *  # noqa: F403 - its __all__ is the list

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    try:
        value: object = getattr(import_module("hq.api"), name)
    except AttributeError:
        raise AttributeError(f"module 'hq' has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *import_module("hq.api").__all__]
