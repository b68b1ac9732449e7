//! Telling hosts what has changed in the catalogue: together, and only what they have
//! seen (SUB-01).

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
            if self.hub.changed[list as usize] {
                self.many.merged.outdate(list);
            }
        }
        let changed = self.hub.changed.iter().zip(self.many.served);
        if changed.into_iter().any(|(changed, served)| *changed && served) {
            self.many.tell_at.get_or_insert(self.hub.now + TOGETHER);
        }
        self.answer_waiting();
    }

    /// Does what is due.
    pub(in crate::gateway) fn tick_many(&mut self) {
        self.answer_waiting();
        self.check_listens();
        if self.many.tell_at.take_if(|at| *at <= self.hub.now).is_none() {
            return;
        }
        let mut told = [false; 3];
        for list in List::ALL {
            let changed = core::mem::take(&mut self.hub.changed[list as usize]);
            let served = &mut self.many.served[list as usize];
            let place = LISTS.iter().position(|(_, notice, _)| *notice == list.notice());
            if let Some(place) = place.filter(|_| changed && *served) {
                told[place] = true;
                *served = false;
            }
        }
        for ((_, notice, _), _) in LISTS.iter().zip(told).filter(|(_, told)| *told) {
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
