"""The tables, as SQLAlchemy Core; SQLite and Postgres share them. What they mean is in port.py.

An index exists for each range that hq/domain/lookups.py reads, and none on the path of an append: of the
journal only its position is a key, and `journal_index` is written in bulk behind it. A message's `marked`
says whether it is on its shelf: it waits and is in no lane, or is the first waiting row of its lane.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    text,
)

# The migration this code is written for; the newest in hq/backends/sqlite/migrations.
REVISION = "0003"

metadata = MetaData()

# One row: what is true of the database as a whole.
store = Table(
    "store",
    metadata,
    Column("incarnation", BigInteger, nullable=False),
    # Every journal row up to this position is in journal_index.
    Column("indexed_to", BigInteger, nullable=False),
    # And up to this one archived.
    Column("archived_to", BigInteger, nullable=False, server_default="0"),
)

# After a restore: the last sequence of each queue that was restored under a former incarnation.
former = Table(
    "former",
    metadata,
    Column("queue", Integer, primary_key=True, autoincrement=False),
    Column("incarnation", BigInteger, primary_key=True, autoincrement=False),
    Column("sequence", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

queues = Table(
    "queues",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("name", String(128), nullable=False),
    Column("settings", LargeBinary, nullable=False),
    Column("wake_at", BigInteger),
    # The newest epoch claimed up to the mark; the journal knows of newer ones.
    Column("epoch", BigInteger, nullable=False),
    Column("dropped", Boolean, nullable=False),
    # A number is never used again, not even the last one.
    sqlite_autoincrement=True,
)
_NOT_DROPPED = text("NOT dropped")
Index(
    "queues_by_name",
    queues.c.name,
    unique=True,
    sqlite_where=_NOT_DROPPED,
    postgresql_where=_NOT_DROPPED,
)

journal = Table(
    "journal",
    metadata,
    # No AUTOINCREMENT: it would write a second page with every append. The last row is never pruned instead.
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("queue", Integer, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    # The newest epoch claimed when this row was written, itself included.
    Column("claimed", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    # Last, so that a scan for a queue's rows does not read the overflow pages of others.
    Column("body", LargeBinary, nullable=False),
)

journal_index = Table(
    "journal_index",
    metadata,
    Column("queue", Integer, primary_key=True, autoincrement=False),
    Column("first", BigInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("queue", Integer, primary_key=True, autoincrement=False),
    Column("mark", BigInteger, nullable=False),
    Column("snapshot", LargeBinary, nullable=False),
)

messages = Table(
    "messages",
    metadata,
    Column("queue", Integer, primary_key=True, autoincrement=False),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("state", String(16), nullable=False),
    Column("rank", Integer, nullable=False),
    Column("available_at", BigInteger, nullable=False),
    Column("place", BigInteger),
    Column("as_of", BigInteger, nullable=False),
    # The lane of a waiting row; NULL if it is in none or does not wait.
    Column("lane_kind", String(8)),
    Column("lane_name", String(128)),
    Column("lane_rank", Integer),
    Column("marked", Boolean, nullable=False),
    Column("ends_at", BigInteger),
    Column("payload_check", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

_MARKED = text("marked")
_IN_LANE = text("lane_kind IS NOT NULL")
_ENDS = text("ends_at IS NOT NULL")
Index(
    "messages_by_delivery",
    messages.c.queue,
    messages.c.rank,
    messages.c.available_at,
    messages.c.sequence,
    sqlite_where=_MARKED,
    postgresql_where=_MARKED,
)
Index(
    "messages_by_lane",
    messages.c.queue,
    messages.c.lane_kind,
    messages.c.lane_name,
    messages.c.lane_rank,
    messages.c.place,
    messages.c.sequence,
    sqlite_where=_IN_LANE,
    postgresql_where=_IN_LANE,
)
Index(
    "messages_by_end",
    messages.c.queue,
    messages.c.ends_at,
    messages.c.sequence,
    sqlite_where=_ENDS,
    postgresql_where=_ENDS,
)
_WAITING = text("state = 'waiting'")
Index(
    "messages_by_time",
    messages.c.queue,
    messages.c.available_at,
    messages.c.as_of,
    sqlite_where=_WAITING,
    postgresql_where=_WAITING,
)
Index("messages_by_state", messages.c.queue, messages.c.state, messages.c.sequence)

dedup = Table(
    "dedup",
    metadata,
    Column("queue", Integer, primary_key=True, autoincrement=False),
    Column("scope", String(128), primary_key=True),
    Column("key", String(512), primary_key=True),
    Column("message", BigInteger, nullable=False),
    Column("until", BigInteger, nullable=False),
    Column("live", Boolean, nullable=False),
    Column("expires_at", BigInteger),
    Column("as_of", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
_OVER = text("NOT live")
Index("dedup_by_end", dedup.c.until, sqlite_where=_OVER, postgresql_where=_OVER)
