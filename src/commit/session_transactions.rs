//! Which transaction a session is in, and in which one a statement was planned.
//!
//! The transactions live in an extension of the session's configuration, by session id: whatever
//! shares the session's state (clones of the context, frames, plans) shares its transaction.
//! `SessionContext::new_with_state` copies both: the transaction also knows the context that began
//! it, and statements, BEGIN, COMMIT and ROLLBACK by [`sql`](crate::sql) from another one with the
//! same id are refused. A session that was put up by [`register_on`](crate::register_on) has
//! transactions of its own.

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
    open: Mutex<HashMap<String, Open>>,
}

/// What tells one context from another, which may have the same id: its shared state.
pub type ContextState = Arc<dyn Any + Send + Sync>;

#[derive(Debug)]
struct Open {
    transaction: Arc<OpenTransaction>,
    begun_by: Weak<dyn Any + Send + Sync>,
}

impl SessionTransactions {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The transaction of `session_id`.
    fn current(&self, session_id: &str) -> Option<Arc<OpenTransaction>> {
        let open = self.open();
        open.get(session_id)
            .map(|open| Arc::clone(&open.transaction))
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
        self.all.current(&self.session_id)
    }

    /// The same for who asks by `context`.
    ///
    /// # Errors
    ///
    /// `Invalid` if another context with the same id began it; if that one is gone, the
    /// transaction is rolled back as well.
    pub fn current_of(&self, context: &ContextState) -> Result<Option<Arc<OpenTransaction>>> {
        let Some((transaction, begun_by)) = self
            .all
            .open()
            .get(&self.session_id)
            .map(|open| (Arc::clone(&open.transaction), Weak::clone(&open.begun_by)))
        else {
            return Ok(None);
        };
        if Weak::ptr_eq(&begun_by, &Arc::downgrade(context)) {
            return Ok(Some(transaction));
        }
        if begun_by.strong_count() == 0 {
            // Nobody can end it any more; with its last owner it is rolled back.
            self.all.open().remove(&self.session_id);
            return Err(Error::invalid(
                "the context that began this session's transaction is gone, and the transaction \
                 was rolled back; keep one SessionContext, or clones of it, from BEGIN to COMMIT",
            ));
        }
        Err(Error::invalid(
            "another session with the same id is in a transaction: both were made from one \
             SessionState; make it from delta_disjoint::register_on(state), which gives it \
             transactions of its own",
        ))
    }

    /// Puts the session into `transaction`.
    ///
    /// # Errors
    ///
    /// `Invalid` if it is in one, or another context with the same id is.
    pub fn begin(&self, transaction: OpenTransaction, context: &ContextState) -> Result<()> {
        self.current_of(context)?;
        match self.all.open().entry(self.session_id.clone()) {
            Entry::Occupied(_) => Err(Error::invalid(
                "the session is in a transaction already; COMMIT or ROLLBACK it first, since \
                 transactions do not nest",
            )),
            Entry::Vacant(place) => {
                place.insert(Open {
                    transaction: Arc::new(transaction),
                    begun_by: Arc::downgrade(context),
                });
                Ok(())
            }
        }
    }

    /// Takes the session out of its transaction, which nothing can join from now on.
    ///
    /// # Errors
    ///
    /// `Invalid` if it is in none, or it was begun by another context with the same id;
    /// `statement` names who asks.
    pub fn end(&self, statement: &str, context: &ContextState) -> Result<Arc<OpenTransaction>> {
        self.current_of(context)?;
        let ended = self.all.open().remove(&self.session_id);
        ended.map(|open| open.transaction).ok_or_else(|| {
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

    /// Whether the statement belongs to a transaction, which may have ended.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
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
            .and_then(|all| all.current(&self.session_id));
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

    fn context() -> ContextState {
        Arc::new(())
    }

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
        let context = &context();
        let begin = || {
            a.begin(OpenTransaction::default(), context)
                .expect("begins")
        };
        let outside = a.ticket(None);
        assert!(outside.check().is_ok());
        begin();
        let first = a.ticket(a.current().as_ref());
        assert!(first.check().is_ok());
        assert!(b.ticket(None).check().is_ok(), "another session");
        let error = outside.check().expect_err("planned before");
        assert_eq!(error.kind(), ErrorKind::Unavailable);

        a.end("COMMIT", context).expect("ends");
        assert!(outside.check().is_ok());
        assert!(first.check().is_err(), "after the end");
        begin();
        assert!(first.check().is_err(), "in the next transaction");
    }

    #[test]
    fn transactions_do_not_nest_and_end_once() {
        let (scope, context) = (scope("a", &Arc::default()), &context());
        let begin = || scope.begin(OpenTransaction::default(), context);
        assert!(scope.end("COMMIT", context).is_err());
        begin().expect("begins");
        assert!(begin().is_err());
        assert!(scope.end("ROLLBACK", context).is_ok());
        assert!(scope.end("ROLLBACK", context).is_err());
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
