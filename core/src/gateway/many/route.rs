//! Whose a request is: the server's whose name, or URI, it has.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::catalogue::List;
use super::merged::Servers;
use super::search::{self, Expose};
use crate::gateway::at::{At, ServerId};
use crate::gateway::machine::Gateway;
use crate::gateway::rewrite::{quoted, with};
use crate::gateway::tasks::{self, is_about_task};
use crate::jsonrpc::{code, get, get_path, string};
use crate::protocol::fault::Fault;
use crate::protocol::method;
use crate::protocol::revision::Era;
use crate::server::Request;

/// Where a request goes, and with which parameters if with others.
type Way = (ServerId, Option<String>);

impl Gateway {
    /// A request of a host, before many servers.
    pub(in crate::gateway) fn on_request_for_many(&mut self, request: Request<'_>) {
        match request.message.method() {
            method::SET_LEVEL if request.peer.is_some() => self.set_level(&request),
            method::LISTEN => self.listen(&request),
            method::TOOLS_CALL if self.many.config.expose == Expose::Search => {
                self.use_search(request)
            }
            method::TOOLS_CALL
            | method::PROMPTS_GET
            | method::RESOURCES_READ
            | method::SUBSCRIBE
            | method::UNSUBSCRIBE
            | method::COMPLETE => self.route(request),
            method::INITIALIZE | method::DISCOVER => self.consult(request),
            method if is_about_task(method) && request.revision.era() == Era::Modern => {
                let id = request.message.params().and_then(|params| get(params, "taskId"));
                let found = id.and_then(|id| self.hub.open_task(request.exchange, id));
                match found.filter(|(id, _)| self.is_present(*id)) {
                    Some((id, _)) => self.pass((id, None), request),
                    None if !self.has_tasks() => {
                        self.refuse(request.exchange, &Fault::method_not_found(method));
                    }
                    None if !tasks::are_known(request.message.params()) => {
                        self.refuse(request.exchange, &tasks::undeclared());
                    }
                    None => self.refuse(request.exchange, &tasks::unknown()),
                }
            }
            method if List::of(method).is_some() => self.consult(request),
            other => {
                let fault = Fault::method_not_found(other);
                self.refuse(request.exchange, &fault);
            }
        }
    }

    /// Sends a request to the server that it is for; if none is known to be, when more
    /// is known.
    pub(super) fn route(&mut self, request: Request<'_>) {
        match self.way(&request) {
            Some(way) => self.pass(way, request),
            None => self.consult(request),
        }
    }

    /// The same, when no more will be known for now.
    pub(super) fn route_known(&mut self, request: Request<'_>) {
        match self.way(&request).or_else(|| self.likely_way(&request)) {
            Some(way) => self.pass(way, request),
            None => {
                let fault = unknown(&request);
                self.refuse(request.exchange, &fault);
            }
        }
    }

    fn pass(&mut self, (id, params): Way, request: Request<'_>) {
        let request = match params {
            Some(params) => Request { message: request.message.with_params(&params), ..request },
            None => request,
        };
        let id = self.instance(id, request.exchange);
        let guest = request.peer.and_then(|peer| Some((peer, self.many.guests.get(&peer)?)));
        let Some(server) = self.servers.get_mut(&id) else { return };
        let mut at = At { server, hub: &mut self.hub };
        if let Some((peer, guest)) = guest {
            at.join(peer, guest);
        }
        at.on_host_request(request);
    }

    /// Where a request goes by the catalogue.
    fn way(&mut self, request: &Request<'_>) -> Option<Way> {
        let params = request.message.params()?;
        let name = named(request.message.method(), params)?;
        self.refresh(name.list);
        let servers = Servers { order: &self.many.order, all: &self.servers };
        let (id, own) = match name.list {
            List::Tools | List::Prompts => {
                self.many.merged.owner(name.list, &name.shown, &servers)?
            }
            List::Resources | List::Templates => return Some((self.holder(&name.shown)?, None)),
        };
        let changed = (own != name.shown).then(|| renamed(params, &name, own));
        Some((id, changed))
    }

    /// Who tells about changes of a resource.
    pub(super) fn teller(&mut self, uri: &str) -> Option<ServerId> {
        let holder = self.holder(uri).or_else(|| self.likely_holder(uri))?;
        let server = self.servers.get(&holder)?;
        let tells = server.catalogue.can(&["resources", "subscribe"]);
        (tells || !server.catalogue.is_known()).then_some(holder)
    }

    /// Whose a resource is: the server's that lists it, or a template for it.
    fn holder(&mut self, uri: &str) -> Option<ServerId> {
        self.refresh(List::Resources);
        self.refresh(List::Templates);
        let servers = Servers { order: &self.many.order, all: &self.servers };
        let merged = &self.many.merged;
        let mut lists = [List::Resources, List::Templates].into_iter();
        let listed = lists.find_map(|list| Some(merged.owner(list, uri, &servers)?.0));
        listed.or_else(|| merged.template(uri)).filter(|id| self.may_read(*id, uri))
    }

    /// Where a request goes that nobody lists: by the prefix of its name, the scheme of
    /// its URI, or because there is only one that it can be for.
    fn likely_way(&mut self, request: &Request<'_>) -> Option<Way> {
        let params = request.message.params()?;
        let name = named(request.message.method(), params)?;
        match name.list {
            List::Tools | List::Prompts => {
                let servers = self.servers();
                let found = servers.iter().filter_map(|server| {
                    let own = match self.many.has_several() {
                        true => self.many.config.naming.strip(&server.config.name, &name.shown)?,
                        false => &name.shown,
                    };
                    server.filter(name.list).allows(own).then_some((server.id, own))
                });
                // Of `a` and `a__b`, the latter.
                let (id, own) = found.min_by_key(|(_, own)| own.len())?;
                Some((id, Some(renamed(params, &name, own))))
            }
            List::Resources | List::Templates => Some((self.likely_holder(&name.shown)?, None)),
        }
    }

    fn likely_holder(&self, uri: &str) -> Option<ServerId> {
        let merged = &self.many.merged;
        let id = merged.scheme(uri).or_else(|| self.only_with(List::Resources));
        id.filter(|id| self.may_read(*id, uri))
    }

    fn may_read(&self, id: ServerId, uri: &str) -> bool {
        self.servers.get(&id).is_some_and(|server| server.filter(List::Resources).allows(uri))
    }

    /// The only server that may have such a list.
    fn only_with(&self, list: List) -> Option<ServerId> {
        let servers = self.servers();
        let having = servers.iter().filter(|server| {
            !server.catalogue.is_known() || server.catalogue.can(&[list.capability()])
        });
        let ids: Vec<ServerId> = having.map(|server| server.id).take(2).collect();
        ids.first().copied().filter(|_| ids.len() == 1)
    }

    /// A call where hosts see the two tools of the search instead of all.
    fn use_search(&mut self, request: Request<'_>) {
        let params = request.message.params().unwrap_or("{}");
        match get(params, "name").and_then(string).as_deref() {
            Some(search::SEARCH) => self.consult(request),
            Some(search::CALL) => match search::inner(params) {
                Some(params) => {
                    let message = request.message.with_params(&params);
                    // Its header fields are about a call of ours.
                    self.route(Request { message, fields: None, ..request });
                }
                None => {
                    let why = "arguments.name is missing: the name of a tool that was found";
                    self.refuse(request.exchange, &Fault::new(code::INVALID_PARAMS, why));
                }
            },
            // Whoever knows a name may use it.
            _ => self.route(request),
        }
    }
}

/// What a request names.
struct Name {
    list: List,
    shown: String,
    /// Whether it is in a reference.
    by_ref: bool,
}

fn named(method: &str, params: &str) -> Option<Name> {
    let text = |path: &[&str]| get_path(params, path).and_then(string).map(|it| it.to_string());
    let (list, path, by_ref): (List, &[&str], bool) = match method {
        method::TOOLS_CALL => (List::Tools, &["name"], false),
        method::PROMPTS_GET => (List::Prompts, &["name"], false),
        method::COMPLETE if text(&["ref", "type"]).as_deref() == Some("ref/prompt") => {
            (List::Prompts, &["ref", "name"], true)
        }
        method::COMPLETE => (List::Templates, &["ref", "uri"], true),
        _ => (List::Resources, &["uri"], false),
    };
    Some(Name { list, shown: text(path)?, by_ref })
}

/// The parameters with the server's own name in the place of the one that hosts see.
fn renamed(params: &str, name: &Name, own: &str) -> String {
    if !name.by_ref {
        return with(params, "name", &quoted(own));
    }
    let reference = with(get(params, "ref").unwrap_or("{}"), "name", &quoted(own));
    with(params, "ref", &reference)
}

/// The error for a request that is nobody's.
fn unknown(request: &Request<'_>) -> Fault {
    let params = request.message.params().unwrap_or("{}");
    let Some(name) = named(request.message.method(), params) else {
        return Fault::new(code::INVALID_PARAMS, "It does not say what it is for");
    };
    let shown = &name.shown;
    match name.list {
        List::Tools => Fault::new(code::INVALID_PARAMS, &alloc::format!("Unknown tool: {shown}")),
        List::Prompts => {
            Fault::new(code::INVALID_PARAMS, &alloc::format!("Unknown prompt: {shown}"))
        }
        List::Resources | List::Templates => {
            let legacy_read = request.revision.era() == Era::Legacy
                && request.message.method() == method::RESOURCES_READ;
            let code = if legacy_read { code::RESOURCE_NOT_FOUND } else { code::INVALID_PARAMS };
            let data = with("{}", "uri", &quoted(shown));
            Fault::with_data(code, &alloc::format!("Unknown resource: {shown}"), &data)
        }
    }
}
