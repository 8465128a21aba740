//! Transactions of several statements in SQL.

mod own_writes;
