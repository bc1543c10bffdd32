"""Whatever is in the file, the environment and the flags: a configuration, or ConfigInvalid."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hq.config import Config, describe, load
from hq.errors import ConfigInvalid

KEYS = describe()
SECTIONS = sorted({key.name.partition(".")[0] for key in KEYS})

LITERALS = 'true "1 MiB" "none" "::1" [] ["*"] {a={b=1}} 1979-05-27 "\\u0000" 0xffff'
literals = st.one_of(
    st.integers().map(str), st.floats().map(str), st.sampled_from(re.findall(r'"[^"]*"|\S+', LITERALS))
)
keys = st.one_of(
    st.sampled_from(KEYS).map(lambda key: key.name), st.sampled_from(SECTIONS), st.from_regex(r"[a-z.]{1,8}")
)
lines = st.one_of(
    st.builds("{} = {}".format, keys, literals),
    st.sampled_from(SECTIONS).map("[{}]".format),
    st.text(max_size=20),
)
files = st.one_of(
    st.lists(lines, max_size=5).map("\n".join).map(lambda text: text.encode("utf-8", "ignore")), st.binary()
)

texts = st.one_of(st.text(), st.sampled_from(["1", "none", "true", "1 KiB", "127.0.0.1", "\udcff"]))
variables = st.one_of(
    st.sampled_from(["PORT", "DATABASE", "REQUEST_TIMEOUT"]),
    st.sampled_from(KEYS).map(lambda key: key.variable),
    st.text().map("HQ_{}".format),
    st.text().map("HQ_SERVER__{}".format),
    st.text(),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.binary(), texts),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
flags = st.one_of(st.sampled_from(KEYS).map(lambda key: key.flag), st.text())


@pytest.fixture(scope="session")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("config") / "hq.toml"


def outcome(*sources, **more):
    """What came of loading; anything but a configuration and ConfigInvalid fails the test."""
    try:
        found = load(*sources, **more)
        found.server.check_bind(keys=0)
    except ConfigInvalid as refused:
        return refused
    return found


@given(
    text=files,
    environment=st.dictionaries(variables, texts, max_size=4),
    flags=st.dictionaries(flags, values, max_size=4),
)
def test_any_mix_is_a_configuration_or_is_told(file, text, environment, flags):
    file.write_bytes(text)
    assert isinstance(outcome(file, environment=environment, flags=flags), Config | ConfigInvalid)


@given(key=st.sampled_from(KEYS), value=values)
def test_a_value_of_a_flag_is_taken_or_told_with_its_name(key, value):
    found = outcome(flags={key.flag: value})
    assert isinstance(found, Config) or key.flag in str(found) or key.name in str(found)


@given(key=st.sampled_from(KEYS), text=texts)
def test_a_value_of_a_variable_is_taken_or_told_with_its_name(key, text):
    found = outcome(environment={key.variable: text})
    assert isinstance(found, Config) or key.variable in str(found) or key.name in str(found)
