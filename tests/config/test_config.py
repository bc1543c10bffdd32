"""Where a value comes from, and what is told about one that cannot be."""

import dataclasses

import pytest

from hq.actors.limits import Limits
from hq.backends.sqlite.opening import Durability
from hq.config import Config, describe, load
from hq.errors import ConfigInvalid


def test_without_a_file_a_variable_or_a_flag_everything_has_its_default():
    found = load()

    assert found == Config()
    assert found.database == "./hq.db"
    assert (found.server.host, found.server.port) == ("127.0.0.1", 9999)
    assert found.server.request_timeout is None
    assert found.limits == Limits()


def test_a_configuration_cannot_be_changed():
    found = load()
    for part in (found, found.server, found.limits, found.sqlite, found.log):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, dataclasses.fields(part)[0].name, None)


def test_a_flag_outranks_the_environment_and_that_outranks_the_file(load_file):
    file = "[server]\nport = 1\n"
    environment = {"HQ_SERVER__PORT": "2"}
    flags = {"--port": 3}

    assert load_file(file).server.port == 1
    assert load_file(file, environment).server.port == 2
    assert load_file(file, environment, flags).server.port == 3
    assert load_file(file, flags=flags).server.port == 3


def test_what_one_source_leaves_out_another_may_say(load_file):
    found = load_file(
        'database = "a.db"\n[server]\nport = 1\nhost = "::1"\n',
        {"HQ_SERVER__PORT": "2", "HQ_LOG__LEVEL": "debug"},
        {"--engine": "uvicorn"},
    )
    assert (found.database, found.server.host, found.server.port) == ("a.db", "::1", 2)
    assert (found.log.level, found.server.engine) == ("debug", "uvicorn")


def test_a_flag_that_is_none_was_not_given(load_file):
    assert load_file("[server]\nport = 1\n", flags={"--port": None}).server.port == 1


def test_a_value_that_is_outranked_is_not_looked_at(load_file):
    environment = {"PORT": "tcp://10.0.0.1:80", "HQ_SERVER__PORT": "2"}
    assert load_file("[server]\nport = -1\n", environment).server.port == 2


def test_each_key_of_a_section_is_read_from_that_section(load_file):
    found = load_file(
        '[server]\naccess_log = true\n[limits]\nmailbox = 7\n[sqlite]\ndurability = "process"\n'
        '[log]\nformat = "json"\n'
    )
    assert found.server.access_log is True
    assert found.limits == Limits(mailbox=7)
    assert found.sqlite.durability == "process"
    assert found.log.format == "json"


@pytest.mark.parametrize("text", ["memory:", ":memory:"])
def test_a_database_in_memory_has_two_spellings(text):
    assert load(flags={"--database": text}).database == "memory:"


def test_a_password_in_the_database_is_neither_shown_nor_told():
    found = load(flags={"--database": "postgresql://hq:secret@db/hq"})
    assert found.database == "postgresql://hq:secret@db/hq"
    assert "secret" not in repr(found)

    for wrong in ("postgresql://hq:secret@db/hq\n", ["postgresql://hq:secret@db/hq"]):
        with pytest.raises(ConfigInvalid) as refused:
            load(flags={"--database": wrong})
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[server]\nprt = 1\n", "there is no 'server.prt' in {file}; did you mean 'server.port'?"),
        ("[sever]\nport = 1\n", "there is no 'sever.port' in {file}; did you mean 'server.port'?"),
        ("[sever]\n", "there is no 'sever' in {file}; did you mean 'server'?"),
        ("port = 1\n", "there is no 'port' in {file}; did you mean 'server.port'?"),
        ("databse = 'a'\n", "there is no 'databse' in {file}; did you mean 'database'?"),
        (
            "[limits]\nmemory = 1\n",
            "there is no 'limits.memory' in {file}; did you mean 'limits.memory_bytes'?",
        ),
        ("[[server]]\nport = 1\n", "'server' in {file} is a section: write [server] and its keys below"),
        ("server = 1\n", "'server' in {file} is a section: write [server] and its keys below"),
    ],
)
def test_an_unknown_key_of_the_file_is_told_with_the_closest(load_file, tmp_path, text, told):
    with pytest.raises(ConfigInvalid) as refused:
        load_file(text)
    assert str(refused.value) == told.format(file=tmp_path / "hq.toml")


def test_an_unknown_flag_is_told_with_the_closest():
    with pytest.raises(ConfigInvalid, match=r"^there is no flag '--prt'; did you mean '--port'\?$"):
        load(flags={"--prt": 1})


def test_a_wrong_value_is_told_with_its_place_and_what_is_allowed(load_file, tmp_path):
    told = "must be a whole number from 0 to 65_535, not"
    with pytest.raises(ConfigInvalid) as in_file:
        load_file("[server]\nport = 70000\n")
    assert str(in_file.value) == f"'server.port' in {tmp_path / 'hq.toml'} {told} 70000"

    with pytest.raises(ConfigInvalid) as in_environment:
        load(environment={"PORT": "http"})
    assert str(in_environment.value) == f"environment variable 'PORT' {told} 'http'"

    with pytest.raises(ConfigInvalid) as in_flags:
        load(flags={"--port": True})
    assert str(in_flags.value) == f"flag '--port' {told} True"


def test_a_file_that_is_not_there_or_is_no_toml_is_told(load_file, tmp_path):
    with pytest.raises(ConfigInvalid, match=r"missing\.toml cannot be read: No such file or directory"):
        load(tmp_path / "missing.toml")
    with pytest.raises(ConfigInvalid, match="cannot be read: Is a directory"):
        load(tmp_path)
    with pytest.raises(ConfigInvalid, match=r"hq\.toml is no TOML: .* line 2"):
        load_file("[server]\nport = \n")
    with pytest.raises(ConfigInvalid, match=r"is no TOML"):
        load_file(f"port = {'[' * 100_000}\n")
    (tmp_path / "latin.toml").write_bytes(b'database = "\xe9"\n')
    with pytest.raises(ConfigInvalid, match=r"is no TOML"):
        load(tmp_path / "latin.toml")


def test_a_certificate_and_its_key_are_set_together():
    both = load(flags={"--tls-certificate": "a.crt", "--tls-key": "a.key"})
    assert (both.server.tls_certificate, both.server.tls_key) == ("a.crt", "a.key")

    for one in ("--tls-certificate", "--tls-key"):
        with pytest.raises(ConfigInvalid, match=r"server\.tls_certificate and server\.tls_key"):
            load(flags={one: "a"})


def test_every_limit_of_an_actor_is_a_key():
    limits = [key.name for key in describe() if key.name.startswith("limits.")]
    assert limits == [f"limits.{field.name}" for field in dataclasses.fields(Limits)]


def test_every_key_is_described_in_a_sentence_and_has_names_of_its_own():
    keys = describe()
    for key in keys:
        assert key.sentence.endswith(".")
        assert key.allowed
    for names in ("name", "variable", "flag"):
        assert len({getattr(key, names) for key in keys}) == len(keys)


def test_the_choices_of_durability_are_the_backends():
    for durability in Durability:
        assert load(flags={"--sqlite-durability": durability.value}).sqlite.durability == durability.value
