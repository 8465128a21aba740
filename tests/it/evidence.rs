//! Why a commit is refused: codes, numbers and advice, as data and in the message, and the same
//! without a statement.

mod agreement;
mod command;
mod level_rules;
mod log;
mod message;
mod more_types;
mod net_effect_rules;
mod reasons;
mod statistics_rules;
