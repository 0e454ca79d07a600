-- SPDX-License-Identifier: BSD-2-Clause
-- DuckDB: what `prcb report --parquet fleet` wrote, as tables. Run it where the folder `fleet` is.
CREATE OR REPLACE VIEW stretches AS
    SELECT *, epoch_ns(ended) // 60000000000 AS minute FROM read_parquet('fleet/stretches/*.parquet');
CREATE OR REPLACE VIEW frames AS SELECT * FROM read_parquet('fleet/frames/*.parquet');
CREATE OR REPLACE VIEW threads AS SELECT * FROM read_parquet('fleet/threads/*.parquet');
CREATE OR REPLACE VIEW facts AS SELECT * FROM read_parquet('fleet/facts/*.parquet');
-- There if the recordings have rows of it:
-- CREATE OR REPLACE VIEW wakers AS SELECT * FROM read_parquet('fleet/wakers/*.parquet');
-- CREATE OR REPLACE VIEW switches AS SELECT * FROM read_parquet('fleet/switches/*.parquet');
-- CREATE OR REPLACE VIEW samples AS SELECT * FROM read_parquet('fleet/samples/*.parquet');
