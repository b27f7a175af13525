//! Questions about interfaces, addresses and routes, and their answers (rtnetlink(7)).

use alloc::vec::Vec;
use core::net::IpAddr;

use abi::socket::{AF_INET, AF_INET6};
use abi::{Errno, Field};
use machine::{NoMemory, TryGrow};

use super::interfaces::{self, Shown};
use crate::emulator::Unix;

const HEADER_BYTES: usize = 16;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const GET_NEIGHBOUR: u16 = 30;
const GET_RULE: u16 = 34;
const GET_QUEUE: u16 = 38;
/// More than one message answers.
const MULTI: u16 = 2;
const WANTS_ACKNOWLEDGEMENT: u16 = 4;
/// `NLM_F_ROOT | NLM_F_MATCH`.
const DUMP: u16 = 0x300;

/// Messages in a row, as they lie in a program's buffer.
pub struct Answer {
    pub bytes: Vec<u8>,
    question: Question,
    /// Who is asked for, as `bind` named it.
    port: u32,
}

#[derive(Clone, Copy)]
struct Question {
    kind: u16,
    flags: u16,
    sequence: u32,
}

impl Answer {
    fn put(&mut self, bytes: &[u8]) -> Result<(), NoMemory> {
        self.bytes.try_extend_from_slice(bytes)
    }

    fn pad(&mut self) -> Result<(), NoMemory> {
        let whole = self.bytes.len().next_multiple_of(4);
        self.bytes.try_resize(whole, 0)
    }

    /// A message, whose body `fill` adds.
    fn message(
        &mut self,
        kind: u16,
        flags: u16,
        fill: impl FnOnce(&mut Answer) -> Result<(), NoMemory>,
    ) -> Result<(), NoMemory> {
        let start = self.bytes.len();
        self.put(&[0; HEADER_BYTES])?;
        fill(self)?;
        self.pad()?;
        let length = (self.bytes.len() - start) as u32;
        let header = &mut self.bytes[start..start + HEADER_BYTES];
        length.put(header);
        kind.put(&mut header[4..]);
        flags.put(&mut header[6..]);
        self.question.sequence.put(&mut header[8..]);
        self.port.put(&mut header[12..]);
        Ok(())
    }

    fn attribute(&mut self, kind: u16, content: &[u8]) -> Result<(), NoMemory> {
        let length = (4 + content.len()) as u16;
        self.put(&length.to_le_bytes())?;
        self.put(&kind.to_le_bytes())?;
        self.put(content)?;
        self.pad()
    }

    fn address(&mut self, kind: u16, address: IpAddr) -> Result<(), NoMemory> {
        match address {
            IpAddr::V4(ip) => self.attribute(kind, &ip.octets()),
            IpAddr::V6(ip) => self.attribute(kind, &ip.octets()),
        }
    }

    /// The error's number, or 0, and the question's header.
    fn error(&mut self, error: Option<Errno>, question: &[u8]) -> Result<(), NoMemory> {
        let number = error.map_or(0, |error| -(error as i32));
        self.message(ERROR, 0, |answer| {
            answer.put(&number.to_le_bytes())?;
            answer.put(&question[..HEADER_BYTES])
        })
    }

    fn link(&mut self, shown: &Shown, flags: u16) -> Result<(), NoMemory> {
        const STATS_64: u16 = 23;
        self.message(NEW_LINK, flags, |answer| {
            let mut head = [0; 16];
            shown.kind.put(&mut head[2..]);
            shown.index.put(&mut head[4..]);
            shown.flags.put(&mut head[8..]);
            answer.put(&head)?;
            let mut name = [0; 16];
            name[..shown.name.len()].copy_from_slice(shown.name.as_bytes());
            answer.attribute(3, &name[..shown.name.len() + 1])?;
            answer.attribute(13, &1000u32.to_le_bytes())?;
            // Up, or unknown for the loopback, as on Linux.
            answer.attribute(16, &[if shown.is_loopback() { 0 } else { 6 }])?;
            answer.attribute(17, &[0])?;
            answer.attribute(4, &shown.mtu.to_le_bytes())?;
            answer.attribute(27, &0u32.to_le_bytes())?;
            answer.attribute(6, if shown.is_loopback() { b"noqueue\0" } else { b"fq_codel\0" })?;
            answer.attribute(1, &shown.hardware)?;
            answer.attribute(2, if shown.is_loopback() { &[0; 6] } else { &[0xFF; 6] })?;
            let mut stats = [0; 25 * 8];
            let counts = [shown.received[0], shown.sent[0], shown.received[1], shown.sent[1]];
            counts.iter().zip(stats.chunks_exact_mut(8)).for_each(|(count, place)| count.put(place));
            answer.attribute(STATS_64, &stats)
        })
    }

    fn address_of(&mut self, shown: &Shown, (address, length): (IpAddr, u8)) -> Result<(), NoMemory> {
        const PERMANENT: u32 = 0x80;
        self.message(NEW_ADDRESS, MULTI, |answer| {
            let scope = match address {
                _ if shown.is_loopback() => 254,
                IpAddr::V6(ip) if ip.is_unicast_link_local() => 253,
                _ => 0,
            };
            let family = family_of(address) as u8;
            answer.put(&[family, length, PERMANENT as u8, scope])?;
            answer.put(&shown.index.to_le_bytes())?;
            answer.address(1, address)?;
            if let IpAddr::V4(ip) = address {
                answer.address(2, address)?;
                if !shown.is_loopback() {
                    answer.attribute(4, &interfaces::broadcast(ip, length))?;
                }
                let mut name = [0; 16];
                name[..shown.name.len()].copy_from_slice(shown.name.as_bytes());
                answer.attribute(3, &name[..shown.name.len() + 1])?;
            }
            answer.attribute(8, &PERMANENT.to_le_bytes())?;
            let mut life = [0xFF; 16];
            life[8..].fill(0);
            answer.attribute(6, &life)
        })
    }

    fn route(&mut self, route: &Route, flags: u16) -> Result<(), NoMemory> {
        const MAIN: u8 = 254;
        const BY_KERNEL: u8 = 2;
        const BY_BOOT: u8 = 3;
        self.message(NEW_ROUTE, flags, |answer| {
            let family = family_of(route.to) as u8;
            let (protocol, scope) = if route.gateway.is_some() { (BY_BOOT, 0) } else { (BY_KERNEL, 253) };
            answer.put(&[family, route.length, 0, 0, MAIN, protocol, scope, 1, 0, 0, 0, 0])?;
            answer.attribute(15, &u32::from(MAIN).to_le_bytes())?;
            if route.length > 0 {
                answer.address(1, route.to)?;
            }
            if let Some(gateway) = route.gateway {
                answer.address(5, gateway)?;
            }
            if let Some(source) = route.source {
                answer.address(7, source)?;
            }
            answer.attribute(4, &route.interface.to_le_bytes())
        })
    }
}

fn family_of(address: IpAddr) -> u16 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}

/// A way to a network.
pub struct Route {
    pub to: IpAddr,
    pub length: u8,
    pub gateway: Option<IpAddr>,
    pub source: Option<IpAddr>,
    pub interface: u32,
}

/// The ways that there are, the widest first.
pub fn routes(unix: &'static Unix) -> Result<Vec<Route>, NoMemory> {
    let mut routes = Vec::new();
    for shown in interfaces::all(unix)?.iter().filter(|shown| !shown.is_loopback()) {
        for gateway in &shown.gateways {
            let to = interfaces::network(*gateway, 0);
            let (gateway, source) = (Some(*gateway), None);
            routes.try_push(Route { to, length: 0, gateway, source, interface: shown.index })?;
        }
        for (address, length) in &shown.addresses {
            let to = interfaces::network(*address, *length);
            let source = Some(*address).filter(|address| address.is_ipv4());
            routes.try_push(Route { to, length: *length, gateway: None, source, interface: shown.index })?;
        }
    }
    Ok(routes)
}

/// Answers one message; its header is whole.
pub fn answer(unix: &'static Unix, message: &[u8], port: u32) -> Result<Vec<u8>, NoMemory> {
    let question = Question {
        kind: <u16 as Field>::get(&message[4..]),
        flags: <u16 as Field>::get(&message[6..]),
        sequence: <u32 as Field>::get(&message[8..]),
    };
    let mut answer = Answer { bytes: Vec::new(), question, port };
    let body = &message[HEADER_BYTES..];
    // Those that only shake hands.
    const CONTROL_MOST: u16 = 15;
    let error = if question.kind <= CONTROL_MOST {
        None
    } else if question.flags & DUMP != 0 {
        dump(unix, &mut answer, question.kind, body)?
    } else {
        one(unix, &mut answer, question.kind, body)?
    };
    if error.is_some() || question.flags & WANTS_ACKNOWLEDGEMENT != 0 && question.flags & DUMP == 0 {
        answer.error(error, message)?;
    }
    Ok(answer.bytes)
}

/// All of a kind.
fn dump(unix: &'static Unix, answer: &mut Answer, kind: u16, body: &[u8]) -> Result<Option<Errno>, NoMemory> {
    let family = body.first().copied().unwrap_or(0);
    let is_wanted = |address: IpAddr| family == 0 || u16::from(family) == family_of(address);
    let all = interfaces::all(unix)?;
    match kind {
        GET_LINK => all.iter().try_for_each(|shown| answer.link(shown, MULTI))?,
        GET_ADDRESS => {
            for shown in &all {
                for address in shown.addresses.iter().filter(|(address, _)| is_wanted(*address)) {
                    answer.address_of(shown, *address)?;
                }
            }
        }
        GET_ROUTE => {
            for route in routes(unix)?.iter().filter(|route| is_wanted(route.to)) {
                answer.route(route, MULTI)?;
            }
        }
        GET_NEIGHBOUR | GET_RULE | GET_QUEUE => {}
        _ => return Ok(Some(Errno::ENOTSUP)),
    }
    answer.message(DONE, MULTI, |answer| answer.put(&[0; 4]))?;
    Ok(None)
}

/// Attributes behind a message's own record.
fn attribute(body: &[u8], record: usize, wanted: u16) -> Option<&[u8]> {
    let mut rest = body.get(record..)?;
    while rest.len() >= 4 {
        let (length, kind) = (usize::from(<u16 as Field>::get(rest)), <u16 as Field>::get(&rest[2..]));
        let content = rest.get(4..length)?;
        if kind & 0x3FFF == wanted {
            return Some(content);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// One of a kind, or a change, which nobody may make.
fn one(unix: &'static Unix, answer: &mut Answer, kind: u16, body: &[u8]) -> Result<Option<Errno>, NoMemory> {
    let all = interfaces::all(unix)?;
    match kind {
        GET_LINK => {
            let index = body.get(4..8).map_or(0, <u32 as Field>::get);
            let name = attribute(body, 16, 3).map(|name| name.strip_suffix(&[0]).unwrap_or(name));
            let is_meant = |shown: &&Shown| match name {
                Some(name) if index == 0 => shown.name.as_bytes() == name,
                _ => shown.index == index,
            };
            match all.iter().find(is_meant) {
                Some(shown) => answer.link(shown, 0)?,
                None => return Ok(Some(Errno::ENODEV)),
            }
        }
        GET_ROUTE => {
            let Some(to) = attribute(body, 12, 1).and_then(address_from) else { return Ok(Some(Errno::EINVAL)) };
            let length = if to.is_ipv4() { 32 } else { 128 };
            let routes = routes(unix)?;
            let leads = |route: &&Route| {
                route.to.is_ipv4() == to.is_ipv4() && interfaces::network(to, route.length) == route.to
            };
            let best = routes.iter().filter(leads).max_by_key(|route| route.length);
            let route = match best {
                _ if to.is_loopback() || unix.network.is_own(to) => {
                    Route { to, length, gateway: None, source: Some(to), interface: interfaces::LOOPBACK }
                }
                Some(best) => Route { to, length, ..*best },
                None => return Ok(Some(Errno::ENETUNREACH)),
            };
            answer.route(&route, 0)?;
        }
        _ if kind % 4 == 2 => return Ok(Some(Errno::ENOTSUP)),
        _ => return Ok(Some(Errno::EPERM)),
    }
    Ok(None)
}

fn address_from(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => Some(<[u8; 4]>::try_from(octets).ok()?.into()),
        16 => Some(<[u8; 16]>::try_from(octets).ok()?.into()),
        _ => None,
    }
}
