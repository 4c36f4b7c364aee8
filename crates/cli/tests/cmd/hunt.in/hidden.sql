-- taipan hunt case
-- isolation: serializable
-- | two sessions set a row to one value
-- table: hunt0

-- schema
CREATE TABLE hunt0 (pkey BIGINT PRIMARY KEY, vkey BIGINT NOT NULL);

-- rows
INSERT INTO hunt0 (pkey, vkey) VALUES (1024, -1024);

-- schedule
-- T2 S0
BEGIN;
-- T3 S2
BEGIN;
-- T3 S6
-- is: select - 16 transaction
-- versions hunt0: SELECT pkey, vkey FROM hunt0
SELECT r.pkey AS pkey FROM hunt0 AS r;
-- T2 S21
-- is: update hunt0 15 transaction shared
-- versions hunt0: SELECT pkey, vkey FROM hunt0
-- before: SELECT hunt0.pkey, hunt0.vkey FROM hunt0
-- after: SELECT pkey, vkey FROM hunt0 WHERE vkey = 15
UPDATE hunt0 SET vkey = 15;
-- T2 S26
COMMIT;
-- T3 S27
-- is: update hunt0 15 transaction shared
-- versions hunt0: SELECT pkey, vkey FROM hunt0
-- before: SELECT hunt0.pkey, hunt0.vkey FROM hunt0
-- after: SELECT pkey, vkey FROM hunt0 WHERE vkey = 15
UPDATE hunt0 SET vkey = 15;
-- T3 S29
COMMIT;
