//! Telling hosts what has changed in the catalogue: together, and only of lists that any
//! has looked at or listens to (SUB-01).

use alloc::vec::Vec;
use core::time::Duration;

use super::catalogue::List;
use crate::gateway::machine::Gateway;
use crate::gateway::relisten::LISTS;
use crate::server::{PeerId, Route};

/// Changes are collected for so long.
const TOGETHER: Duration = Duration::from_millis(100);

impl Gateway {
    /// Something of what servers offer is known that was not before.
    pub(in crate::gateway) fn on_catalogue_changed(&mut self) {
        for list in List::ALL {
            let changed = core::mem::take(&mut self.hub.changed[list as usize]);
            let announced = core::mem::take(&mut self.hub.announced[list as usize]);
            if changed {
                self.many.merged.outdate(list);
            }
            if (changed || announced) && self.many.served[list as usize] {
                self.many.news[list as usize] = true;
                self.many.tell_at.get_or_insert(self.hub.now + TOGETHER);
            }
        }
        self.share_knowledge();
        self.answer_waiting();
    }

    /// Does what is due.
    pub(in crate::gateway) fn tick_many(&mut self) {
        self.answer_waiting();
        self.check_listens();
        if self.many.tell_at.take_if(|at| *at <= self.hub.now).is_none() {
            return;
        }
        let news = core::mem::take(&mut self.many.news);
        let has_news = |notice: &str| {
            List::ALL.iter().any(|list| news[*list as usize] && list.notice() == notice)
        };
        for (_, notice, _) in LISTS.iter().filter(|(_, notice, _)| has_news(notice)) {
            self.tell(notice);
        }
    }

    fn tell(&mut self, notice: &str) {
        let guests = self.many.guests.iter().filter(|(_, guest)| guest.ready);
        let guests: Vec<PeerId> = guests.map(|(peer, _)| *peer).collect();
        for peer in guests {
            self.hub.endpoint.notify(Route::Peer(peer), notice, None);
        }
        self.tell_listens(notice);
    }

    /// Whether there are hosts that would hear of changes.
    pub(super) fn look_for_hosts(&mut self) {
        self.hub.attentive = !self.many.guests.is_empty() || !self.hub.listens.is_empty();
    }
}
