"""Writes the pages of docs/ that are drawn from the code. `--check` writes nothing and fails if one is stale.

A new page is a function that returns its text, and an entry in PAGES.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

from typer.main import get_command

from hq.cli.main import app
from hq.cli.target import AsJson, Database, Url
from hq.config import Key, describe
from hq.domain.messages import State
from hq.domain.transitions import TRANSITIONS

DOCS = Path(__file__).resolve().parent

STATES = """\
# States of a message

Written by `python docs/generate.py` from `hq/domain/transitions.py`. Do not edit.

```mermaid
stateDiagram-v2
{diagram}
```

## Which event may meet which state

A cell is the state that follows. An event that meets a state without a cell stops the queue.

{table}

## What the table does not show

- A message begins with `Enqueued`, in `waiting`. A producer's enqueue, a schedule's tick and a move taken
  from another queue all yield it.
- `waiting` is seen as `delayed` until its `available_at` and as `ready` from then on. The clock alone turns
  one into the other; there is no event for it.
- `Purged` takes whole ranges away: with scope `live` every message that is waiting or leased, with scope
  `failed` every dead letter.
- {settled} are final.
"""


def states() -> str:
    """The transition table as a diagram and as a table."""
    settled = [f"`{state.value}`" for state in _settled()]
    return STATES.format(
        diagram=_diagram(), table=_table(), settled=f"{', '.join(settled[:-1])} and {settled[-1]}"
    )


def _diagram() -> str:
    edges: defaultdict[tuple[State, State], list[str]] = defaultdict(list)
    for event, cells in TRANSITIONS.items():
        for before, after in cells.items():
            edges[before, after].append(event.__name__)
    lines = [
        "waiting : seen as delayed, then as ready",
        "[*] --> waiting : Enqueued",
        *(f"{old.value} --> {new.value} : {', '.join(events)}" for (old, new), events in edges.items()),
        *(f"{state.value} --> [*]" for state in _settled()),
    ]
    return "\n".join(f"    {line}" for line in lines)


def _table() -> str:
    columns = [state for state in State if state not in _settled()]
    rows = [["event", *(state.value for state in columns)], ["---"] * (len(columns) + 1)]
    for event, cells in TRANSITIONS.items():
        rows.append(
            [f"`{event.__name__}`", *(cells[state].value if state in cells else "" for state in columns)]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _settled() -> list[State]:
    """The states nothing leads out of."""
    left = {before for cells in TRANSITIONS.values() for before in cells}
    return [state for state in State if state not in left]


CONFIGURATION = """\
# Configuration

Written by `python docs/generate.py` from `hq/config`. Do not edit.

A value comes from the first of these that gives it:

1. a flag of `hq serve`, such as `--port 8080`;
2. an environment variable: `HQ_`, the section, two underscores and the key, as in `HQ_SERVER__PORT=8080`;
   for the database `HQ_DATABASE`;
3. {seeds}, as in ckampfe/hq and cl-sqs;
4. the TOML file named by `--config`;
5. the default.

An unknown key, an unknown variable with `HQ_` and two underscores, and a value that is not allowed are told,
and hq does not start. An empty variable counts as not set. In a variable, the items of a list have commas
between them.

A size is a number of bytes, or a text with a unit: B, KiB, MiB, GiB, TiB, kB, MB, GB, TB. A time is in
seconds (`_s`, and `request_timeout`) or in milliseconds (`_ms`). A path is relative to the working directory.

[configs/sqlite.toml](../configs/sqlite.toml) has every key, ready to be changed.
{sections}"""


def configuration() -> str:
    """Every key, section by section."""
    seeds = [f"`{key.seed_variable}`" for key in describe() if key.seed_variable]
    sections = groupby(describe(), lambda key: key.name.rpartition(".")[0])
    return CONFIGURATION.format(
        seeds=f"{', '.join(seeds[:-1])} and {seeds[-1]}",
        sections="".join(_section(name, list(keys)) for name, keys in sections),
    )


def _section(name: str, keys: list[Key]) -> str:
    rows = [["key", "what", "it must be", "default"], ["---"] * 4]
    rows += [
        [f"`{key.name.rpartition('.')[2]}`", key.sentence, key.allowed, f"`{key.shown_default}`"]
        for key in keys
    ]
    title = f"[{name}]" if name else "Above all sections"
    return f"\n## {title}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


COMMAND_LINE = """\
# The command line

Written by `python docs/generate.py` from `hq/cli`. Do not edit.

A command asks a running server, at `--url` or `HQ_URL` or else http://127.0.0.1:9999, with the key in
`HQ_API_KEY` if there is one. With `--database` it opens a path or a URL itself; a file that another process
shares is asked for there.

```sh
hq queue add emails --max-attempts 3
hq message enqueue emails --payload '{{"to": "ada@example.org"}}'
hq message poll emails --json | tee held | hq message ack emails --file -
hq stats
```

A name or an id is said by its place or by a flag: `hq queue rm emails` is `hq queue rm --name emails`.

Tables are for people. With `--json` a command prints JSON with stable keys: a value, or a line for each
message. Progress is shown on a terminal alone. `NO_COLOR` is honoured, and a pipe that is closed ends a
command quietly. What takes something away for good asks first if it is typed at a terminal, unless `--yes`
is given.

| exit code | means |
| --- | --- |
| 0 | done |
| 1 | it failed; standard error says why in a sentence |
| 2 | it was asked wrongly |
| 3 | there is no such queue, message or schedule |
| 4 | it contradicts what there is: another queue of this name, a lease that is lost, a file that is there |

An import or an export that was interrupted is run again: lines that were imported are known for a week, and
an export goes on after the last line of its file. A backup is one file, of SQLite or of Postgres, as of one
moment; `hq restore` makes a database of either kind of it, where there is none yet. The restored database
gives ids of its own, and those of before stay good for what was restored. `hq --install-completion` teaches
your shell to complete commands.
{commands}"""


# What every command has is said once, above all of them.
SHARED = {get_args(flag)[1].help for flag in (Url, Database, AsJson)}


def command_line() -> str:
    """Every command, group by group."""
    root: Any = get_command(app)
    groups: dict[str, list[str]] = {"": []}
    for name, command in root.commands.items():
        if hasattr(command, "commands"):
            groups[name] = [_command(f"hq {name} {one}", part) for one, part in command.commands.items()]
        else:
            groups[""].append(_command(f"hq {name}", command))
    return COMMAND_LINE.format(
        commands="".join(
            f"\n## {f'hq {name}' if name else 'hq'}\n{''.join(parts)}" for name, parts in groups.items()
        )
    )


def _command(name: str, command: Any) -> str:  # noqa: ANN401 - typer has no name for it
    rows = [
        [", ".join(f"`{word}`" for word in (*part.opts, *part.secondary_opts)), part.help or ""]
        for part in command.params
        if part.param_type_name == "option" and part.help not in SHARED
    ]
    arguments = [part for part in command.params if part.param_type_name == "argument"]
    places = " ".join(part.metavar or part.name.upper() for part in arguments)
    table = [["flag", "what"], ["---", "---"], *rows] if rows else []
    lines = "".join(f"| {' | '.join(row)} |\n" for row in table)
    about = " ".join(line.strip() for line in (command.help or "").splitlines() if line.strip())
    return f"\n### {name}{f' {places}' if places else ''}\n\n{about}\n" + (f"\n{lines}" if lines else "")


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": command_line,
    "configuration.md": configuration,
    "states.md": states,
}


def stale(docs: Path = DOCS) -> list[str]:
    """The pages whose file is missing or says something else."""
    return [name for name, page in PAGES.items() if _read(docs / name) != page()]


def write(docs: Path = DOCS) -> None:
    """Bring every page up to date."""
    for name in stale(docs):
        (docs / name).write_text(PAGES[name](), encoding="utf-8")


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Rebuild the generated pages of docs/.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is stale")
    if not parser.parse_args().check:
        write()
        return 0
    names = stale()
    if names:
        print(f"Stale: {', '.join(names)}. Run make docs.")
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
