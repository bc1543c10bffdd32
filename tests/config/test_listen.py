"""Ports of their own for dialects, and what cl-sqs is told by its environment."""

import pytest

from hq.config import Config, Listen, load
from hq.errors import ConfigInvalid
from hq.http.dialects.table import BY_NAME

HERE = Listen("127.0.0.1", 5000, "cl-sqs")
TABLE = '[[listen]]\nbind = "127.0.0.1:5000"\ndialect = "cl-sqs"\n'


def test_a_port_of_its_own_is_said_in_the_file_the_environment_and_flags(load_file):
    assert load_file(TABLE).listen == (HERE,)
    text = "127.0.0.1:5000=cl-sqs, [::1]:0=mq-core"
    both = HERE, Listen("::1", 0, "mq-core")
    assert load(environment={"HQ_LISTEN": text}).listen == both
    assert load(flags={"--listen": text.split(", ")}).listen == both


@pytest.mark.parametrize(
    "wrong",
    [
        "127.0.0.1:5000",
        "127.0.0.1=cl-sqs",
        "127.0.0.1:5000=sqs2",
        ":5000=cl-sqs",
        "::1:5000=cl-sqs",
        "127.0.0.1:65536=cl-sqs",
        "127.0.0.1:x=cl-sqs",
        [{"bind": "127.0.0.1:5000"}],
        [{"bind": "127.0.0.1:5000", "dialect": "hq", "port": 1}],
        [{"bind": 5000, "dialect": "hq"}],
        [{"bind": "127.0.0.1:5000", "dialect": 1}],
        {"bind": "127.0.0.1:5000", "dialect": "hq"},
        [1],
        5000,
    ],
)
def test_any_other_is_told_what_it_must_be(wrong):
    with pytest.raises(ConfigInvalid, match="ADDRESS=DIALECT"):
        load(flags={"--listen": wrong})


@pytest.mark.parametrize("dialect", BY_NAME)
def test_every_dialect_can_have_a_port_of_its_own(dialect):
    assert load(flags={"--listen": f"localhost:1={dialect}"}).listen == (Listen("localhost", 1, dialect),)


def test_a_port_that_others_can_reach_wants_keys_too():
    config = load(flags={"--listen": "0.0.0.0:5000=cl-sqs"})
    with pytest.raises(ConfigInvalid, match=r"the address for cl-sqs is '0\.0\.0\.0'"):
        config.server.check_listen(config.listen[0], keys=0)
    config.server.check_listen(config.listen[0], keys=1)
    load(flags={"--allow-unauthenticated-bind": True}).server.check_listen(config.listen[0], keys=0)


def test_the_key_of_cl_sqs_is_neither_shown_nor_told():
    config = load(environment={"API_KEY": "secret"})
    assert config.cl_sqs.api_key == "secret"
    assert "secret" not in repr(config)
    for wrong in ("secret\n", "sécret", " secret"):
        with pytest.raises(ConfigInvalid) as refused:
            load(environment={"API_KEY": wrong})
        assert "cret" not in str(refused.value)
    assert load(environment={"API_KEY": "secret"}, flags={"--cl-sqs-api-key": "none"}).cl_sqs.api_key is None


def test_the_database_of_cl_sqs_is_taken_where_cl_sqs_has_a_port(load_file):
    environment = {"DB_HOST": "db", "DB_PASSWORD": "p@ss/word"}
    url = "postgresql://postgres:p%40ss%2Fword@db:5432/postgres"
    assert load_file(TABLE, environment).database == url
    every = environment | {"DB_PORT": "5433", "DB_USER": "u", "DB_NAME": "n"}
    assert load_file(TABLE, every).database == "postgresql://u:p%40ss%2Fword@db:5433/n"


def test_it_is_let_be_where_it_has_none_or_a_database_is_named(load_file):
    environment = {"DB_HOST": "db"}
    assert load(environment=environment) == Config()
    assert load_file(TABLE, environment | {"HQ_DATABASE": "a.db"}).database == "a.db"
    assert load_file(f'database = "b.db"\n{TABLE}', environment).database == "b.db"
    assert load_file(TABLE).database == Config().database


def test_a_port_of_that_database_is_a_number(load_file):
    with pytest.raises(ConfigInvalid, match="DB_PORT"):
        load_file(TABLE, {"DB_PORT": "tcp://10.0.0.1:5432"})
