//! The demo's business tables and how they are filled: statements for SQLite, which the demo runs on.
//!
//! Every value is computed from the row's number, so that the rows are the same on every machine. Numbers with a large
//! prime factor stand for chance.

/// The tables; made where they are missing.
pub(super) const MAKE: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS customers (number TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL, \
     city TEXT NOT NULL, country TEXT NOT NULL, credit_limit_cents INTEGER NOT NULL, since TEXT, \
     times_written INTEGER NOT NULL, created_by TEXT NOT NULL, written_by TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS customers_rejected (import TEXT NOT NULL, line INTEGER NOT NULL, reason TEXT NOT NULL, \
     source TEXT NOT NULL, PRIMARY KEY (import, line)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS products (sku TEXT PRIMARY KEY, name TEXT NOT NULL, price_cents INTEGER NOT NULL, \
     stock INTEGER NOT NULL, synced_by TEXT) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS search_index (built_by TEXT NOT NULL, word TEXT NOT NULL, sku TEXT NOT NULL, \
     PRIMARY KEY (built_by, word, sku)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS supplier_feed (position INTEGER PRIMARY KEY, sku TEXT NOT NULL, name TEXT NOT NULL, \
     price_cents INTEGER NOT NULL, stock INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, ordered_on TEXT NOT NULL, \
     net_cents INTEGER NOT NULL DEFAULT 0, tax_cents INTEGER NOT NULL DEFAULT 0, \
     total_cents INTEGER NOT NULL DEFAULT 0, paid_cents INTEGER NOT NULL DEFAULT 0, recalculated_by TEXT)",
    "CREATE TABLE IF NOT EXISTS order_lines (order_id INTEGER NOT NULL, line INTEGER NOT NULL, sku TEXT NOT NULL, \
     quantity INTEGER NOT NULL, price_cents INTEGER NOT NULL, PRIMARY KEY (order_id, line)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL, \
     amount_cents INTEGER NOT NULL, paid_on TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'open', matched_by TEXT)",
    "CREATE TABLE IF NOT EXISTS payments_set_aside (payment_id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL, \
     amount_cents INTEGER NOT NULL, reason TEXT NOT NULL, set_aside_by TEXT NOT NULL)",
];

/// 0 while the tables are empty.
pub(super) const IS_FILLED: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM orders LIMIT 1) AS any_order";

/// The rows: 50,000 orders with 1 to 4 lines, 4,000 products, 6,400 products in the supplier's catalogue (those and new
/// ones, every third at another price), 12,000 payments. Payment 6,001 names an order that does not exist.
pub(super) const FILL: &[&str] = &[
    "INSERT INTO supplier_feed (position, sku, name, price_cents, stock) \
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6400), \
     words(w) AS (SELECT json('[\"Steel\",\"Brass\",\"Copper\",\"Oak\",\"Glass\",\"Nylon\",\"Carbon\",\"Ceramic\"]')), \
     kinds(k) AS (SELECT json('[\"bolt\",\"hinge\",\"valve\",\"bracket\",\"panel\",\"gasket\",\"handle\",\"bearing\",\
     \"coupling\",\"spring\",\"filter\"]')) \
     SELECT i, printf('P-%05d', i), json_extract(w, '$[' || (i * 7919 % 8) || ']') || ' ' || \
     json_extract(k, '$[' || (i * 6007 % 11) || ']') || ' M' || (3 + i * 4409 % 38), \
     150 + i * 7907 % 19000 + (i % 3 = 0) * (50 + i * 5557 % 400), i * 3571 % 900 FROM n, words, kinds",
    "INSERT INTO products (sku, name, price_cents, stock) \
     SELECT sku, name, 150 + position * 7907 % 19000, stock FROM supplier_feed WHERE position <= 4000",
    "INSERT INTO orders (id, customer, ordered_on) \
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) \
     SELECT i, printf('C-%05d', 1 + i * 7919 % 20000), date('2024-01-01', '+' || (i / 50) || ' days') FROM n",
    "INSERT INTO order_lines (order_id, line, sku, quantity, price_cents) \
     SELECT o.id, l.line, printf('P-%05d', 1 + (o.id * 6007 + l.line * 971) % 4000), 1 + (o.id + l.line * 3) % 9, \
     150 + (1 + (o.id * 6007 + l.line * 971) % 4000) * 7907 % 19000 \
     FROM orders AS o JOIN (SELECT 1 AS line UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4) AS l \
     ON l.line <= 1 + o.id % 4",
    "INSERT INTO payments (id, order_id, amount_cents, paid_on) \
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) \
     SELECT i, CASE WHEN i = 6001 THEN 990001 ELSE i * 4 END, 500 + i * 7907 % 60000, \
     date('2024-01-15', '+' || (i / 12) || ' days') FROM n",
];
