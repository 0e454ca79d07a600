-- SPDX-License-Identifier: BSD-2-Clause
\echo Use "CREATE EXTENSION pg_stat_prcb" to load this file. \quit

-- One row a query; times are nanoseconds, and wall is the sum of run to unsplit. measured: of calls, errors and
-- workers, those whose times are in them.
CREATE FUNCTION pg_stat_prcb(
    OUT userid oid, OUT dbid oid, OUT queryid bigint, OUT toplevel boolean,
    OUT calls bigint, OUT errors bigint, OUT workers bigint, OUT measured bigint, OUT wall bigint,
    OUT run bigint, OUT ready bigint, OUT throttled bigint, OUT disk bigint, OUT lock bigint,
    OUT latch bigint, OUT net bigint, OUT ipc bigint, OUT page_fault bigint, OUT sleep bigint,
    OUT other bigint, OUT unsplit bigint,
    OUT commit bigint, OUT switches bigint, OUT stats_since timestamptz)
RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

-- The same in milliseconds, as in pg_stat_statements, with the text from there.
CREATE VIEW pg_stat_prcb AS
SELECT d.datname, r.rolname, p.queryid, p.toplevel, p.calls, p.errors, p.workers, p.measured,
       p.wall / 1e6 AS wall_time, p.run / 1e6 AS run_time, p.ready / 1e6 AS ready_time,
       p.throttled / 1e6 AS throttled_time, p.disk / 1e6 AS disk_time, p.lock / 1e6 AS lock_time,
       p.latch / 1e6 AS latch_time, p.net / 1e6 AS net_time, p.ipc / 1e6 AS ipc_time,
       p.page_fault / 1e6 AS page_fault_time, p.sleep / 1e6 AS sleep_time,
       p.other / 1e6 AS other_time, p.unsplit / 1e6 AS unsplit_time,
       p.commit / 1e6 AS commit_time, p.switches, p.stats_since, s.query
FROM pg_stat_prcb() p
LEFT JOIN pg_database d ON d.oid = p.dbid
LEFT JOIN pg_roles r ON r.oid = p.userid
LEFT JOIN pg_stat_statements s USING (userid, dbid, queryid, toplevel);

-- Removes the rows that match, 0 matches all; returns how many.
CREATE FUNCTION pg_stat_prcb_reset(userid oid DEFAULT 0, dbid oid DEFAULT 0, queryid bigint DEFAULT 0)
RETURNS bigint AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL SAFE;
REVOKE ALL ON FUNCTION pg_stat_prcb_reset(oid, oid, bigint) FROM PUBLIC;

-- Where the figures of this connection come from, and why from nowhere better.
CREATE FUNCTION pg_stat_prcb_tier(OUT tier text, OUT reason text)
RETURNS record AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

GRANT SELECT ON pg_stat_prcb TO PUBLIC;
