"""Every statement of the SQLite backend that is not made by Alembic. None holds a rule.

Each range is read by one index from a key on; tests/backends/test_plans.py asserts which. Rows are read with
their columns in the order that codec.decode_row takes them.
"""

from __future__ import annotations

from functools import cache

from hq.domain.lookups import SMALL_PAYLOAD

# SQLite tells a payload's length without reading it.
ROW = f"""
    m.sequence, m.state, m.rank, m.available_at, m.place, m.as_of,
    CASE WHEN length(m.payload) <= {SMALL_PAYLOAD} THEN m.payload END, m.payload_check, m.body"""

SHELF_PAGE = f"""
    SELECT {ROW},
           n.place, n.sequence, n.rank, n.available_at
    FROM messages m
    LEFT JOIN messages n ON n.queue = m.queue AND n.sequence = (
        SELECT f.sequence FROM messages f
        WHERE f.queue = m.queue AND f.lane_kind = m.lane_kind AND f.lane_name = m.lane_name
          AND f.lane_rank = m.lane_rank AND f.lane_kind IS NOT NULL
          AND (f.place, f.sequence) > (m.place, m.sequence)
        ORDER BY f.place, f.sequence LIMIT 1
    )
    WHERE m.queue = :queue AND m.marked AND m.rank = :rank
      AND (m.available_at, m.sequence) >= (:instant, :sequence) AND m.available_at <= :until
    ORDER BY m.available_at, m.sequence LIMIT :limit"""

SHELF_NEXT = """
    SELECT available_at, sequence FROM messages
    WHERE queue = :queue AND marked AND rank = :rank AND (available_at, sequence) >= (:instant, :sequence)
    ORDER BY available_at, sequence LIMIT 1"""

LANE_PAGE = f"""
    SELECT {ROW} FROM messages m
    WHERE queue = :queue AND lane_kind = :kind AND lane_name = :name AND lane_rank = :lane_rank
      AND lane_kind IS NOT NULL AND (place, sequence) >= (:instant, :sequence)
    ORDER BY place, sequence LIMIT :limit"""

ENDS_PAGE = f"""
    SELECT {ROW} FROM messages m
    WHERE queue = :queue AND ends_at IS NOT NULL
      AND (ends_at, sequence) >= (:instant, :sequence) AND ends_at <= :until
    ORDER BY ends_at, sequence LIMIT :limit"""

ENDS_NEXT = """
    SELECT ends_at, sequence FROM messages
    WHERE queue = :queue AND ends_at IS NOT NULL AND (ends_at, sequence) >= (:instant, :sequence)
    ORDER BY ends_at, sequence LIMIT 1"""

# Each priority in use is found from the one before, so that a long shelf is not walked.
SHELF_BOUNDS = """
    WITH RECURSIVE ranks (rank) AS (
        SELECT min(rank) FROM messages WHERE queue = :queue AND marked
        UNION ALL
        SELECT (SELECT min(m.rank) FROM messages m
                WHERE m.queue = :queue AND m.marked AND m.rank > ranks.rank)
        FROM ranks WHERE ranks.rank IS NOT NULL
    )
    SELECT ranks.rank, m.available_at, m.sequence FROM ranks
    CROSS JOIN messages m ON m.queue = :queue AND m.sequence = (
        SELECT f.sequence FROM messages f WHERE f.queue = :queue AND f.marked AND f.rank = ranks.rank
        ORDER BY f.available_at, f.sequence LIMIT 1
    )
    WHERE ranks.rank IS NOT NULL"""

PAYLOADS_OF = """
    SELECT sequence, payload, payload_check FROM messages
    WHERE queue = :queue AND sequence IN (SELECT value FROM json_each(:sequences))"""

ROWS_OF = f"""
    SELECT {ROW} FROM messages m
    WHERE queue = :queue AND sequence IN (SELECT value FROM json_each(:sequences))"""

STATE_PAGE = f"""
    SELECT {ROW} FROM messages m
    WHERE queue = :queue AND state = :state AND sequence > :after
    ORDER BY sequence LIMIT :limit"""

# A file has no inbox: nobody else writes it.
IN_INBOX = "SELECT 0"

DELAYED_AFTER = """
    SELECT count(*) FROM messages
    WHERE queue = :queue AND state = 'waiting' AND available_at > :instant AND as_of >= :since"""

_PAIR = "(?, ?)"
KEYS_OF = """
    WITH wanted (scope, key) AS (VALUES (?, ?))
    SELECT d.scope, d.key, d.message, d.until, d.live, d.expires_at, d.as_of
    FROM wanted CROSS JOIN dedup d ON d.queue = ? AND d.scope = wanted.scope AND d.key = wanted.key"""

HAS_REVISION = "SELECT 1 FROM sqlite_schema WHERE name = 'alembic_version'"
READ_REVISION = "SELECT version_num FROM alembic_version"
CREATE_STORE = """
    INSERT INTO store (incarnation, indexed_to)
    SELECT :incarnation, 0 WHERE NOT EXISTS (SELECT 1 FROM store)"""
INCARNATION = "SELECT incarnation FROM store"
FORMER = "SELECT queue, incarnation, sequence FROM former"

QUEUES = "SELECT number, name, settings, wake_at FROM queues WHERE NOT dropped ORDER BY number"
CREATE_QUEUE = """
    INSERT INTO queues (name, settings, wake_at, epoch, dropped) VALUES (:name, x'', NULL, 0, 0)
    ON CONFLICT DO NOTHING RETURNING number"""
SET_SETTINGS = "UPDATE queues SET settings = :settings WHERE number = :queue"
DROP_QUEUE = "UPDATE queues SET dropped = 1, wake_at = NULL WHERE number = :queue"
SET_MARK = """
    UPDATE queues SET settings = :settings, wake_at = :wake_at, epoch = max(epoch, :epoch)
    WHERE number = :queue"""
SET_WAKE = "UPDATE queues SET wake_at = :wake_at WHERE number = :queue"
LEASES = f"""
    SELECT {ROW}
    FROM messages m INDEXED BY messages_by_state
    WHERE queue = :queue AND state = 'leased' ORDER BY sequence"""
SNAPSHOT = "SELECT mark, snapshot FROM checkpoints WHERE queue = :queue"
SETTINGS_OF = "SELECT settings FROM queues WHERE number = :queue"
SET_SNAPSHOT = """
    INSERT INTO checkpoints (queue, mark, snapshot) VALUES (:queue, :mark, :snapshot)
    ON CONFLICT (queue) DO UPDATE SET mark = excluded.mark, snapshot = excluded.snapshot"""

# The journal. What is behind `indexed_to` is found by its index, the rest by walking it.
TAIL_INDEXED = """
    SELECT j.position, j.first, j.last, length(j.body)
    FROM journal_index i CROSS JOIN journal j ON j.position = i.position
    WHERE i.queue = :queue AND i.first >= coalesce(
        (SELECT max(first) FROM journal_index WHERE queue = :queue AND first <= :after + 1), 0)
    ORDER BY i.first LIMIT :limit"""
TAIL_WALKED = """
    SELECT position, first, last, length(body) FROM journal
    WHERE position > (SELECT indexed_to FROM store) AND queue = :queue AND last > :after
    ORDER BY position LIMIT :limit"""
MARKS = """
    SELECT q.number, coalesce(c.mark, 0) FROM queues q LEFT JOIN checkpoints c ON c.queue = q.number
    WHERE NOT q.dropped"""
LASTS_INDEXED = """
    SELECT i.queue, j.last FROM (SELECT queue, max(first) AS first FROM journal_index GROUP BY queue) m
    CROSS JOIN journal_index i ON i.queue = m.queue AND i.first = m.first
    CROSS JOIN journal j ON j.position = i.position"""
LASTS_WALKED = """
    SELECT queue, max(last) FROM journal WHERE position > (SELECT indexed_to FROM store) GROUP BY queue"""
JOURNAL_SIZES = """
    SELECT position, first, last, length(body) FROM journal
    WHERE position > :after ORDER BY position LIMIT :limit"""
JOURNAL_SIZES_UP_TO = """
    SELECT position, first, last, length(body) FROM journal
    WHERE position > :after AND position <= :upto ORDER BY position LIMIT :limit"""
# The first row with which the events become too many, and the first of all. Every row has an event.
JOURNAL_REACH = """
    SELECT position, (SELECT min(position) FROM journal WHERE position > :after) FROM (
        SELECT position, sum(last - first + 1) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) AS total
        FROM (SELECT position, first, last FROM journal
              WHERE position > :after ORDER BY position LIMIT :events + 1))
    WHERE total > :events ORDER BY position LIMIT 1"""
# Cast, because damage may make a text of it, and one that cannot be decoded would hide all rows of a page.
JOURNAL_ROWS = """
    SELECT position, queue, epoch, first, last, CAST(body AS BLOB) FROM journal
    WHERE position IN (SELECT value FROM json_each(:positions)) ORDER BY position"""
JOURNAL_ROWS_UP_TO = """
    SELECT position, queue, epoch, first, last, CAST(body AS BLOB) FROM journal
    WHERE position > :after AND position <= :upto ORDER BY position LIMIT :limit"""
LOWEST_POSITION = "SELECT min(position) FROM journal"
LAST_OF_QUEUE = """
    SELECT j.last, j.claimed FROM journal j WHERE j.position = coalesce(
        (SELECT max(position) FROM journal
         WHERE position > (SELECT indexed_to FROM store) AND queue = :queue),
        (SELECT position FROM journal_index WHERE queue = :queue ORDER BY first DESC LIMIT 1))"""
KNOWN_OF_QUEUE = """
    SELECT coalesce(c.mark, 0), q.epoch FROM queues q LEFT JOIN checkpoints c ON c.queue = q.number
    WHERE q.number = :queue AND NOT q.dropped"""
INDEX_UP_TO = """
    SELECT max(position) FROM (
        SELECT position FROM journal WHERE position > (SELECT indexed_to FROM store)
        ORDER BY position LIMIT :limit)"""
INDEX_JOURNAL = """
    INSERT INTO journal_index (queue, first, position)
    SELECT queue, first, position FROM journal
    WHERE position > (SELECT indexed_to FROM store) AND position <= :up_to ORDER BY queue, first"""
INDEX_BEHIND = "SELECT coalesce((SELECT max(position) FROM journal), 0) - indexed_to FROM store"
SET_INDEXED = "UPDATE store SET indexed_to = :up_to"
_ONE = "(?, ?, ?, ?, ?, ?, ?)"
APPEND = "INSERT INTO journal (queue, first, last, epoch, claimed, at, body) VALUES (?, ?, ?, ?, ?, ?, ?)"


@cache
def append_rows(count: int) -> str:
    """One statement for so many journal rows: one transaction, one sync."""
    return APPEND.replace(_ONE, ", ".join([_ONE] * count))


@cache
def keys_of(count: int) -> str:
    """The lookup of so many dedup keys; the queue's number comes after them."""
    return KEYS_OF.replace(_PAIR, ", ".join([_PAIR] * count))


# Writing a chunk.
WRITE_ROW = """
    INSERT INTO messages (state, rank, available_at, place, as_of, lane_kind, lane_name, lane_rank, marked,
                          ends_at, body, queue, sequence, payload, payload_check)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (queue, sequence) DO UPDATE SET
        state = excluded.state, rank = excluded.rank, available_at = excluded.available_at,
        place = excluded.place, as_of = excluded.as_of, lane_kind = excluded.lane_kind,
        lane_name = excluded.lane_name, lane_rank = excluded.lane_rank, marked = excluded.marked,
        ends_at = excluded.ends_at, body = excluded.body, payload = excluded.payload,
        payload_check = excluded.payload_check"""
CHANGE_ROW = """
    UPDATE messages SET state = ?, rank = ?, available_at = ?, place = ?, as_of = ?, lane_kind = ?,
        lane_name = ?, lane_rank = ?, marked = ?, ends_at = ?, body = ?
    WHERE queue = ? AND sequence = ?"""
REMOVE_ROWS = """
    DELETE FROM messages
    WHERE queue = :queue AND sequence IN (SELECT value FROM json_each(:sequences))"""
REMOVE_KEY = "DELETE FROM dedup WHERE queue = ? AND scope = ? AND key = ?"
WRITE_KEY = """
    INSERT INTO dedup (queue, scope, key, message, until, live, expires_at, as_of)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (queue, scope, key) DO UPDATE SET
        message = excluded.message, until = excluded.until, live = excluded.live,
        expires_at = excluded.expires_at, as_of = excluded.as_of"""

# Marks: note the lanes a chunk touches and their first rows, write, then mark and unmark what differs.
TOUCHED_TABLE = """
    CREATE TEMP TABLE IF NOT EXISTS touched (
        kind TEXT NOT NULL, name TEXT NOT NULL, rank INTEGER NOT NULL, head INTEGER,
        PRIMARY KEY (kind, name, rank)
    ) WITHOUT ROWID"""
FORGET_TOUCHED = "DELETE FROM touched"
TOUCH_STORED = """
    INSERT OR IGNORE INTO touched (kind, name, rank)
    SELECT m.lane_kind, m.lane_name, m.lane_rank FROM json_each(:sequences) j
    CROSS JOIN messages m ON m.queue = :queue AND m.sequence = j.value
    WHERE m.lane_kind IS NOT NULL
    RETURNING 1"""
TOUCH_LANE = "INSERT OR IGNORE INTO touched (kind, name, rank) VALUES (?, ?, ?)"
NOTE_HEADS = """
    UPDATE touched SET head = (
        SELECT m.sequence FROM messages m
        WHERE m.queue = :queue AND m.lane_kind = touched.kind AND m.lane_name = touched.name
          AND m.lane_rank = touched.rank AND m.lane_kind IS NOT NULL
        ORDER BY m.place, m.sequence LIMIT 1)"""
UNMARK = """
    UPDATE messages SET marked = 0 WHERE queue = :queue AND marked AND lane_kind IS NOT NULL
    AND sequence IN (SELECT head FROM touched WHERE head IS NOT (
        SELECT m.sequence FROM messages m
        WHERE m.queue = :queue AND m.lane_kind = touched.kind AND m.lane_name = touched.name
          AND m.lane_rank = touched.rank AND m.lane_kind IS NOT NULL
        ORDER BY m.place, m.sequence LIMIT 1))"""
MARK = """
    UPDATE messages SET marked = 1 WHERE queue = :queue AND NOT marked
    AND sequence IN (SELECT (
        SELECT m.sequence FROM messages m
        WHERE m.queue = :queue AND m.lane_kind = touched.kind AND m.lane_name = touched.name
          AND m.lane_rank = touched.rank AND m.lane_kind IS NOT NULL
        ORDER BY m.place, m.sequence LIMIT 1) FROM touched)"""

# Pruning, a bounded part at a time.
JOURNAL_BOUNDS = """
    SELECT (SELECT min(position) FROM journal), (SELECT max(position) FROM journal), archived_to FROM store"""
JOURNAL_COUNT = """
    SELECT coalesce(sum(last - first + 1), 0) FROM journal WHERE position > :after AND position <= :upto"""
ARCHIVED_TO = "SELECT archived_to FROM store"
SET_ARCHIVED_TO = "UPDATE store SET archived_to = max(archived_to, :upto) RETURNING archived_to"
JOURNAL_BYTES = "SELECT coalesce(sum(length(body)), 0) FROM journal"
HIGHEST_POSITION = "SELECT max(position) FROM journal"
OLDEST_JOURNAL = """
    SELECT position, queue, first, last, at, length(body) FROM journal ORDER BY position LIMIT :limit"""
PRUNE_JOURNAL = "DELETE FROM journal WHERE position <= :up_to"
PRUNE_INDEX = "DELETE FROM journal_index WHERE queue = ? AND first = ?"
PRUNE_KEYS = """
    DELETE FROM dedup WHERE (queue, scope, key) IN (
        SELECT queue, scope, key FROM dedup WHERE NOT live AND until <= :now LIMIT :limit)
    RETURNING 1"""
DROPPED_WITH_ROWS = """
    SELECT number FROM queues q WHERE dropped AND (
        EXISTS (SELECT 1 FROM messages WHERE queue = q.number)
        OR EXISTS (SELECT 1 FROM dedup WHERE queue = q.number)
        OR EXISTS (SELECT 1 FROM checkpoints WHERE queue = q.number))
    ORDER BY number LIMIT 1"""
PRUNE_DROPPED_ROWS = """
    DELETE FROM messages WHERE queue = :queue AND sequence IN (
        SELECT sequence FROM messages WHERE queue = :queue ORDER BY sequence LIMIT :limit)
    RETURNING 1"""
PRUNE_DROPPED_KEYS = """
    DELETE FROM dedup WHERE queue = :queue AND (scope, key) IN (
        SELECT scope, key FROM dedup WHERE queue = :queue ORDER BY scope, key LIMIT :limit)
    RETURNING 1"""
PRUNE_DROPPED_SNAPSHOT = "DELETE FROM checkpoints WHERE queue = :queue RETURNING 1"
# A lane's first row stays while others are behind it: it is where a reader that has passed their place on
# the shelf will find them.
PRUNE_PURGED = """
    DELETE FROM messages WHERE queue = :queue AND sequence IN (
        SELECT m.sequence FROM messages m
        WHERE m.queue = :queue AND m.state = :state AND m.sequence < :purged AND m.as_of < :purged
          AND NOT (m.marked AND EXISTS (
              SELECT 1 FROM messages n
              WHERE n.queue = m.queue AND n.lane_kind = m.lane_kind AND n.lane_name = m.lane_name
                AND n.lane_rank = m.lane_rank AND n.lane_kind IS NOT NULL
                AND (n.place, n.sequence) > (m.place, m.sequence)))
        ORDER BY m.sequence LIMIT :limit)
    RETURNING 1"""
PRUNE_PURGED_KEYS = """
    DELETE FROM dedup WHERE queue = :queue AND (scope, key) IN (
        SELECT scope, key FROM dedup WHERE queue = :queue AND as_of < :purged LIMIT :limit)
    RETURNING 1"""

# All there is, in order, for whoever looks for damage.
EVERY_SNAPSHOT = "SELECT queue, mark, snapshot FROM checkpoints ORDER BY queue"
EVERY_ROW = f"""
    SELECT m.queue, {ROW}, m.payload FROM messages m
    WHERE (m.queue, m.sequence) > (:queue, :sequence) ORDER BY m.queue, m.sequence LIMIT :limit"""
EVERY_BATCH = """
    SELECT position, queue, epoch, first, last, body FROM journal
    WHERE position > :after ORDER BY position LIMIT :limit"""
