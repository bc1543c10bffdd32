"""Variables: hq's own, the first seed's, and those that are somebody else's."""

import pytest

from hq.config import Config, describe, load
from hq.errors import ConfigInvalid


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("HQ_DATABASE", "database"),
        ("HQ_SERVER__PORT", "server.port"),
        ("HQ_SERVER__ALLOW_UNAUTHENTICATED_BIND", "server.allow_unauthenticated_bind"),
        ("HQ_LIMITS__MEMORY_BYTES", "limits.memory_bytes"),
    ],
)
def test_a_variable_has_two_underscores_between_section_and_key(variable, key):
    assert variable in {known.variable for known in describe() if known.name == key}


@pytest.mark.parametrize("key", describe(), ids=lambda key: key.name)
def test_a_variable_understands_the_default_as_it_is_shown(key):
    text = key.shown_default.strip('"').replace("[]", "")
    assert load(environment={key.variable: text}) == Config()


def test_the_variables_of_the_first_seed_are_understood():
    found = load(environment={"PORT": "8080", "DATABASE": ":memory:", "REQUEST_TIMEOUT": "30"})
    assert (found.server.port, found.database, found.server.request_timeout) == (8080, "memory:", 30)


def test_a_variable_of_hq_outranks_one_of_the_first_seed():
    environment = {"HQ_SERVER__PORT": "2", "PORT": "1", "DATABASE": "a.db", "HQ_DATABASE": "b.db"}
    found = load(environment=environment)
    assert (found.server.port, found.database) == (2, "b.db")


def test_an_empty_variable_is_not_set():
    assert load(environment={"PORT": "", "HQ_SERVER__HOST": ""}) == Config()


def test_a_list_is_written_with_commas():
    origins = "https://a.example, http://localhost:3000"
    found = load(environment={"HQ_SERVER__CORS_ORIGINS": origins})
    assert found.server.cors_origins == ("https://a.example", "http://localhost:3000")


@pytest.mark.parametrize("variable", ["HQ_SERVER__PRT", "HQ_server__port", "HQ_SEVER__PORT"])
def test_an_unknown_variable_of_hq_is_told_with_the_closest(variable):
    with pytest.raises(ConfigInvalid) as refused:
        load(environment={variable: "1"})
    assert str(refused.value) == (
        f"there is no environment variable '{variable}'; did you mean 'HQ_SERVER__PORT'?"
    )


@pytest.mark.parametrize("variable", ["HQ_SERVER_PORT", "HQ_PORT"])
def test_a_variable_that_only_lacks_underscores_is_a_mistake(variable):
    with pytest.raises(ConfigInvalid, match="did you mean 'HQ_SERVER__PORT'"):
        load(environment={variable: "8080"})


def test_a_variable_of_somebody_else_is_let_be():
    kubernetes = {
        "HQ_SERVICE_HOST": "10.0.0.1",
        "HQ_SERVICE_PORT": "9999",
        "HQ_PORT": "tcp://10.0.0.1:9999",
        "HQ_PORT_9999_TCP_ADDR": "10.0.0.1",
        "HQ_SERVER_PORT": "tcp://10.0.0.1:9999",
        "HQ_SERVER_SERVICE_HOST": "10.0.0.1",
    }
    others = {"HQ_URL": "http://127.0.0.1:9999", "HQ_REGION": "eu", "HOST": "somewhere", "PATH": "/bin"}
    assert load(environment=kubernetes | others) == Config()
