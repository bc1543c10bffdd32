"""Every SQLSTATE ends an append in one way, and unknown is never told as refused."""

import asyncpg
import pytest

from hq.backends.port import Ending
from hq.backends.postgres.trouble import ENDINGS, ending_of, named
from hq.errors import DatabaseReadOnly, DatabaseUnreachable, StorageError, StorageFull, StorageTimeout

CODES = {
    cls.sqlstate: cls
    for name in asyncpg.exceptions.__all__
    if isinstance(cls := getattr(asyncpg.exceptions, name), type) and getattr(cls, "sqlstate", None)
}
# A connection or a server that went away, or does not know itself: the commit may have been done.
UNKNOWN = {
    "08000", "08003", "08006", "08007", "08P01", "25P03", "25P04", "40003", "57P01", "57P02", "57P04",
    "57P05", "58000", "58030", "58P01", "58P02", "58P03", "XX000", "XX001", "XX002",
}  # fmt: skip


def test_every_code_that_the_driver_knows_is_in_the_table():
    missing = [code for code in CODES if code not in ENDINGS and code[:2] not in ENDINGS]

    assert len(CODES) > 200
    assert missing == []


def test_exactly_these_errors_leave_the_outcome_unknown():
    unknown = {code for code, cls in CODES.items() if ending_of(cls("")) is Ending.UNKNOWN}

    assert {code for code in unknown if code[:2] not in {"00", "01", "02", "HV"}} == UNKNOWN & set(CODES)
    assert {ending_of(cls("")) for cls in CODES.values()} == {Ending.UNKNOWN, Ending.REFUSED}


@pytest.mark.parametrize(
    "error", [ConnectionResetError(), TimeoutError(), asyncpg.InterfaceError("closed"), EOFError()]
)
def test_whatever_has_no_code_is_unknown(error):
    assert ending_of(error) is Ending.UNKNOWN


def test_a_code_of_the_future_is_unknown():
    class Later(asyncpg.PostgresError):
        sqlstate = "ZZ123"

    assert ending_of(Later("")) is Ending.UNKNOWN


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("53100", StorageFull),
        ("25006", DatabaseReadOnly),
        ("57P03", DatabaseUnreachable),
        ("08006", DatabaseUnreachable),
        ("57014", StorageTimeout),
        ("22000", StorageError),
    ],
)
def test_an_error_has_a_name_and_says_what_postgres_said(code, told):
    error = named(CODES[code]("its own words"))

    assert type(error) is told
    assert "its own words" in str(error)
    assert code in str(error)
