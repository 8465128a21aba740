//! Which transaction a session is in, and in which one a statement was planned.
//!
//! The transactions live in an extension of the session's configuration, by session id: whatever
//! shares the session's state (clones of the context, frames, plans) shares its transaction, and a
//! session that is derived from another one has an id, hence a transaction, of its own.

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use datafusion::prelude::SessionConfig;

use super::open_transaction::OpenTransaction;
use crate::error::{Error, Result};
use crate::read::collector::{Permit, ReadCollector};

/// The open transactions of the sessions that share a configuration.
#[derive(Debug, Default)]
pub struct SessionTransactions {
    open: Mutex<HashMap<String, Arc<OpenTransaction>>>,
}

impl SessionTransactions {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<OpenTransaction>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session, as far as transactions go.
#[derive(Debug, Clone)]
pub struct SessionScope {
    all: Arc<SessionTransactions>,
    session_id: String,
}

impl SessionScope {
    /// The scope of the session with `config` and `session_id`; nothing where this crate was not
    /// registered on it.
    pub fn of(config: &SessionConfig, session_id: &str) -> Option<Self> {
        Some(Self {
            all: config.get_extension::<SessionTransactions>()?,
            session_id: session_id.to_owned(),
        })
    }

    /// The transaction that the session is in.
    pub fn current(&self) -> Option<Arc<OpenTransaction>> {
        self.all.open().get(&self.session_id).cloned()
    }

    /// Puts the session into `transaction`.
    ///
    /// # Errors
    ///
    /// `Invalid` if it is in one.
    pub fn begin(&self, transaction: OpenTransaction) -> Result<()> {
        match self.all.open().entry(self.session_id.clone()) {
            Entry::Occupied(_) => Err(Error::invalid(
                "the session is in a transaction already; COMMIT or ROLLBACK it first, since \
                 transactions do not nest",
            )),
            Entry::Vacant(place) => {
                place.insert(Arc::new(transaction));
                Ok(())
            }
        }
    }

    /// Takes the session out of its transaction, which nothing can join from now on.
    ///
    /// # Errors
    ///
    /// `Invalid` if it is in none; `statement` names who asks.
    pub fn end(&self, statement: &str) -> Result<Arc<OpenTransaction>> {
        self.all.open().remove(&self.session_id).ok_or_else(|| {
            Error::invalid(format!(
                "{statement}: the session is in no transaction; every statement outside of BEGIN \
                 … COMMIT commits by itself"
            ))
        })
    }

    /// The ticket of a statement that is planned in `transaction` or, where there is none, outside
    /// of any.
    pub fn ticket(&self, transaction: Option<&Arc<OpenTransaction>>) -> Ticket {
        Ticket {
            all: Arc::downgrade(&self.all),
            session_id: self.session_id.clone(),
            transaction: transaction.map(Arc::downgrade),
        }
    }
}

/// Binds a statement to the transaction that it was planned in: it starts nowhere else.
///
/// A statement planned before BEGIN would show rows of another version than the transaction's, and
/// change the table beside it; one planned in a transaction that has ended would show rows that no
/// check covers.
// Weak, since the transaction holds the collectors of its statements, and those their tickets.
#[derive(Debug)]
pub struct Ticket {
    all: Weak<SessionTransactions>,
    session_id: String,
    transaction: Option<Weak<OpenTransaction>>,
}

impl Ticket {
    /// The ticket of the statement with `collector`, if its session can have transactions.
    pub fn of(collector: &ReadCollector) -> Option<&Self> {
        (collector.permit()? as &dyn Any).downcast_ref()
    }

    /// The transaction the statement belongs to; nothing if it commits by itself.
    ///
    /// # Errors
    ///
    /// `Unavailable` if that transaction has ended.
    pub fn transaction(&self) -> Result<Option<Arc<OpenTransaction>>> {
        match &self.transaction {
            None => Ok(None),
            Some(transaction) => transaction.upgrade().map(Some).ok_or_else(ended),
        }
    }
}

impl Permit for Ticket {
    fn check(&self) -> Result<()> {
        let planned_in = self.transaction()?;
        let current = self
            .all
            .upgrade()
            .and_then(|all| all.open().get(&self.session_id).cloned());
        match (planned_in, current) {
            (None, None) => Ok(()),
            (Some(planned_in), Some(current)) if Arc::ptr_eq(&planned_in, &current) => Ok(()),
            (None, Some(_)) => Err(Error::unavailable(
                "the statement was planned before the transaction began; run it again in the \
                 transaction",
            )),
            (Some(_), _) => Err(ended()),
        }
    }
}

pub(super) fn ended() -> Error {
    Error::unavailable(
        "the transaction of this statement has ended; nothing of the statement was kept, run it \
         again",
    )
}

/// The text of a statement, for messages; an extension of the configuration it runs with.
#[derive(Debug)]
pub struct StatementText(Arc<str>);

impl StatementText {
    /// `text` in one line, cut where it gets long.
    pub fn new(text: &str) -> Self {
        const MOST: usize = 120;
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = line.trim_end_matches([' ', ';']);
        let mut characters = line.chars();
        let mut short: String = characters.by_ref().take(MOST).collect();
        if characters.next().is_some() {
            short.push('…');
        }
        Self(short.into())
    }

    /// The text.
    pub fn text(&self) -> &Arc<str> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn scope(id: &str, all: &Arc<SessionTransactions>) -> SessionScope {
        SessionScope {
            all: Arc::clone(all),
            session_id: id.to_owned(),
        }
    }

    #[test]
    fn statement_starts_only_where_it_was_planned() {
        let all = Arc::<SessionTransactions>::default();
        let (a, b) = (scope("a", &all), scope("b", &all));
        let outside = a.ticket(None);
        assert!(outside.check().is_ok());
        a.begin(OpenTransaction::default()).expect("begins");
        let first = a.ticket(a.current().as_ref());
        assert!(first.check().is_ok());
        assert!(b.ticket(None).check().is_ok(), "another session");
        let error = outside.check().expect_err("planned before");
        assert_eq!(error.kind(), ErrorKind::Unavailable);

        a.end("COMMIT").expect("ends");
        assert!(outside.check().is_ok());
        assert!(first.check().is_err(), "after the end");
        a.begin(OpenTransaction::default()).expect("begins");
        assert!(first.check().is_err(), "in the next transaction");
    }

    #[test]
    fn transactions_do_not_nest_and_end_once() {
        let scope = scope("a", &Arc::default());
        assert!(scope.end("COMMIT").is_err());
        scope.begin(OpenTransaction::default()).expect("begins");
        assert!(scope.begin(OpenTransaction::default()).is_err());
        assert!(scope.end("ROLLBACK").is_ok());
        assert!(scope.end("ROLLBACK").is_err());
    }

    #[test]
    fn statement_text_is_one_short_line() {
        assert_eq!(
            StatementText::new(" UPDATE t\n  SET x = 1 ;\n")
                .text()
                .as_ref(),
            "UPDATE t SET x = 1"
        );
        let long = StatementText::new(&"é".repeat(500));
        assert_eq!(long.text().chars().count(), 121);
    }
}
