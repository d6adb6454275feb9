//! Routes: static routes, and route lookups (rtnetlink(7), RTM_*ROUTE).

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::address::family;
use super::socket::{Attempt, RouteSocket};
use crate::Result;

/// Initial windows of new connections over a route, in segments; where absent the kernel's defaults
/// (ip-route(8), `initcwnd` and `initrwnd`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InitialWindows {
    /// Initial congestion window (RTAX_INITCWND).
    pub send: Option<u32>,
    /// Initial receive window (RTAX_INITRWND).
    pub receive: Option<u32>,
}

impl RouteSocket {
    /// Adds a static route: packets to `network`/`prefix_len` go to the neighbour `gateway`.
    /// # Errors
    /// When the gateway is on no link of the namespace, or without CAP_NET_ADMIN.
    pub fn add_route(&mut self, network: IpAddr, prefix_len: u8, gateway: IpAddr) -> Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(network);
        message.header.destination_prefix_length = prefix_len;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(route_address(network)),
            RouteAttribute::Gateway(route_address(gateway)),
        ];
        let attempt = Attempt { call: "add route to", object: &network };
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewRoute(message), flags, &attempt)
    }

    /// Sets the initial windows of every route of the namespace, without those that are `None`, and
    /// without routes to link-local addresses and IPv6 addresses of this host.
    /// # Errors
    /// When a route cannot be replaced, or without CAP_NET_ADMIN.
    pub fn set_initial_windows(&mut self, windows: InitialWindows) -> Result<()> {
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            let attempt = Attempt { call: "list", object: &"routes" };
            let replies = self.dump_objects(RouteNetlinkMessage::GetRoute(message), &attempt)?;
            let routes = replies.into_iter().filter_map(|reply| match reply {
                RouteNetlinkMessage::NewRoute(route) => Some(route),
                _ => None,
            });
            for route in routes.filter(takes_windows) {
                let object = destination(&route);
                let attempt = Attempt { call: "set initial window of route to", object: &object };
                let message = RouteNetlinkMessage::NewRoute(with_windows(route, windows));
                self.change(message, NLM_F_REPLACE, &attempt)?;
            }
        }
        Ok(())
    }

    /// The initial windows of connections to `addr`.
    /// # Errors
    /// When there is no route.
    pub fn initial_windows(&mut self, addr: IpAddr) -> Result<InitialWindows> {
        let mut windows = InitialWindows::default();
        for reply in &self.look_up(addr)? {
            let RouteNetlinkMessage::NewRoute(route) = reply else { continue };
            for metric in route.attributes.iter().filter_map(metrics_of).flatten() {
                match metric {
                    RouteMetric::InitCwnd(segments) => windows.send = Some(*segments),
                    RouteMetric::InitRwnd(segments) => windows.receive = Some(*segments),
                    _ => {}
                }
            }
        }
        Ok(windows)
    }

    /// Index of the outgoing interface of the route to `addr`.
    /// # Errors
    /// When there is no route.
    pub fn route_interface(&mut self, addr: IpAddr) -> Result<u32> {
        self.next_hop(addr).map(|(interface, _)| interface)
    }

    /// Outgoing interface and next hop of the route to `addr`.
    /// # Errors
    /// When there is no route.
    pub fn next_hop(&mut self, addr: IpAddr) -> Result<(u32, IpAddr)> {
        let replies = self.look_up(addr)?;
        let gateway = replies.iter().find_map(|reply| {
            let RouteNetlinkMessage::NewRoute(route) = reply else { return None };
            route.attributes.iter().find_map(|attribute| match attribute {
                RouteAttribute::Gateway(RouteAddress::Inet(addr)) => Some(IpAddr::V4(*addr)),
                RouteAttribute::Gateway(RouteAddress::Inet6(addr)) => Some(IpAddr::V6(*addr)),
                _ => None,
            })
        });
        let interface = replies.iter().find_map(outgoing_interface).ok_or_else(|| {
            let attempt = Attempt { call: "look up route to", object: &addr };
            attempt.failed(io::Error::other("no route names an interface"))
        })?;
        Ok((interface, gateway.unwrap_or(addr)))
    }

    fn look_up(&mut self, addr: IpAddr) -> Result<Vec<RouteNetlinkMessage>> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(addr);
        message.header.destination_prefix_length = if addr.is_ipv4() { 32 } else { 128 };
        message.attributes = vec![RouteAttribute::Destination(route_address(addr))];
        let attempt = Attempt { call: "look up route to", object: &addr };
        self.get(RouteNetlinkMessage::GetRoute(message), &attempt)
    }
}

/// True for a route that [`RouteSocket::set_initial_windows`] changes.
fn takes_windows(route: &RouteMessage) -> bool {
    let link_local = |attribute: &RouteAttribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet6(addr)) => addr.is_unicast_link_local(),
        _ => false,
    };
    match route.header.kind {
        RouteType::Unicast => !route.attributes.iter().any(link_local),
        RouteType::Local => route.header.address_family == AddressFamily::Inet,
        _ => false,
    }
}

fn destination(route: &RouteMessage) -> String {
    let addr = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet(addr)) => Some(addr.to_string()),
        RouteAttribute::Destination(RouteAddress::Inet6(addr)) => Some(addr.to_string()),
        _ => None,
    });
    let addr = addr.unwrap_or_else(|| "default".to_owned());
    format!("{addr}/{}", route.header.destination_prefix_length)
}

/// The same route with these windows, without attributes that cannot be set (cache, preference).
fn with_windows(mut route: RouteMessage, windows: InitialWindows) -> RouteMessage {
    let known = route.attributes.iter().filter_map(metrics_of).flatten();
    let mut metrics: Vec<RouteMetric> = known
        .filter(|metric| match metric {
            RouteMetric::InitCwnd(_) => windows.send.is_none(),
            RouteMetric::InitRwnd(_) => windows.receive.is_none(),
            _ => true,
        })
        .cloned()
        .collect();
    metrics.extend(windows.send.map(RouteMetric::InitCwnd));
    metrics.extend(windows.receive.map(RouteMetric::InitRwnd));
    route.attributes.retain(|attribute| {
        matches!(
            attribute,
            RouteAttribute::Destination(_)
                | RouteAttribute::Gateway(_)
                | RouteAttribute::Oif(_)
                | RouteAttribute::PrefSource(_)
                | RouteAttribute::Priority(_)
                | RouteAttribute::Table(_)
        )
    });
    route.attributes.push(RouteAttribute::Metrics(metrics));
    route
}

fn metrics_of(attribute: &RouteAttribute) -> Option<&Vec<RouteMetric>> {
    match attribute {
        RouteAttribute::Metrics(metrics) => Some(metrics),
        _ => None,
    }
}

fn outgoing_interface(reply: &RouteNetlinkMessage) -> Option<u32> {
    let RouteNetlinkMessage::NewRoute(route) = reply else { return None };
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
}

fn route_address(addr: IpAddr) -> RouteAddress {
    match addr {
        IpAddr::V4(addr) => RouteAddress::Inet(addr),
        IpAddr::V6(addr) => RouteAddress::Inet6(addr),
    }
}
