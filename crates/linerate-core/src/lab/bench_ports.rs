//! The ports of a benchmark of what stands between two hosts of a laboratory.
//!
//! Frames leave the client by its interface towards the server, and come in at the server's by
//! which it is reached. Where a router is on the way, each port has the router beside it as its
//! gateway; over cables, switches and devices frames go straight to the other port. More than two
//! ports are one of each host.

use std::net::IpAddr;

use super::layout::{End, Layout, Role};
use crate::record::{BenchPort, BenchProtocol};

impl Layout {
    /// The two ports between which frames of `protocol` are sent: the client's, then the server's.
    /// # Errors
    /// Why there are none.
    pub fn bench_ports(
        &self,
        client: &str,
        server: &str,
        protocol: BenchProtocol,
    ) -> Result<Vec<BenchPort>, String> {
        let [from, to] = self.bench_ends(client, server)?;
        let routed = self.segment_at(from) != self.segment_at(to);
        if routed && family(protocol).is_none() {
            return Err(format!("a router is on the way, and none here routes {protocol}"));
        }
        let port = |end: End, far: End| {
            let node = &self.nodes[end.node];
            let address = |end: End| self.address_at(end, protocol);
            let gateway = match address(far).filter(|_| routed) {
                None => None,
                Some(network) => self.gateway_to(end, network),
            };
            if routed && gateway.is_none() {
                return Err(format!("{protocol} has no way from `{}`", node.name));
            }
            Ok(BenchPort {
                interface: node.interfaces[end.interface].name.clone(),
                host: Some(node.name.clone()),
                address: address(end).map(|address| address.to_string()),
                gateway: gateway.map(|gateway| gateway.to_string()),
            })
        };
        Ok(vec![port(from, to)?, port(to, from)?])
    }

    /// The ports of several hosts, each of which sends to the others, in their order: two are as
    /// above. The first one reaches all others by one interface.
    /// # Errors
    /// Why there are none.
    pub fn bench_ports_of(
        &self,
        hosts: &[&str],
        protocol: BenchProtocol,
    ) -> Result<Vec<BenchPort>, String> {
        let [first, others @ ..] = hosts else { return Ok(Vec::new()) };
        let mut ports: Vec<BenchPort> = Vec::new();
        for other in others {
            let mut pair = self.bench_ports(first, other, protocol)?.into_iter();
            let (Some(own), Some(theirs)) = (pair.next(), pair.next()) else { continue };
            match ports.first() {
                None => ports.push(own),
                Some(known) if *known == own => {}
                Some(_) => return Err(format!("`{first}` reaches `{other}` by another port")),
            }
            ports.push(theirs);
        }
        Ok(ports)
    }

    /// The interfaces by which frames from client to server leave the one and reach the other.
    fn bench_ends(&self, client: &str, server: &str) -> Result<[End; 2], String> {
        if client == server {
            return Err(format!("`{client}` measures itself; frames need two hosts"));
        }
        let node = self.node_index(client).ok_or_else(|| format!("no host is named `{client}`"))?;
        let target = self.address_of(server).ok_or_else(|| format!("`{server}` has no address"))?;
        let way = self.route_crossings(node, target);
        let (Some(first), Some(last)) = (way.first(), way.last()) else {
            return Err(format!("no way leads from `{client}` to `{server}`"));
        };
        if let Some(crossed) = way.iter().find(|crossing| self.links[crossing.link].path.is_some())
        {
            let name = self.link_name(crossed.link);
            return Err(format!(
                "the link {name} is an emulated path, which carries no raw frames"
            ));
        }
        let end = |link: usize, place: bool| self.links[link].ends[usize::from(place)];
        Ok([end(first.link, first.backward), end(last.link, !last.backward)])
    }

    fn segment_at(&self, end: End) -> usize {
        self.links[self.nodes[end.node].interfaces[end.interface].link].segment
    }

    fn address_at(&self, end: End, protocol: BenchProtocol) -> Option<IpAddr> {
        let interface = &self.nodes[end.node].interfaces[end.interface];
        match family(protocol)? {
            PortIpVersion::Ipv4 => interface.ipv4.map(IpAddr::V4),
            PortIpVersion::Ipv6 => interface.ipv6.map(IpAddr::V6),
        }
    }

    /// The router's address beside `end` over which `far` is reached.
    fn gateway_to(&self, end: End, far: IpAddr) -> Option<IpAddr> {
        let segment = self.segments.iter().find(|segment| {
            segment.members.iter().any(|member| {
                let interface = &self.nodes[member.node].interfaces[member.interface];
                let own = [interface.ipv4.map(IpAddr::V4), interface.ipv6.map(IpAddr::V6)];
                own.contains(&Some(far))
            })
        })?;
        let networks = [Some(IpAddr::V4(segment.ipv4)), segment.ipv6.map(IpAddr::V6)];
        let network =
            networks.into_iter().flatten().find(|address| address.is_ipv4() == far.is_ipv4());
        let routes = &self.nodes[end.node].routes;
        let route = routes.iter().find(|route| Some(route.network) == network)?;
        Some(route.gateway)
    }

    /// Filter rules that frames between two hosts are held against: those of the routers on the
    /// way; none where there is no router.
    pub fn filters_between(&self, client: &str, server: &str) -> Option<u32> {
        let (node, target) = (self.node_index(client)?, self.address_of(server)?);
        let way = self.route_crossings(node, target);
        let mut nodes: Vec<usize> = way
            .iter()
            .flat_map(|crossing| self.links[crossing.link].ends.map(|end| end.node))
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        let filters = nodes.into_iter().filter_map(|node| match self.nodes[node].role {
            Role::Router { filters } => Some(filters),
            _ => None,
        });
        filters.reduce(u32::saturating_add)
    }
}

#[derive(Clone, Copy)]
enum PortIpVersion {
    Ipv4,
    Ipv6,
}

const fn family(protocol: BenchProtocol) -> Option<PortIpVersion> {
    match protocol {
        BenchProtocol::Udp4 | BenchProtocol::Tcp4 => Some(PortIpVersion::Ipv4),
        BenchProtocol::Udp6 | BenchProtocol::Tcp6 => Some(PortIpVersion::Ipv6),
        BenchProtocol::Ethernet
        | BenchProtocol::Decnet
        | BenchProtocol::Appletalk
        | BenchProtocol::Ipx => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::LabPlan;
    use super::*;

    const ROUTER: &str = r#"
host = [{ name = "a" }, { name = "b" }]
router = [{ name = "r", filters = 10 }]
link = [{ ends = ["r", "b"] }, { ends = ["a", "r"] }]
"#;
    const BETWEEN: &str = r#"
host = [{ name = "a" }, { name = "b" }]
link = [{ ends = ["a", "x"] }, { ends = ["x", "b"] }]
"#;

    fn layout(text: &str) -> Layout {
        Layout::from_plan(&LabPlan::from_toml(text, "x.toml").expect("a plan")).expect("a layout")
    }

    /// Ports as `host interface address gateway`.
    fn port_lines(text: &str, protocol: BenchProtocol) -> Result<Vec<String>, String> {
        let ports = layout(text).bench_ports("a", "b", protocol)?;
        let word = |it: Option<String>| it.unwrap_or_else(|| "-".to_owned());
        let line = |port: BenchPort| {
            let [host, address, gateway] = [port.host, port.address, port.gateway].map(word);
            format!("{host} {} {address} {gateway}", port.interface)
        };
        Ok(ports.into_iter().map(line).collect())
    }

    #[test]
    fn ports_at_a_router_have_it_as_gateway_in_the_protocols_own_addresses() {
        // Link 0 is segment 1 with b at .1 and r at .2; link 1 is segment 2 with a and r.
        let ipv4 = ["a eth0 10.0.2.1 10.0.2.2", "b eth0 10.0.1.1 10.0.1.2"];
        assert_eq!(port_lines(ROUTER, BenchProtocol::Udp4).expect("ports"), ipv4);
        let ipv6 = ["a eth0 fd00:0:0:2::1 fd00:0:0:2::2", "b eth0 fd00:0:0:1::1 fd00:0:0:1::2"];
        assert_eq!(port_lines(ROUTER, BenchProtocol::Tcp6).expect("ports"), ipv6);
        assert_eq!(layout(ROUTER).filters_between("a", "b"), Some(10));
    }

    #[test]
    fn ports_without_a_router_between_have_no_gateway() {
        let cable =
            "host = [{ name = \"a\" }, { name = \"b\" }]\nlink = [{ ends = [\"a\", \"b\"] }]";
        let switch = format!("{BETWEEN}switch = [{{ name = \"x\" }}]");
        let forwarder = format!("{BETWEEN}device = [{{ name = \"x\", kind = \"forwarder\" }}]");
        for text in [cable, &switch, &forwarder] {
            let expected = ["a eth0 10.0.1.1 -", "b eth0 10.0.1.2 -"];
            assert_eq!(port_lines(text, BenchProtocol::Udp4).expect("ports"), expected);
            let expected = ["a eth0 - -", "b eth0 - -"];
            assert_eq!(port_lines(text, BenchProtocol::Decnet).expect("ports"), expected);
            assert_eq!(layout(text).filters_between("a", "b"), None);
        }
    }

    #[test]
    fn several_hosts_at_one_device_have_a_port_each() {
        let hosts = "host = [{ name = \"a\" }, { name = \"b\" }, { name = \"c\" }]\n\
                     link = [{ ends = [\"a\", \"x\"] }, { ends = [\"x\", \"b\"] }, \
                     { ends = [\"c\", \"x\"] }]\n";
        let found = |text: &str| {
            let ports = layout(text).bench_ports_of(&["a", "b", "c"], BenchProtocol::Udp4)?;
            let line = |port: BenchPort| {
                let [host, gateway] =
                    [port.host, port.gateway].map(|host| host.unwrap_or_else(|| "-".to_owned()));
                format!("{host} {gateway}")
            };
            Ok::<_, String>(ports.into_iter().map(line).collect::<Vec<_>>())
        };
        let switch = format!("{hosts}switch = [{{ name = \"x\" }}]");
        assert_eq!(found(&switch).expect("ports"), ["a -", "b -", "c -"]);
        let router = format!("{hosts}router = [{{ name = \"x\" }}]");
        // Hosts of a segment have the first addresses.
        let routed = ["a 10.0.1.2", "b 10.0.2.2", "c 10.0.3.2"];
        assert_eq!(found(&router).expect("ports"), routed);
        let two = hosts.replace("{ ends = [\"c\", \"x\"] }", "{ ends = [\"a\", \"c\"] }");
        let apart = found(&format!("{two}switch = [{{ name = \"x\" }}]")).expect_err("two ports");
        assert!(apart.contains("`a` reaches `c` by another port"), "{apart}");
    }

    #[test]
    fn what_has_no_ports_says_why() {
        let refused = |text: &str, protocol, words: &str| {
            let reason = port_lines(text, protocol).expect_err(words);
            assert!(reason.contains(words), "{reason}");
        };
        refused(ROUTER, BenchProtocol::Ipx, "none here routes ipx");
        let small = ROUTER.replace("\"b\"] }", "\"b\"], mtu_bytes = 1000 }");
        refused(&small, BenchProtocol::Udp6, "udp6 has no way");
        let apart = "host = [{ name = \"a\" }, { name = \"b\" }, { name = \"c\" }]\n\
                     link = [{ ends = [\"a\", \"c\"] }, { ends = [\"c\", \"b\"] }]";
        refused(apart, BenchProtocol::Udp4, "no way leads");
        let path = ROUTER.replace("\"b\"] }", "\"b\"], path = { delay = \"1 ms\" } }");
        refused(&path, BenchProtocol::Udp4, "an emulated path");
        let itself = layout(ROUTER).bench_ports("a", "a", BenchProtocol::Udp4);
        assert!(itself.expect_err("one host").contains("measures itself"));
    }
}
