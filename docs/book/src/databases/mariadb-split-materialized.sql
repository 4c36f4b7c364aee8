-- MariaDB 10.11.19: the same query returns 0 with the default optimizer switch and 10 without it.
CREATE TABLE t (k INT PRIMARY KEY, a VARCHAR(8), b VARCHAR(8), KEY i (b, a)) ENGINE = InnoDB;
CREATE VIEW v AS SELECT r1.b g, COUNT(*) n FROM t r1 JOIN t r2 ON r1.k = r2.k GROUP BY r1.b;
INSERT INTO t VALUES (1, 'c', ''), (2, 'c', 'zz'), (3, 'c', 'zz'), (4, NULL, ''), (5, 'c', 'b'),
    (6, 'ba', 'zz'), (7, 'zz', NULL), (8, 'c', 'b'), (9, 'abc', 'zz'), (10, 'ab', '');
SET optimizer_switch = 'split_materialized=on';
SELECT COUNT(*) FROM t r56 JOIN t r57 WHERE EXISTS (SELECT 1 FROM v WHERE v.g <=> CONCAT(r57.a, 'zz'));
SET optimizer_switch = 'split_materialized=off';
SELECT COUNT(*) FROM t r56 JOIN t r57 WHERE EXISTS (SELECT 1 FROM v WHERE v.g <=> CONCAT(r57.a, 'zz'));
DROP VIEW v;
DROP TABLE t;
