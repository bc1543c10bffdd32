"""Configuration: a TOML file, then the environment, then flags; read once, into one frozen object."""

from hq.config.keys import Key, describe
from hq.config.kinds import Listen
from hq.config.load import load, sources
from hq.config.sections import ClSqs, Config, Log, Postgres, Server, Sqlite

__all__ = [
    "ClSqs",
    "Config",
    "Key",
    "Listen",
    "Log",
    "Postgres",
    "Server",
    "Sqlite",
    "describe",
    "load",
    "sources",
]
