//! The demo's business tables and how they are filled: statements that SQLite and PostgreSQL both take, so that the demo is
//! the same company on either.
//!
//! Every value is computed from the row's number, so that the rows are the same on every machine. Numbers with a large
//! prime factor stand for chance. Databases reckon with dates in ways of their own, so the days come from a table.

use crate::core::effect::Effect;
use jiff::ToSpan as _;
use jiff::civil::{Date, date};

/// The tables; made where they are missing.
pub(super) const MAKE: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS customers (number TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL, \
     city TEXT NOT NULL, country TEXT NOT NULL, credit_limit_cents BIGINT NOT NULL, since TEXT, \
     times_written INTEGER NOT NULL, created_by TEXT NOT NULL, written_by TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS customers_rejected (import TEXT NOT NULL, line INTEGER NOT NULL, reason TEXT NOT NULL, \
     source TEXT NOT NULL, PRIMARY KEY (import, line))",
    "CREATE TABLE IF NOT EXISTS products (sku TEXT PRIMARY KEY, name TEXT NOT NULL, price_cents INTEGER NOT NULL, \
     stock INTEGER NOT NULL, synced_by TEXT)",
    "CREATE TABLE IF NOT EXISTS search_index (built_by TEXT NOT NULL, word TEXT NOT NULL, sku TEXT NOT NULL, \
     PRIMARY KEY (built_by, word, sku))",
    "CREATE TABLE IF NOT EXISTS calendar (day INTEGER PRIMARY KEY, written TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS supplier_feed (position INTEGER PRIMARY KEY, sku TEXT NOT NULL, name TEXT NOT NULL, \
     price_cents INTEGER NOT NULL, stock INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, ordered_on TEXT NOT NULL, \
     net_cents INTEGER NOT NULL DEFAULT 0, tax_cents INTEGER NOT NULL DEFAULT 0, \
     total_cents INTEGER NOT NULL DEFAULT 0, paid_cents INTEGER NOT NULL DEFAULT 0, recalculated_by TEXT)",
    "CREATE TABLE IF NOT EXISTS order_lines (order_id INTEGER NOT NULL, line INTEGER NOT NULL, sku TEXT NOT NULL, \
     quantity INTEGER NOT NULL, price_cents INTEGER NOT NULL, PRIMARY KEY (order_id, line))",
    "CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL, \
     amount_cents INTEGER NOT NULL, paid_on TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'open', matched_by TEXT)",
    "CREATE TABLE IF NOT EXISTS payments_set_aside (payment_id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL, \
     amount_cents INTEGER NOT NULL, reason TEXT NOT NULL, set_aside_by TEXT NOT NULL)",
];

/// 0 while the tables are empty.
pub(super) const IS_FILLED: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM orders LIMIT 1) AS any_order";

/// The first day of the company, and how many days it has.
const FIRST_DAY: Date = date(2024, 1, 1);
const DAYS: i32 = 1_100;

/// The days by their number.
pub(super) fn days() -> Effect {
    let row = |day: i32| vec![i64::from(day).into(), (FIRST_DAY + day.days()).to_string().into()];
    Effect { sql: "INSERT INTO calendar (day, written) VALUES ($1, $2)", rows: (0..DAYS).map(row).collect() }
}

/// The rows: 50,000 orders with 1 to 4 lines, 4,000 products, 6,400 products in the supplier's catalogue (those and new
/// ones, every third at another price), 12,000 payments. Payment 6,001 names an order that does not exist. The days come
/// before them.
pub(super) const FILL: &[&str] = &[
    "INSERT INTO supplier_feed (position, sku, name, price_cents, stock) \
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6400), \
     stuffs(s, stuff) AS (VALUES (0, 'Steel'), (1, 'Brass'), (2, 'Copper'), (3, 'Oak'), (4, 'Glass'), (5, 'Nylon'), \
     (6, 'Carbon'), (7, 'Ceramic')), \
     kinds(k, kind) AS (VALUES (0, 'bolt'), (1, 'hinge'), (2, 'valve'), (3, 'bracket'), (4, 'panel'), (5, 'gasket'), \
     (6, 'handle'), (7, 'bearing'), (8, 'coupling'), (9, 'spring'), (10, 'filter')) \
     SELECT i, 'P-' || substr(CAST(100000 + i AS TEXT), 2), stuff || ' ' || kind || ' M' || (3 + i * 4409 % 38), \
     150 + i * 7907 % 19000 + CASE WHEN i % 3 = 0 THEN 50 + i * 5557 % 400 ELSE 0 END, i * 3571 % 900 \
     FROM n JOIN stuffs ON s = i * 7919 % 8 JOIN kinds ON k = i * 6007 % 11",
    "INSERT INTO products (sku, name, price_cents, stock) \
     SELECT sku, name, 150 + position * 7907 % 19000, stock FROM supplier_feed WHERE position <= 4000",
    "INSERT INTO orders (id, customer, ordered_on) \
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) \
     SELECT i, 'C-' || substr(CAST(100001 + i * 7919 % 20000 AS TEXT), 2), written \
     FROM n JOIN calendar ON day = i / 50",
    "INSERT INTO order_lines (order_id, line, sku, quantity, price_cents) \
     SELECT o.id, l.line, 'P-' || substr(CAST(100001 + (o.id * 6007 + l.line * 971) % 4000 AS TEXT), 2), \
     1 + (o.id + l.line * 3) % 9, 150 + (1 + (o.id * 6007 + l.line * 971) % 4000) * 7907 % 19000 \
     FROM orders AS o JOIN (SELECT 1 AS line UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4) AS l \
     ON l.line <= 1 + o.id % 4",
    "INSERT INTO payments (id, order_id, amount_cents, paid_on) \
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) \
     SELECT i, CASE WHEN i = 6001 THEN 990001 ELSE i * 4 END, 500 + i * 7907 % 60000, written \
     FROM n JOIN calendar ON day = 14 + i / 12",
];
