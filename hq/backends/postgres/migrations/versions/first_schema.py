"""The first schema. What the tables mean is in hq/backends/port.py.

Text is compared byte by byte: the order of a locale changes with the system's libraries, and indexes break.
What clients name themselves is bytes: Postgres has no text with a NUL in it.
Bodies and payloads are kept as they are: compressing them would cost every append.
"""

from __future__ import annotations

from alembic import context, op

revision = "0001"
down_revision = None

TABLES = """
-- What is true of the database as a whole: one row.
CREATE TABLE hq.store (
    one boolean PRIMARY KEY CHECK (one),
    incarnation bigint NOT NULL,
    -- The journal up to this position is pruned.
    pruned_to bigint NOT NULL DEFAULT 0
);

-- Processes that serve queues: each renews its row while it lives.
CREATE TABLE hq.nodes (
    node text COLLATE "C" PRIMARY KEY,
    told text NOT NULL,
    until timestamptz NOT NULL,
    renewals bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100);

CREATE TABLE hq.queues (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    settings bytea NOT NULL,
    wake_at bigint,
    -- The newest epoch claimed up to the mark; the journal knows of newer ones.
    epoch bigint NOT NULL,
    dropped boolean NOT NULL,
    -- Its owner, as long as that node lives.
    node text COLLATE "C" NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE UNIQUE INDEX queues_by_name ON hq.queues (name) WHERE NOT dropped;

CREATE SEQUENCE hq.journal_position;
CREATE TABLE hq.journal (
    position bigint PRIMARY KEY DEFAULT nextval('hq.journal_position'),
    queue integer NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    epoch bigint NOT NULL,
    -- The newest epoch claimed when this row was written, itself included.
    claimed bigint NOT NULL,
    at bigint NOT NULL,
    body bytea NOT NULL,
    UNIQUE (queue, first)
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
ALTER TABLE hq.journal ALTER body SET STORAGE EXTERNAL;
ALTER SEQUENCE hq.journal_position OWNED BY hq.journal.position;

CREATE TABLE hq.checkpoints (
    queue integer PRIMARY KEY,
    mark bigint NOT NULL,
    snapshot bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE TABLE hq.messages (
    queue integer NOT NULL,
    sequence bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    rank integer NOT NULL,
    available_at bigint NOT NULL,
    place bigint,
    as_of bigint NOT NULL,
    -- The lane of a waiting row; NULL if it is in none or does not wait.
    lane_kind text COLLATE "C",
    lane_name bytea,
    lane_rank integer,
    -- Whether it is on its shelf: it waits and is in no lane, or is the first waiting row of its lane.
    marked boolean NOT NULL,
    ends_at bigint,
    payload_check bigint NOT NULL,
    body bytea NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (queue, sequence)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
ALTER TABLE hq.messages ALTER payload SET STORAGE EXTERNAL;
CREATE INDEX messages_by_delivery ON hq.messages (queue, rank, available_at, sequence) WHERE marked;
CREATE INDEX messages_by_lane ON hq.messages (queue, lane_kind, lane_name, lane_rank, place, sequence)
    WHERE lane_kind IS NOT NULL;
CREATE INDEX messages_by_end ON hq.messages (queue, ends_at, sequence) WHERE ends_at IS NOT NULL;
CREATE INDEX messages_by_time ON hq.messages (queue, available_at, as_of) WHERE state = 'waiting';
CREATE INDEX messages_by_state ON hq.messages (queue, state, sequence);

CREATE TABLE hq.dedup (
    queue integer NOT NULL,
    scope bytea NOT NULL,
    key bytea NOT NULL,
    message bigint NOT NULL,
    until bigint NOT NULL,
    live boolean NOT NULL,
    expires_at bigint,
    as_of bigint NOT NULL,
    PRIMARY KEY (queue, scope, key)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX dedup_by_end ON hq.dedup (until) WHERE NOT live;

-- What applications enqueued in their own transactions, until a journal row deals with it.
CREATE TABLE hq.inbox (
    id bigint GENERATED ALWAYS AS IDENTITY,
    queue integer NOT NULL,
    ticket text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    options jsonb NOT NULL,
    PRIMARY KEY (queue, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE hq.inbox ALTER payload SET STORAGE EXTERNAL;

-- Runs with the rights of its owner, so that an application needs none on the tables. What is refused here is
-- what no queue could take in; all else is for the rules to say.
CREATE FUNCTION hq.enqueue(queue text, payload bytea, options jsonb DEFAULT '{}') RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    number integer;
    unknown text;
    ticket text;
BEGIN
    SELECT q.number INTO number FROM hq.queues q WHERE q.name = enqueue.queue AND NOT q.dropped;
    IF number IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HQ001', MESSAGE = concat('there is no queue called ', queue);
    END IF;
    options := coalesce(options, '{}');
    IF jsonb_typeof(options) <> 'object' THEN
        RAISE EXCEPTION USING ERRCODE = 'HQ002', MESSAGE = 'options must be a JSON object';
    END IF;
    SELECT min(name) INTO unknown FROM jsonb_object_keys(options) name WHERE name NOT IN (
        'content_type', 'headers', 'priority', 'group', 'concurrency_key', 'dedup_key', 'dedup_ms',
        'delay_ms', 'ttl_ms', 'max_attempts', 'lease_ms', 'retry', 'result_ms');
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HQ002', MESSAGE = concat('there is no option ', unknown);
    END IF;
    IF payload IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'HQ002', MESSAGE = 'the payload is NULL';
    END IF;
    IF octet_length(payload) > 67108864 THEN
        RAISE EXCEPTION USING ERRCODE = 'HQ003', MESSAGE = 'the payload has more than 64 MiB';
    END IF;
    IF octet_length(options::text) > 524288 THEN
        RAISE EXCEPTION USING ERRCODE = 'HQ002', MESSAGE = 'the options have more than 512 KiB';
    END IF;
    INSERT INTO hq.inbox (queue, ticket, payload, options)
    VALUES (number, gen_random_uuid()::text, payload, options) RETURNING inbox.ticket INTO ticket;
    RETURN ticket;
END $function$;

-- The same for JSON and for text, which say what they are.
CREATE FUNCTION hq.enqueue(queue text, payload jsonb, options jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $function$
    SELECT hq.enqueue(queue, convert_to(payload::text, 'UTF8'),
                      jsonb_build_object('content_type', 'application/json') || coalesce(options, '{}'))
$function$;
CREATE FUNCTION hq.enqueue(queue text, payload text, options jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $function$
    SELECT hq.enqueue(queue, convert_to(payload, 'UTF8'),
                      jsonb_build_object('content_type', 'text/plain; charset=utf-8')
                      || coalesce(options, '{}'))
$function$;
REVOKE ALL ON FUNCTION hq.enqueue(text, bytea, jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION hq.enqueue(text, jsonb, jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION hq.enqueue(text, text, jsonb) FROM PUBLIC
"""


def upgrade() -> None:
    """Make every table and function."""
    op.execute(context.config.attributes["place"](TABLES.strip()))
