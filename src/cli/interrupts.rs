//! Ctrl-C.

use tokio::sync::watch;

/// How often Ctrl-C was pressed. While it is listened to, it does not end the process.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    count: watch::Receiver<u64>,
}

impl Interrupts {
    /// Listens from now on, in a task of the runtime.
    pub(crate) fn listen() -> Self {
        let (sender, count) = watch::channel(0);
        let mut signals = Signals::listen();
        tokio::spawn(async move {
            while signals.next().await {
                sender.send_modify(|count| *count += 1);
            }
            // Without signals to wait for, Ctrl-C ends the process as ever.
            std::future::pending::<()>().await;
        });
        Self { count }
    }

    /// A listener that has heard of none so far.
    pub(crate) fn starting_now(&self) -> Self {
        let mut count = self.count.clone();
        count.mark_unchanged();
        Self { count }
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        if self.count.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// The signals themselves, of one listener, which misses none that comes while another is counted.
#[cfg(unix)]
struct Signals(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Signals {
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self(signal(SignalKind::interrupt()).ok())
    }

    /// Waits for the next one; whether there are any to wait for.
    async fn next(&mut self) -> bool {
        match &mut self.0 {
            Some(signals) => signals.recv().await.is_some(),
            None => false,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> Self {
        Self
    }

    /// Waits for the next one; whether there are any to wait for.
    async fn next(&mut self) -> bool {
        tokio::signal::ctrl_c().await.is_ok()
    }
}
