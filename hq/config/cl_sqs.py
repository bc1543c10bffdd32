"""The database of a cl-sqs server, by the variables that tell it; heeded where hq takes its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from hq.config.kinds import Database
from hq.config.sections import Config
from hq.errors import ConfigInvalid

DEFAULTS = {
    "DB_HOST": "localhost",
    "DB_PORT": "5432",
    "DB_USER": "postgres",
    "DB_PASSWORD": "postgres",
    "DB_NAME": "postgres",
}


def in_place_of_cl_sqs(config: Config, environment: Mapping[str, str]) -> Config:
    """With that database, if cl-sqs has a port of its own here and any of its variables is set."""
    given = {name: environment[name] for name in DEFAULTS if environment.get(name)}
    if not given or all(place.dialect != "cl-sqs" for place in config.listen):
        return config
    host, port, user, password, name = (quote(value, safe="") for value in (DEFAULTS | given).values())
    if not port.isdigit():
        raise ConfigInvalid("environment variable 'DB_PORT' must be a number")
    url = f"postgresql://{user}:{password}@{host}:{port}/{name}"
    return replace(config, database=Database().parse(url))
