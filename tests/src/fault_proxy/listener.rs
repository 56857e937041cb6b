//! The proxy's listener: open, closed, or deaf.

use std::{collections::HashSet, future, io, net::SocketAddr, sync::Arc, time::Duration};

use rustix::net::listen;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{Shared, Traffic, connection};

const BACKLOG: i32 = 1024;

/// Over loopback the kernel answers within `connect`: who has to wait this long was not answered.
const UNANSWERED: Duration = Duration::from_millis(100);

/// What the proxy's owner wants from now on.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) traffic: Traffic,
    pub(super) done: oneshot::Sender<io::Result<()>>,
}

/// Accepts connections and follows orders until there can be no more of them.
pub(super) async fn run(port: u16, target: u16, shared: Arc<Shared>, mut orders: mpsc::UnboundedReceiver<Order>) {
    let mut listening =
        Listening { port, traffic: Traffic::Refuse, listener: None, fillers: Vec::new(), ours: HashSet::new() };
    loop {
        tokio::select! {
            order = orders.recv() => {
                let Some(Order { traffic, done }) = order else { return };
                let obeyed = listening.obey(traffic).await;
                shared.traffic.send_replace(traffic);
                // An error means that the owner waits no longer.
                let _ = done.send(obeyed);
            }
            client = listening.accept() => {
                tokio::spawn(connection::run(client, target, Arc::clone(&shared)));
            }
        }
    }
}

struct Listening {
    port: u16,
    traffic: Traffic,
    listener: Option<TcpListener>,
    /// Connections that fill the backlog, so that the kernel drops whatever else arrives.
    fillers: Vec<TcpStream>,
    /// The fillers' addresses, until they were accepted.
    ours: HashSet<SocketAddr>,
}

impl Listening {
    async fn obey(&mut self, traffic: Traffic) -> io::Result<()> {
        self.traffic = traffic;
        self.fillers.clear();
        if traffic == Traffic::Refuse {
            self.listener = None;
            self.ours.clear();
            return Ok(());
        }
        let listener = match self.listener.take() {
            Some(listener) => listener,
            None => TcpListener::bind(("127.0.0.1", self.port)).await?,
        };
        // Linux lets a listener change its backlog. A closed one would refuse for a moment.
        listen(&listener, if traffic == Traffic::Drop { 0 } else { BACKLOG })?;
        self.listener = Some(listener);
        if traffic == Traffic::Drop {
            while let Ok(filler) = timeout(UNANSWERED, TcpStream::connect(("127.0.0.1", self.port))).await {
                let filler = filler?;
                self.ours.insert(filler.local_addr()?);
                self.fillers.push(filler);
            }
        }
        Ok(())
    }

    /// The next connection of somebody else.
    async fn accept(&mut self) -> TcpStream {
        let Some(listener) = self.listener.as_ref().filter(|_| self.traffic != Traffic::Drop) else {
            return future::pending().await;
        };
        loop {
            // The errors of `accept` are those of one connection that has gone already.
            if let Ok((client, address)) = listener.accept().await
                && !self.ours.remove(&address)
            {
                return client;
            }
        }
    }
}
