//! A connection in the clear on its way through a proxy: until the way is open, it is
//! kept from the machine.

use mcpx_core::buffer::ByteQueue;

use super::settings::Proxy;
use super::tunnel::Tunnel;

#[derive(Debug)]
pub(super) struct Plain {
    pub(super) host: String,
    pub(super) port: u16,
    tunnel: Tunnel,
    out: ByteQueue,
}

impl Plain {
    pub(super) fn new(proxy: &Proxy, host: String, port: u16) -> Self {
        let tunnel = Tunnel::new(proxy, &host, port);
        Self { host, port, tunnel, out: ByteQueue::default() }
    }

    /// The proxy is there.
    pub(super) fn start(&mut self) {
        self.out.tail().extend_from_slice(self.tunnel.request());
    }

    /// Takes the proxy's answer from `bytes`. Says whether the way is open.
    pub(super) fn receive(&mut self, bytes: &mut &[u8]) -> Result<bool, String> {
        self.tunnel.receive(bytes)
    }

    pub(super) fn outgoing(&self) -> &[u8] {
        self.out.as_slice()
    }

    pub(super) fn sent(&mut self, n: usize) {
        self.out.take(n);
    }
}
