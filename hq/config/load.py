"""From a file, the environment and flags to a Config. A later source outranks an earlier one."""

from __future__ import annotations

import difflib
import os
import reprlib
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from hq.config.cl_sqs import in_place_of_cl_sqs
from hq.config.keys import Key, describe, parts
from hq.config.kinds import Database, Secret
from hq.config.sections import Config
from hq.errors import ConfigInvalid

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_SECTIONS = parts(Config())


class Given(NamedTuple):
    """A value that was given for a key, and where."""

    key: Key
    place: str
    value: object


def load(
    file: str | os.PathLike[str] | None = None,
    *,
    environment: Mapping[str, str] = _NOTHING,
    flags: Mapping[str, object] = _NOTHING,
) -> Config:
    """Read everything once. A flag is spelled `--port`; None says that it was not given."""
    chosen = _chosen(file, environment, flags)
    config = _config({name: _parsed(each) for name, each in chosen.items()})
    return config if "database" in chosen else in_place_of_cl_sqs(config, environment)


def sources(
    file: str | os.PathLike[str] | None = None,
    *,
    environment: Mapping[str, str] = _NOTHING,
    flags: Mapping[str, object] = _NOTHING,
) -> list[tuple[Key, object, str | None]]:
    """Every key with its value and where that was given; None says that it is the default."""
    chosen = _chosen(file, environment, flags)
    return [
        (key, _parsed(chosen[key.name]), chosen[key.name].place)
        if key.name in chosen
        else (key, key.default, None)
        for key in describe()
    ]


def _chosen(
    file: str | os.PathLike[str] | None, environment: Mapping[str, str], flags: Mapping[str, object]
) -> dict[str, Given]:
    in_file = [] if file is None else _in_file(file)
    given = [*in_file, *_in_environment(environment), *_in_flags(flags)]
    return {each.key.name: each for each in given}


def _in_file(file: str | os.PathLike[str]) -> Iterator[Given]:
    known = {key.name: key for key in describe()}
    near = {name.rpartition(".")[2]: name for name in known} | {name: name for name in [*known, *_SECTIONS]}
    for name, value in _flat(_read(file)):
        place = f"{name!r} in {file}"
        if name in _SECTIONS:
            raise ConfigInvalid(f"{place} is a section: write [{name}] and its keys below")
        if name not in known:
            raise _unknown(place, name, near)
        yield Given(known[name], place, value)


def _read(file: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigInvalid(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigInvalid(f"{file} is no TOML: {error}") from error


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The keys with their sections before them; an empty section of hq's own says nothing."""
    for name, value in table.items():
        if not isinstance(value, dict):
            yield name, value
        elif value:
            yield from ((f"{name}.{inner}", inner_value) for inner, inner_value in value.items())
        elif name not in _SECTIONS:
            yield name, value


def _in_environment(environment: Mapping[str, str]) -> Iterator[Given]:
    own = {key.variable: key for key in describe()}
    seeds = {key.seed_variable: key for key in describe() if key.seed_variable}
    for name, value in environment.items():
        if name.startswith("HQ_") and name not in own:
            _check_foreign(name, value)
    for variables in (seeds, own):
        for name, key in variables.items():
            if environment.get(name):
                yield Given(key, f"environment variable {name!r}", environment[name])


def _check_foreign(name: str, value: str) -> None:
    """Refuse a variable that was meant for hq.

    Kubernetes tells of a service called hq by HQ_SERVICE_HOST and HQ_PORT=tcp://...; hq starts beside them.
    """
    near = {key.variable: key.variable for key in describe()}
    mistakes = {variable.replace("__", "_") for variable in near}
    mistakes |= {f"HQ_{key.seed_variable}" for key in describe() if key.seed_variable}
    if "://" not in value if name in mistakes else "__" in name:
        raise _unknown(f"environment variable {name!r}", name.upper(), near)


def _in_flags(flags: Mapping[str, object]) -> Iterator[Given]:
    known = {key.flag: key for key in describe()}
    for name, value in flags.items():
        if name not in known:
            raise _unknown(f"flag {name!r}", name, {flag: flag for flag in known})
        if value is not None:
            yield Given(known[name], f"flag {name!r}", value)


def _unknown(place: str, name: str, near: Mapping[str, str]) -> ConfigInvalid:
    """The error that names the closest; `near` has every spelling with what to tell."""
    [closest] = difflib.get_close_matches(name, near, n=1, cutoff=0)
    return ConfigInvalid(f"there is no {place}; did you mean {near[closest]!r}?")


def _parsed(given: Given) -> object:
    kind = given.key.kind
    try:
        return kind.parse(given.value)
    except ValueError:
        told = "" if isinstance(kind, Database | Secret) else f", not {_told(given.value)}"
        raise ConfigInvalid(f"{given.place} must be {kind.allowed}{told}") from None


def _told(value: object) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:
        # Python writes no number of more than a few thousand digits.
        return "a number of so many digits"


def _config(values: Mapping[str, object]) -> Config:
    keywords: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for name, value in values.items():
        section, _, key = name.rpartition(".")
        keywords[section][key] = value
    changed = {section: replace(part, **keywords[section]) for section, part in _SECTIONS.items()}
    return Config(**keywords[""], **changed)
