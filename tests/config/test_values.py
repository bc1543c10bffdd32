"""What a value may be: units, ranges, choices."""

import pytest

from hq.config import load
from hq.errors import ConfigInvalid


def told(flag, value):
    """What is said of this value of a flag."""
    with pytest.raises(ConfigInvalid) as refused:
        load(flags={flag: value})
    return str(refused.value)


@pytest.mark.parametrize(
    ("written", "bytes_"),
    [
        (1_048_576, 1_048_576),
        ("1048576", 1_048_576),
        ("1 MiB", 1_048_576),
        ("1MiB", 1_048_576),
        ("1024 kib", 1_048_576),
        ("1 GiB", 1 << 30),
        ("500 MB", 500_000_000),
        ("2000 kB", 2_000_000),
        ("4096 B", 4096),
    ],
)
def test_a_size_is_a_number_of_bytes_or_has_a_unit(written, bytes_):
    assert load(flags={"--limits-memory-bytes": written}).limits.memory_bytes == bytes_


@pytest.mark.parametrize("written", ["1 M", "MiB", "-1 MiB", "1.5 GiB", "1 MiB 2", "", 1.5, True, "1e6", [1]])
def test_what_is_no_size_is_told_how_one_is_written(written):
    allowed = "must be a size from 1 KiB to 1 GiB, in bytes or with a unit as in '1 MiB'"
    assert allowed in told("--max-body-bytes", written)


def test_a_size_out_of_its_range_is_refused_with_and_without_a_unit():
    for written in (1, "1 B", "2 TiB", 10**30, "9" * 5_000):
        assert "--max-body-bytes" in told("--max-body-bytes", written)


@pytest.mark.parametrize("written", [2.5, "2.5"])
def test_seconds_may_have_a_fraction(written):
    assert load(flags={"--request-timeout": written}).server.request_timeout == 2.5


@pytest.mark.parametrize("written", [0, -1, "nan", "inf", float("nan"), "30s", True, 10**400, "soon"])
def test_what_is_no_time_is_refused(written):
    assert "seconds" in told("--request-timeout", written)


def test_milliseconds_are_whole(load_file):
    assert load_file("[limits]\nidle_ms = 1_500\n").limits.idle_ms == 1500
    with pytest.raises(
        ConfigInvalid, match=r"'limits.idle_ms'.* must be a whole number of milliseconds from 1"
    ):
        load_file("[limits]\nidle_ms = 1.5\n")


def test_a_request_timeout_of_the_file_can_be_taken_back(load_file):
    file = "[server]\nrequest_timeout = 30\n"
    assert load_file(file).server.request_timeout == 30
    assert load_file(file, {"REQUEST_TIMEOUT": "none"}).server.request_timeout is None


@pytest.mark.parametrize("written", [0, 65_535, "8080"])
def test_a_port_is_any_a_socket_takes(written):
    assert load(flags={"--port": written}).server.port == int(written)


@pytest.mark.parametrize("written", [-1, 65_536, 80.0, "80.0", "", [], {}, False])
def test_what_is_no_port_is_refused(written):
    assert "must be a whole number from 0 to 65_535" in told("--port", written)


def test_a_number_of_many_digits_is_told_without_them(load_file):
    with pytest.raises(ConfigInvalid) as refused:
        load_file(f"[server]\nport = 0x{'f' * 5_000}\n")
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(("written", "engine"), [("uvicorn", "uvicorn"), ("Hypercorn", "hypercorn")])
def test_a_choice_is_one_of_its_names(written, engine):
    assert load(flags={"--engine": written}).server.engine == engine


@pytest.mark.parametrize("written", ["gunicorn", "", 1, None.__class__])
def test_what_is_no_choice_is_told_the_choices(written):
    assert "must be 'hypercorn' or 'uvicorn', not" in told("--engine", written)


@pytest.mark.parametrize(("written", "access_log"), [(True, True), ("true", True), ("False", False)])
def test_a_switch_is_true_or_false(written, access_log):
    assert load(flags={"--access-log": written}).server.access_log is access_log


@pytest.mark.parametrize("written", [1, "yes", ""])
def test_what_is_no_switch_is_refused(written):
    assert "must be true or false, not" in told("--access-log", written)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::", "0.0.0.0", "queue-1.example.com", "localhost"])  # noqa: S104
def test_a_host_is_an_address_or_a_name(host):
    assert load(flags={"--host": host}).server.host == host


@pytest.mark.parametrize("host", ["", "[::1]", "localhost:80", "a b", "http://a", "a\0", "-a", 1, "a\n"])
def test_what_is_no_host_is_refused(host):
    assert "must be an IP address without brackets, or a host name" in told("--host", host)


@pytest.mark.parametrize("database", ["", "a\0b", 1, ["a"]])
def test_what_is_no_database_is_refused(database):
    assert "must be a path, memory: or a URL" in told("--database", database)


def test_origins_are_a_list_in_the_file(load_file):
    found = load_file('[server]\ncors_origins = ["https://a.example", "*"]\n')
    assert found.server.cors_origins == ("https://a.example", "*")


@pytest.mark.parametrize(
    "origins", ["null", "https://a.example/", "a.example", ["https://a", 1], {"a": 1}, 1, [[]]]
)
def test_what_is_no_origin_is_refused(origins):
    assert "must be a list of origins such as 'https://app.example.com'" in told("--cors-origins", origins)
