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
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                sender.send_modify(|count| *count += 1);
            }
            // Without signals to wait for, Ctrl-C ends the process as ever.
            std::future::pending::<()>().await;
        });
        Self { count }
    }

    /// A listener that has heard of none so far.
    pub(crate) fn from_now_on(&self) -> Self {
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
