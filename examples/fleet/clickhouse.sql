-- SPDX-License-Identifier: BSD-2-Clause
-- ClickHouse: tables for what `prcb report --parquet fleet` wrote. To fill one:
--   INSERT INTO stretches (* EXCEPT minute) SELECT * FROM file('fleet/stretches/*.parquet', Parquet);
-- or FROM s3('https://.../fleet/stretches/*.parquet', ...).
CREATE TABLE stretches (
    host LowCardinality(String),
    recording LowCardinality(String),
    ended DateTime64(9, 'UTC'),
    began DateTime64(9, 'UTC'),
    ns UInt64,
    thread UInt32,
    pid UInt32,
    tid UInt32,
    process LowCardinality(Nullable(String)),
    name LowCardinality(Nullable(String)),
    state LowCardinality(String),
    cause LowCardinality(Nullable(String)),
    cpu Nullable(UInt32),
    stack Nullable(UInt64),
    kind LowCardinality(Nullable(String)),
    waker Nullable(UInt64),
    open UInt8,
    trace_id Nullable(String),
    span_id Nullable(String),
    minute UInt32 MATERIALIZED intDiv(toUnixTimestamp64Nano(ended), 60000000000)
) ENGINE = MergeTree ORDER BY (host, ended) PARTITION BY toYYYYMMDD(ended);

CREATE TABLE frames (
    host LowCardinality(String),
    recording LowCardinality(String),
    stack UInt64,
    depth UInt16,
    function LowCardinality(Nullable(String)),
    file LowCardinality(Nullable(String)),
    kernel UInt8
) ENGINE = MergeTree ORDER BY (host, recording, stack, depth);

CREATE TABLE threads (
    host LowCardinality(String),
    recording LowCardinality(String),
    thread UInt32,
    pid UInt32,
    tid UInt32,
    parent_pid Nullable(UInt32),
    name Nullable(String),
    started Nullable(DateTime64(9, 'UTC')),
    ended Nullable(DateTime64(9, 'UTC'))
) ENGINE = MergeTree ORDER BY (host, recording, thread);

CREATE TABLE facts (
    host LowCardinality(String),
    recording LowCardinality(String),
    name LowCardinality(String),
    value Nullable(String)
) ENGINE = MergeTree ORDER BY (host, recording, name);
