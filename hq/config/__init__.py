"""Configuration: a TOML file, then the environment, then flags; read once, into one frozen object."""

from hq.config.keys import Key, describe
from hq.config.load import load, sources
from hq.config.sections import Config, Log, Postgres, Server, Sqlite

__all__ = ["Config", "Key", "Log", "Postgres", "Server", "Sqlite", "describe", "load", "sources"]
