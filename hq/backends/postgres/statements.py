"""Every statement of the Postgres backend but the migrations. None holds a rule.

They are written for a schema called hq; connections.py puts the schema's real name there, and `$1` for each
`:name`. Sets come as arrays, so that no statement is sent once per row. Rows are read with their columns in
the order that codec.decode_row takes them.
"""

from __future__ import annotations

from hq.domain.lookups import SMALL_PAYLOAD

# A payload's length is told without reading it.
ROW = f"""
    m.sequence, m.state, m.rank, m.available_at, m.place, m.as_of,
    CASE WHEN octet_length(m.payload) <= {SMALL_PAYLOAD} THEN m.payload END, m.payload_check, m.body"""

SHELF_PAGE = f"""
    SELECT {ROW}, n.place, n.sequence, n.rank, n.available_at
    FROM (
        SELECT * FROM hq.messages
        WHERE queue = :queue AND marked AND rank = :rank
          AND (available_at, sequence) >= (:instant, :sequence) AND available_at <= :until
        ORDER BY available_at, sequence LIMIT :limit
    ) m
    LEFT JOIN LATERAL (
        SELECT f.place, f.sequence, f.rank, f.available_at FROM hq.messages f
        WHERE f.queue = :queue AND f.lane_kind = m.lane_kind AND f.lane_name = m.lane_name
          AND f.lane_rank = m.lane_rank AND f.lane_kind IS NOT NULL
          AND (f.place, f.sequence) > (m.place, m.sequence)
        ORDER BY f.place, f.sequence LIMIT 1
    ) n ON true
    ORDER BY m.available_at, m.sequence"""

SHELF_NEXT = """
    SELECT available_at, sequence FROM hq.messages
    WHERE queue = :queue AND marked AND rank = :rank AND (available_at, sequence) >= (:instant, :sequence)
    ORDER BY available_at, sequence LIMIT 1"""

LANE_PAGE = f"""
    SELECT {ROW} FROM hq.messages m
    WHERE queue = :queue AND lane_kind = :kind AND lane_name = :name AND lane_rank = :lane_rank
      AND lane_kind IS NOT NULL AND (place, sequence) >= (:instant, :sequence)
    ORDER BY place, sequence LIMIT :limit"""

ENDS_PAGE = f"""
    SELECT {ROW} FROM hq.messages m
    WHERE queue = :queue AND ends_at IS NOT NULL
      AND (ends_at, sequence) >= (:instant, :sequence) AND ends_at <= :until
    ORDER BY ends_at, sequence LIMIT :limit"""

ENDS_NEXT = """
    SELECT ends_at, sequence FROM hq.messages
    WHERE queue = :queue AND ends_at IS NOT NULL AND (ends_at, sequence) >= (:instant, :sequence)
    ORDER BY ends_at, sequence LIMIT 1"""

# Each priority in use is found from the one before, so that a long shelf is not walked.
SHELF_BOUNDS = """
    WITH RECURSIVE ranks (rank) AS (
        SELECT (SELECT min(m.rank) FROM hq.messages m WHERE m.queue = :queue AND m.marked)
        UNION ALL
        SELECT (SELECT min(m.rank) FROM hq.messages m
                WHERE m.queue = :queue AND m.marked AND m.rank > ranks.rank)
        FROM ranks WHERE ranks.rank IS NOT NULL
    )
    SELECT ranks.rank, f.available_at, f.sequence FROM ranks CROSS JOIN LATERAL (
        SELECT m.available_at, m.sequence FROM hq.messages m
        WHERE m.queue = :queue AND m.marked AND m.rank = ranks.rank
        ORDER BY m.available_at, m.sequence LIMIT 1
    ) f"""

PAYLOADS_OF = """
    SELECT sequence, payload, payload_check FROM hq.messages
    WHERE queue = :queue AND sequence = ANY(:sequences)"""

ROWS_OF = f"""
    SELECT {ROW} FROM hq.messages m WHERE queue = :queue AND sequence = ANY(:sequences)"""

STATE_PAGE = f"""
    SELECT {ROW} FROM hq.messages m
    WHERE queue = :queue AND state = :state AND sequence > :after
    ORDER BY sequence LIMIT :limit"""

DELAYED_AFTER = """
    SELECT count(*) FROM hq.messages
    WHERE queue = :queue AND state = 'waiting' AND available_at > :instant AND as_of >= :since"""

IN_INBOX = "SELECT count(*) FROM hq.inbox WHERE queue = :queue"

KEYS_OF = """
    SELECT d.scope, d.key, d.message, d.until, d.live, d.expires_at, d.as_of
    FROM unnest(CAST(:scopes AS bytea[]), CAST(:keys AS bytea[])) w (scope, key)
    JOIN hq.dedup d ON d.queue = :queue AND d.scope = w.scope AND d.key = w.key"""

# Opening. The catalog itself is asked: to_regclass may answer from before another process has migrated.
SCHEMA_AND_REVISIONS = """
    SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = CAST(:schema AS name)),
           EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                   WHERE n.nspname = CAST(:schema AS name) AND c.relname = 'alembic_version')"""
READ_REVISION = "SELECT version_num FROM hq.alembic_version"
GREETING = """
    SELECT current_setting('synchronous_commit') AS synchronous_commit, current_setting('fsync') AS fsync,
           current_setting('full_page_writes') AS full_page_writes,
           current_setting('server_version') AS server_version, pg_is_in_recovery() AS in_recovery"""
CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"
CREATE_STORE = """
    INSERT INTO hq.store (one, incarnation) VALUES (true, :incarnation) ON CONFLICT DO NOTHING"""
INCARNATION = "SELECT incarnation FROM hq.store"
FORMER = "SELECT queue, incarnation, sequence FROM hq.former"

# Nodes. Whoever enters holds the door's lock, so that two do not find the house empty at once.
LOCK_DOOR = "SELECT pg_advisory_xact_lock(:space, :door)"
REMOVE_LAPSED = "DELETE FROM hq.nodes WHERE until <= clock_timestamp()"
OTHERS = """
    SELECT node, told, extract(epoch FROM until - clock_timestamp())::float8 AS left_s, renewals
    FROM hq.nodes WHERE node <> :node"""
ENTER = """
    INSERT INTO hq.nodes (node, told, until, renewals)
    VALUES (:node, :told, clock_timestamp() + make_interval(secs => :time_s), 0)
    ON CONFLICT (node) DO UPDATE SET until = excluded.until"""
RENEW = """
    UPDATE hq.nodes SET until = clock_timestamp() + make_interval(secs => :time_s), renewals = renewals + 1
    WHERE node = :node RETURNING 1"""
LEAVE = "DELETE FROM hq.nodes WHERE node = :node"
IS_LIVE = "SELECT 1 FROM hq.nodes WHERE node = :node AND until > clock_timestamp()"

# Queues.
QUEUES = "SELECT number, name, settings, wake_at FROM hq.queues WHERE NOT dropped ORDER BY number"
CREATE_QUEUE = """
    INSERT INTO hq.queues (name, settings, epoch, dropped, node)
    VALUES (:name, '', 0, false, :node) ON CONFLICT DO NOTHING RETURNING number"""
SET_SETTINGS = "UPDATE hq.queues SET settings = :settings WHERE number = :queue"
DROP_QUEUE = "UPDATE hq.queues SET dropped = true, wake_at = NULL WHERE number = :queue"
# A queue is its owner's as long as that lives; its row is locked, so a checkpoint under way ends first.
CLAIM_QUEUE = """
    UPDATE hq.queues q SET node = :node
    WHERE number = :queue AND NOT dropped
      AND EXISTS (SELECT 1 FROM hq.nodes n WHERE n.node = :node AND n.until > clock_timestamp())
      AND NOT EXISTS (SELECT 1 FROM hq.nodes n
                      WHERE n.node = q.node AND n.node <> :node AND n.until > clock_timestamp())
    RETURNING settings"""
OWN_QUEUE = """
    SELECT node = :node FROM hq.queues WHERE number = :queue AND NOT dropped FOR NO KEY UPDATE"""
IS_QUEUE = "SELECT 1 FROM hq.queues WHERE number = :queue AND NOT dropped"
SET_MARK = """
    UPDATE hq.queues SET settings = :settings, wake_at = :wake_at, epoch = greatest(epoch, :epoch)
    WHERE number = :queue"""
SET_WAKE = """
    UPDATE hq.queues SET wake_at = :wake_at WHERE number = :queue AND wake_at IS DISTINCT FROM :wake_at"""
LEASES = f"""
    SELECT {ROW} FROM hq.messages m WHERE queue = :queue AND state = 'leased' ORDER BY sequence"""
SNAPSHOT = "SELECT mark, snapshot FROM hq.checkpoints WHERE queue = :queue"
SET_SNAPSHOT = """
    INSERT INTO hq.checkpoints (queue, mark, snapshot) VALUES (:queue, :mark, :snapshot)
    ON CONFLICT (queue) DO UPDATE SET mark = excluded.mark, snapshot = excluded.snapshot"""

# The journal. Each append holds a shared lock from before it is given positions until its end, so that a
# reader can tell when all that were given are written or never will be (positions.py).
_INSERT = """
    INSERT INTO hq.journal (queue, first, last, epoch, claimed, at, body)
    SELECT b.queue, b.first, b.last, b.epoch, greatest(b.claimed, q.epoch, l.claimed), b.at, b.body
    FROM (SELECT pg_advisory_xact_lock_shared(:space, :journal)) AS held,
         unnest(CAST(:queues AS integer[]), CAST(:firsts AS bigint[]), CAST(:lasts AS bigint[]),
                CAST(:epochs AS bigint[]), CAST(:claims AS bigint[]), CAST(:times AS bigint[]),
                CAST(:bodies AS bytea[])) AS b (queue, first, last, epoch, claimed, at, body)
    JOIN hq.queues q ON q.number = b.queue
    LEFT JOIN hq.checkpoints c ON c.queue = b.queue
    LEFT JOIN LATERAL (
        SELECT j.last, j.claimed FROM hq.journal j WHERE j.queue = b.queue ORDER BY j.first DESC LIMIT 1
    ) l ON true
    WHERE NOT q.dropped AND q.node = :node
      AND b.epoch >= greatest(q.epoch, l.claimed) AND b.first = greatest(c.mark, l.last, 0) + 1"""
_IF_NEXT = " ON CONFLICT (queue, first) DO NOTHING RETURNING queue"
APPEND = f"{_INSERT} {_IF_NEXT}"

# The same with rows of the inbox, which go if and only if the batch that names them is written.
_TAKEN = "unnest(CAST(:takers AS integer[]), CAST(:taken AS bigint[])) AS t (queue, id)"
APPEND_TAKING = f"""
    WITH written AS (
        {_INSERT}
          AND NOT EXISTS (
              SELECT 1 FROM {_TAKEN} WHERE t.queue = b.queue
              AND NOT EXISTS (SELECT 1 FROM hq.inbox i WHERE i.queue = t.queue AND i.id = t.id))
        {_IF_NEXT}
    ), gone AS (
        DELETE FROM hq.inbox i USING {_TAKEN} JOIN written w ON w.queue = t.queue
        WHERE i.queue = t.queue AND i.id = t.id
    )
    SELECT queue FROM written"""

# The inbox: the first rows of some queues, each found from the one before it. Sizes are read before payloads.
INBOX_SIZES = """
    WITH RECURSIVE queues (queue, place) AS (
        SELECT (SELECT min(i.queue) FROM hq.inbox i WHERE i.queue > :after), 1
        UNION ALL
        SELECT (SELECT min(i.queue) FROM hq.inbox i WHERE i.queue > queues.queue), queues.place + 1
        FROM queues WHERE queues.queue IS NOT NULL AND queues.place < :queues
    )
    SELECT q.queue, i.id, i.size FROM queues q LEFT JOIN LATERAL (
        SELECT id, octet_length(payload) + pg_column_size(options) AS size FROM hq.inbox
        WHERE queue = q.queue ORDER BY id LIMIT :rows
    ) i ON q.queue <> ALL(CAST(:busy AS integer[]))
    WHERE q.queue IS NOT NULL ORDER BY i.id"""
INBOX_ROWS = f"""
    SELECT i.id, i.queue, i.ticket, i.payload, i.options::text
    FROM {_TAKEN} JOIN hq.inbox i ON i.queue = t.queue AND i.id = t.id ORDER BY i.id"""
TAIL = """
    SELECT position, first, last, octet_length(body) FROM hq.journal
    WHERE queue = :queue AND first >= coalesce(
        (SELECT max(first) FROM hq.journal WHERE queue = :queue AND first <= CAST(:after AS bigint) + 1), 0)
    ORDER BY first LIMIT :limit"""
MARKS = """
    SELECT q.number, coalesce(c.mark, 0) FROM hq.queues q LEFT JOIN hq.checkpoints c ON c.queue = q.number
    WHERE NOT q.dropped"""
MARK_OF = "SELECT mark FROM hq.checkpoints WHERE queue = :queue"
UNSETTLED = """
    SELECT q.number FROM hq.queues q LEFT JOIN hq.checkpoints c ON c.queue = q.number
    CROSS JOIN LATERAL (
        SELECT j.last FROM hq.journal j WHERE j.queue = q.number ORDER BY j.first DESC LIMIT 1
    ) l
    WHERE NOT q.dropped AND l.last > coalesce(c.mark, 0) ORDER BY q.number"""
JOURNAL_SIZES = """
    SELECT position, first, last, octet_length(body) FROM hq.journal
    WHERE position > :after AND position <= :up_to ORDER BY position LIMIT :limit"""
# The first row with which the events become too many, and the first of all. Every row has an event.
JOURNAL_REACH = """
    SELECT position, (SELECT min(position) FROM hq.journal WHERE position > :after) FROM (
        SELECT position, sum(last - first + 1) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) AS total
        FROM (SELECT position, first, last FROM hq.journal
              WHERE position > :after AND position <= :up_to
              ORDER BY position LIMIT :events + 1) AS few) AS sums
    WHERE total > :events ORDER BY position LIMIT 1"""
JOURNAL_ROWS = """
    SELECT position, queue, epoch, first, last, body FROM hq.journal
    WHERE position = ANY(:positions) ORDER BY position"""
# Asked for after rows were read: whatever had gone by then is told.
PRUNED_TO = "SELECT pruned_to FROM hq.store"
LAST_GIVEN = "SELECT last_value, is_called FROM hq.journal_position"
HOLDERS = """
    SELECT virtualtransaction FROM pg_locks
    WHERE locktype = 'advisory'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid = CAST(:space AS oid) AND objid = CAST(:journal AS oid) AND objsubid = 2 AND granted"""

# Writing a chunk.
_COLUMNS = """
    unnest(CAST(:states AS text[]), CAST(:ranks AS integer[]), CAST(:availables AS bigint[]),
           CAST(:places AS bigint[]), CAST(:as_ofs AS bigint[]), CAST(:lane_kinds AS text[]),
           CAST(:lane_names AS bytea[]), CAST(:lane_ranks AS integer[]), CAST(:marks AS boolean[]),
           CAST(:ends AS bigint[]), CAST(:bodies AS bytea[]), CAST(:sequences AS bigint[])"""
_NAMES = """
    state, rank, available_at, place, as_of, lane_kind, lane_name, lane_rank, marked, ends_at, body,
    sequence"""
WRITE_ROWS = f"""
    INSERT INTO hq.messages (queue, {_NAMES}, payload, payload_check)
    SELECT CAST(:queue AS integer), w.* FROM {_COLUMNS}, CAST(:payloads AS bytea[]),
    CAST(:checks AS bigint[])) w
    ON CONFLICT (queue, sequence) DO UPDATE SET
        state = excluded.state, rank = excluded.rank, available_at = excluded.available_at,
        place = excluded.place, as_of = excluded.as_of, lane_kind = excluded.lane_kind,
        lane_name = excluded.lane_name, lane_rank = excluded.lane_rank, marked = excluded.marked,
        ends_at = excluded.ends_at, body = excluded.body, payload = excluded.payload,
        payload_check = excluded.payload_check"""
CHANGE_ROWS = f"""
    UPDATE hq.messages m SET
        state = w.state, rank = w.rank, available_at = w.available_at, place = w.place, as_of = w.as_of,
        lane_kind = w.lane_kind, lane_name = w.lane_name, lane_rank = w.lane_rank, marked = w.marked,
        ends_at = w.ends_at, body = w.body
    FROM {_COLUMNS}) w ({_NAMES})
    WHERE m.queue = :queue AND m.sequence = w.sequence RETURNING 1"""
REMOVE_ROWS = "DELETE FROM hq.messages WHERE queue = :queue AND sequence = ANY(:sequences)"
REMOVE_KEYS = """
    DELETE FROM hq.dedup d USING unnest(CAST(:scopes AS bytea[]), CAST(:keys AS bytea[])) w (scope, key)
    WHERE d.queue = :queue AND d.scope = w.scope AND d.key = w.key"""
WRITE_KEYS = """
    INSERT INTO hq.dedup (queue, scope, key, message, until, live, expires_at, as_of)
    SELECT CAST(:queue AS integer), w.* FROM unnest(
        CAST(:scopes AS bytea[]), CAST(:keys AS bytea[]), CAST(:messages AS bigint[]),
        CAST(:untils AS bigint[]), CAST(:lives AS boolean[]), CAST(:expires AS bigint[]),
        CAST(:as_ofs AS bigint[])) w
    ON CONFLICT (queue, scope, key) DO UPDATE SET
        message = excluded.message, until = excluded.until, live = excluded.live,
        expires_at = excluded.expires_at, as_of = excluded.as_of"""

# Marks: tell the lanes a chunk touches and their first rows, write, then mark and unmark what differs.
_HEAD = """(
    SELECT m.sequence FROM hq.messages m
    WHERE m.queue = :queue AND m.lane_kind = t.kind AND m.lane_name = t.name AND m.lane_rank = t.rank
      AND m.lane_kind IS NOT NULL
    ORDER BY m.place, m.sequence LIMIT 1)"""
TOUCHED = f"""
    SELECT t.kind, t.name, t.rank, {_HEAD} FROM (
        SELECT lane_kind, lane_name, lane_rank FROM hq.messages
        WHERE queue = :queue AND sequence = ANY(:sequences) AND lane_kind IS NOT NULL
        UNION
        SELECT * FROM unnest(CAST(:kinds AS text[]), CAST(:names AS bytea[]), CAST(:ranks AS integer[]))
    ) t (kind, name, rank)"""
MARK_LANES = f"""
    WITH heads AS MATERIALIZED (
        SELECT t.head AS before, {_HEAD} AS after
        FROM unnest(CAST(:kinds AS text[]), CAST(:names AS bytea[]), CAST(:ranks AS integer[]),
                    CAST(:heads AS bigint[])) t (kind, name, rank, head)
    )
    UPDATE hq.messages m SET marked = w.mark
    FROM (
        SELECT after AS sequence, true AS mark FROM heads WHERE after IS NOT NULL
        UNION
        SELECT before, false FROM heads
        WHERE before IS NOT NULL AND before NOT IN (SELECT after FROM heads WHERE after IS NOT NULL)
    ) w
    WHERE m.queue = :queue AND m.sequence = w.sequence AND m.lane_kind IS NOT NULL
      AND m.marked <> w.mark"""

# Pruning, a bounded part at a time.
# Positions that were given out and never written leave gaps, so the first row says nothing of pruning.
JOURNAL_BOUNDS = """
    SELECT (SELECT pruned_to FROM hq.store) + 1, max(position), (SELECT archived_to FROM hq.store)
    FROM hq.journal WHERE position <= :up_to"""
JOURNAL_COUNT = """
    SELECT CAST(coalesce(sum(last - first + 1), 0) AS bigint) FROM hq.journal
    WHERE position > :after AND position <= :upto"""
SET_ARCHIVED_TO = """
    UPDATE hq.store SET archived_to = greatest(archived_to, CAST(:upto AS bigint)) RETURNING archived_to"""
JOURNAL_BYTES = "SELECT coalesce(sum(octet_length(body)), 0) FROM hq.journal"
OLDEST_JOURNAL = """
    SELECT position, queue, first, last, at, octet_length(body) FROM hq.journal
    WHERE position <= :up_to ORDER BY position LIMIT :limit"""
PRUNE_JOURNAL = "DELETE FROM hq.journal WHERE position <= :up_to"
SET_PRUNED_TO = "UPDATE hq.store SET pruned_to = greatest(pruned_to, :up_to)"
# By where rows are, because a plan for any limit would join with all of them.
PRUNE_KEYS = """
    DELETE FROM hq.dedup WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM hq.dedup WHERE NOT live AND until <= :now ORDER BY until LIMIT :limit))
    RETURNING 1"""
DROPPED_WITH_ROWS = """
    SELECT number FROM hq.queues q WHERE dropped AND (
        EXISTS (SELECT 1 FROM hq.messages WHERE queue = q.number)
        OR EXISTS (SELECT 1 FROM hq.dedup WHERE queue = q.number)
        OR EXISTS (SELECT 1 FROM hq.inbox WHERE queue = q.number)
        OR EXISTS (SELECT 1 FROM hq.checkpoints WHERE queue = q.number))
    ORDER BY number LIMIT 1"""
PRUNE_DROPPED_ROWS = """
    DELETE FROM hq.messages WHERE queue = :queue AND sequence IN (
        SELECT sequence FROM hq.messages WHERE queue = :queue ORDER BY sequence LIMIT :limit)
    RETURNING 1"""
PRUNE_DROPPED_KEYS = """
    DELETE FROM hq.dedup WHERE queue = :queue AND (scope, key) IN (
        SELECT scope, key FROM hq.dedup WHERE queue = :queue ORDER BY scope, key LIMIT :limit)
    RETURNING 1"""
PRUNE_DROPPED_INBOX = """
    DELETE FROM hq.inbox WHERE queue = :queue AND id IN (
        SELECT id FROM hq.inbox WHERE queue = :queue ORDER BY id LIMIT :limit)
    RETURNING 1"""
PRUNE_DROPPED_SNAPSHOT = "DELETE FROM hq.checkpoints WHERE queue = :queue RETURNING 1"
# A lane's first row stays while others are behind it: it is where a reader that has passed their place on
# the shelf will find them.
PRUNE_PURGED = """
    DELETE FROM hq.messages WHERE queue = :queue AND sequence IN (
        SELECT m.sequence FROM hq.messages m
        WHERE m.queue = :queue AND m.state = :state AND m.sequence < :purged AND m.as_of < :purged
          AND NOT (m.marked AND EXISTS (
              SELECT 1 FROM hq.messages n
              WHERE n.queue = m.queue AND n.lane_kind = m.lane_kind AND n.lane_name = m.lane_name
                AND n.lane_rank = m.lane_rank AND n.lane_kind IS NOT NULL
                AND (n.place, n.sequence) > (m.place, m.sequence)))
        ORDER BY m.sequence LIMIT :limit)
    RETURNING 1"""
PRUNE_PURGED_KEYS = """
    DELETE FROM hq.dedup WHERE queue = :queue AND (scope, key) IN (
        SELECT scope, key FROM hq.dedup WHERE queue = :queue AND as_of < :purged LIMIT :limit)
    RETURNING 1"""

# All there is, in order, for whoever looks for damage.
EVERY_SNAPSHOT = "SELECT queue, mark, snapshot FROM hq.checkpoints ORDER BY queue"
EVERY_ROW = f"""
    SELECT m.queue, {ROW}, m.payload FROM hq.messages m
    WHERE (m.queue, m.sequence) > (:queue, :sequence) ORDER BY m.queue, m.sequence LIMIT :limit"""
EVERY_BATCH = """
    SELECT position, queue, epoch, first, last, body FROM hq.journal
    WHERE position > :after ORDER BY position LIMIT :limit"""

# After a restore: numbers go on after those that are there.
HAS_INBOX = "SELECT 1 FROM hq.inbox LIMIT 1"
SET_PRUNED = "UPDATE hq.store SET pruned_to = coalesce((SELECT min(position) FROM hq.journal), 1) - 1"
SET_NUMBER = """
    SELECT setval(pg_get_serial_sequence('hq.queues', 'number'), max(number))
    FROM hq.queues HAVING max(number) IS NOT NULL"""
SET_POSITION = """
    SELECT setval('hq.journal_position', max(position)) FROM hq.journal HAVING max(position) IS NOT NULL"""
SET_INBOX = """
    SELECT setval(pg_get_serial_sequence('hq.inbox', 'id'), max(id))
    FROM hq.inbox HAVING max(id) IS NOT NULL"""
