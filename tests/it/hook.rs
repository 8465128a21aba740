//! The commit hook for deltalake: what its operations do to each other with it and without.

mod allowed;
mod commit_builder;
mod guard;
mod law;
mod log_store;
mod refused;
mod sides;
mod values;
