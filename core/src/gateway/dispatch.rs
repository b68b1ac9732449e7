//! Whose a message of a host is.

use super::at::{Asker, At};
use super::machine::Gateway;
use crate::server::{Event, ExchangeId};

impl Gateway {
    pub(super) fn on_host_event(&mut self, event: Event<'_>) {
        match event {
            Event::Request(request) if self.hub.merged => self.on_request_for_many(request),
            Event::Request(request) => {
                if let Some(mut at) = self.only(request.exchange) {
                    at.on_host_request(request);
                }
            }
            Event::Notification { peer, message } if self.hub.merged => {
                self.on_guest_notice(peer, &message);
            }
            Event::Notification { peer, message } => {
                self.each(|at| at.on_notification(peer, &message));
            }
            Event::Answer { ask, message } => match self.hub.asks.remove(&ask) {
                Some(Asker::Link(id, raw)) => {
                    if let Some(mut at) = self.behind(id) {
                        at.on_answer_from_host(id, &raw, &message);
                    }
                }
                Some(Asker::Round(server, exchange, key)) => {
                    if let Some(mut at) = self.at(server) {
                        at.on_answer_in_round(exchange, &key, &message);
                    }
                }
                None => {}
            },
            Event::Cancelled { exchange, reason } => self.cancel(exchange, reason.as_deref()),
            Event::Ended { peer } => {
                self.on_guest_gone(peer);
                self.each(|at| at.on_host_gone(peer));
            }
        }
    }

    /// The only server, for whoever makes this request.
    fn only(&mut self, exchange: ExchangeId) -> Option<At<'_>> {
        let id = *self.many.order.first()?;
        let id = self.instance(id, exchange);
        self.at(id)
    }

    /// Nobody waits for the answer to a host's request any more.
    pub(super) fn cancel(&mut self, exchange: ExchangeId, reason: Option<&str>) {
        self.many.forget_waiting(exchange);
        self.unlisten(exchange);
        self.each(|at| at.cancel_call(exchange, reason));
    }
}
