//! Sessions: what `register` keeps of a builder, options, and what is reported about conflicts.

mod log_store;
mod options;
mod planner;
mod tracing_events;
