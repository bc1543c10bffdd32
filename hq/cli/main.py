"""hq: the command. Each group of commands is a file of its own."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hq import __version__
from hq.cli.migrate import migrate
from hq.cli.pipeline import app as pipeline
from hq.cli.serve import serve
from hq.cli.work import work
from hq.errors import HQError

app = typer.Typer(
    name="hq",
    help="A message and job queue.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve)
app.command()(work)
app.command()(migrate)
app.add_typer(pipeline)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's shape
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A message and job queue."""


def main() -> None:
    """Run a command; an error of hq is one line, not a traceback."""
    try:
        app()
    except HQError as error:
        print(f"hq: {error}", file=sys.stderr)
        sys.exit(1)
