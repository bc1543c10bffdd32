"""Asking before something is taken away for good."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do it without asking.")]


def consent(yes: bool, deed: str) -> None:  # noqa: FBT001 - typer's shape
    """Ask whoever sits at a terminal; a script that says so means it."""
    if not yes and sys.stdin.isatty() and not typer.confirm(f"Really {deed}?", err=True):
        raise typer.Exit(1)
