"""Ids of former incarnations, which stay good for what was restored."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "former",
        Column("queue", Integer, primary_key=True, autoincrement=False),
        Column("incarnation", BigInteger, primary_key=True, autoincrement=False),
        Column("sequence", BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
