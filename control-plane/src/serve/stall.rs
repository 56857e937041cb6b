//! A connection whose peer must take what it is sent.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// The longest that it takes until everything written so far is taken, once a write has to wait. Answers are small, so
/// whoever asks on without reading them is no caller; HTTP/2 finds such by its pings, HTTP/1 by nothing else.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Fails writes after [`WRITE_TIMEOUT`]. A byte now and then doesn't count: only a flush does, which is when all are
/// taken.
pub(super) struct Unstalled<I> {
    inner: I,
    /// Since the first write that had to wait and that no flush has followed.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<I> Unstalled<I> {
    pub(super) const fn new(inner: I) -> Self {
        Self { inner, waits: None }
    }

    fn judge<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            return written;
        }
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        match waits.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Unstalled<I> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Unstalled<I> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write(context, bytes);
        this.judge(written, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write_vectored(context, slices);
        this.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.inner).poll_flush(context);
        if flushed.is_ready() {
            this.waits = None;
        }
        this.judge(flushed, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.inner).poll_shutdown(context);
        this.judge(shut, context)
    }
}
