"""hq pipeline: what to run on a lake. What it does is in jobs.py, which loads Spark only when it is run."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from hq.errors import ConfigInvalid

app = typer.Typer(
    name="pipeline",
    help="Archive the journal into a lake, report on it, replay from it, load files into queues.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Directory = Annotated[Path, typer.Option("--lake", envvar="HQ_LAKE", help="The directory of the lake.")]
Url = Annotated[str, typer.Option("--url", envvar="HQ_URL", help="The server, or a database to read from.")]
TokenFile = Annotated[str | None, typer.Option("--token-file", help="A file that holds the token.")]
Master = Annotated[str, typer.Option("--master", envvar="HQ_SPARK_MASTER", help="Where Spark runs.")]
Memory = Annotated[str, typer.Option("--memory", help="What the Spark driver may take, as in 2g.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Queue = Annotated[str | None, typer.Option("--queue", help="Only this queue.")]
Rate = Annotated[int | None, typer.Option("--rate", min=1, help="Messages a second at most.")]
DedupMs = Annotated[
    int | None, typer.Option("--dedup-ms", help="How long keys are remembered; default a week.")
]

LAKE = Path("lake")
URL = "http://127.0.0.1:9999"
MASTER = "local[*]"
MEMORY = "2g"


def _jobs() -> Any:
    try:
        return import_module("hq.cli.jobs")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("hq."):
            raise
        raise ConfigInvalid(f"{error.name} is not installed: pip install 'hq-queue[spark,server]'") from error


@app.command()
def archive(
    *, lake: Directory = LAKE, url: Url = URL, token_file: TokenFile = None, master: Master = MASTER,
    memory: Memory = MEMORY, as_json: Json = False,
    max_rows: Annotated[int, typer.Option(min=1, help="Events in one segment, at most.")] = 1_000_000,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until stopped.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between rounds of --follow.")] = 60.0,
    accept_loss: Annotated[bool, typer.Option("--accept-loss", help="Go on where events are gone.")] = False,
) -> None:  # fmt: skip
    """Bring the journal into the lake, and let the server prune what is in it."""
    with _jobs().Job(master, memory, as_json=as_json) as job:
        place = job.place(url, token_file)
        job.archive(lake, place, max_rows, accept_loss=accept_loss, every=every if follow else None)


@app.command()
def build(
    *, lake: Directory = LAKE, master: Master = MASTER, memory: Memory = MEMORY, as_json: Json = False
) -> None:
    """Make messages, attempts and five-minute statistics of the events that are new."""
    with _jobs().Job(master, memory, as_json=as_json) as job:
        job.build(lake)


@app.command()
def compact(
    *, lake: Directory = LAKE, master: Master = MASTER, memory: Memory = MEMORY, as_json: Json = False
) -> None:
    """Write days that are over anew, in few files."""
    with _jobs().Job(master, memory, as_json=as_json) as job:
        job.compact(lake)


@app.command()
def verify(
    *, lake: Directory = LAKE, master: Master = MASTER, memory: Memory = MEMORY, as_json: Json = False
) -> None:
    """Check every file and every sequence; exit with 1 if anything is wrong."""
    with _jobs().Job(master, memory, as_json=as_json) as job:
        job.verify(lake)


@app.command()
def expire(
    *, lake: Directory = LAKE, as_json: Json = False,
    keep: Annotated[str, typer.Option(help="How many days stay, as in 400d.")] = "400d",
) -> None:  # fmt: skip
    """Take days out of the lake that are older than so many."""
    _jobs().expire(lake, keep, as_json=as_json)


@app.command()
def report(
    *, lake: Directory = LAKE, master: Master = MASTER, memory: Memory = MEMORY, as_json: Json = False,
    queue: Queue = None,
    since: Annotated[str | None, typer.Option(help="A span such as 7d, or an instant; default 7d.")] = None,
    until: Annotated[str | None, typer.Option(help="An instant; default the end of the lake.")] = None,
    slo: Annotated[str, typer.Option(help="How long a message may wait.")] = "10s",
    target: Annotated[float, typer.Option(help="The share of messages that wait no longer.")] = 0.99,
    out: Annotated[Path, typer.Option(help="Where the page and the tables go.")] = Path("report"),
) -> None:  # fmt: skip
    """Build what is new, and report on queues: a table, an HTML page, JSON and Parquet."""
    with _jobs().Job(master, memory, as_json=as_json) as job:
        job.report(lake, out, job.span(since, until, slo, target), queue)


@app.command()
def dead(
    *, lake: Directory = LAKE, master: Master = MASTER, memory: Memory = MEMORY, as_json: Json = False,
    queue: Queue = None, limit: Annotated[int, typer.Option(min=1)] = 20,
) -> None:  # fmt: skip
    """Show dead letters by what went wrong, the most frequent first."""
    with _jobs().Job(master, memory, as_json=as_json) as job:
        job.dead(lake, queue, limit)


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(help="SQL over events, messages, attempts, stats_5m and dead.")],
    *, lake: Directory = LAKE, master: Master = MASTER, memory: Memory = MEMORY, as_json: Json = False,
    limit: Annotated[int, typer.Option(min=1, help="Rows shown at most.")] = 1_000,
) -> None:  # fmt: skip
    """Ask the lake."""
    with _jobs().Job(master, memory, as_json=as_json) as job:
        job.sql(lake, statement, limit)


@app.command()
def replay(
    *, where: Annotated[str, typer.Option(help="Which messages, as SQL over the table of messages.")],
    to: Annotated[str | None, typer.Option(help="Another queue than they came from.")] = None,
    name: Annotated[str | None, typer.Option(help="Run under another name, it is another replay.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    rate: Rate = None, dedup_ms: DedupMs = None,
    lake: Directory = LAKE, url: Url = URL, token_file: TokenFile = None, master: Master = MASTER,
    memory: Memory = MEMORY, as_json: Json = False,
) -> None:  # fmt: skip
    """Put messages of the lake into queues again, each once under the name of the replay."""
    with _jobs().Job(master, memory, as_json=as_json) as job:
        wanted = job.wanted(where, to, name, rate, dedup_ms)
        job.replay(lake, job.place(url, token_file), wanted, dry_run=dry_run)


@app.command()
def load(
    files: Annotated[list[str], typer.Argument(help="NDJSON, CSV or Parquet.")],
    *, queue: Annotated[str, typer.Option("--queue", help="Where to.")],
    key: Annotated[str | None, typer.Option(help="The field or column that is a row's key.")] = None,
    payload: Annotated[str | None, typer.Option(help="The column that is the payload; default all.")] = None,
    kind: Annotated[str | None, typer.Option("--format", help="ndjson, csv or parquet.")] = None,
    dedup_ms: DedupMs = None, url: Url = URL, token_file: TokenFile = None, master: Master = MASTER,
    memory: Memory = MEMORY, as_json: Json = False,
) -> None:  # fmt: skip
    """Load files into a queue, a message for every line or row; run again, it adds what is missing."""
    with _jobs().Job(master, memory, as_json=as_json) as job:
        job.load(job.place(url, token_file), files, job.loading(queue, key, payload, kind, dedup_ms))
