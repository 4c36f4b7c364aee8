-- taipan hunt case
-- table: hunt0
-- schema
-- rows
-- schedule
-- T0 S1
-- is: update hunt9 1 statement
UPDATE hunt9 SET vkey = 1;
