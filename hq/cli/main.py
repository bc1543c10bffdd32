"""hq: the command. Each group of commands is a file of its own.

What a command needs is imported when it runs: `hq --help` reads none of it.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from hq.cli import (
    about,
    backup,
    bench,
    config,
    dead_letters,
    doctor,
    export,
    message,
    queue,
    schedule,
    top,
)
from hq.cli.exits import FAILURE, exit_code
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
    # Plain help: the colours of another library would take longer than everything else.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve)
app.command()(work)
app.add_typer(queue.app, name="queue")
app.add_typer(message.app, name="message")
app.add_typer(dead_letters.app, name="dlq")
app.add_typer(schedule.app, name="schedule")
about.add_to(app)
top.add_to(app)
export.add_to(app)
backup.add_to(app)
doctor.add_to(app)
app.add_typer(config.app, name="config")
app.command()(migrate)
app.add_typer(pipeline)
bench.add_to(app)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's shape
    if wanted:
        from hq import __version__

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
    """Run a command; an error is one sentence and an exit code, not a traceback."""
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except HQError as error:
        code = _failed(str(error), exit_code(error))
    except typer.TyperException as error:
        code = _failed(error.format_message(), getattr(error, "exit_code", FAILURE))
    except typer.Abort:
        code = FAILURE
    except BrokenPipeError:
        # Whoever read has enough. Nothing more can be said there, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILURE
    sys.exit(code)


def _failed(sentence: str, code: int) -> int:
    # A group of commands that is named alone tells its help instead.
    print(sentence if sentence.startswith("Usage:") else f"hq: {sentence}", file=sys.stderr)
    return code
