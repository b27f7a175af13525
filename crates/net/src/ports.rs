//! Who has which port: the rules of Linux for two that want the same (socket(7), `SO_REUSEADDR` and `SO_REUSEPORT`).

use core::net::{IpAddr, SocketAddr};
use core::ops::Bound;

use machine::{NoMemory, Ordered};

/// What somebody wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// `None`: all addresses of its families.
    pub address: Option<IpAddr>,
    pub port: u16,
    /// Families: 4 and 6.
    pub families: [bool; 2],
    pub reuses_address: bool,
    pub reuses_port: bool,
    /// Whose it is: only they share a port by `SO_REUSEPORT`.
    pub user: u32,
    /// Only what comes by this interface; 0: by all.
    pub interface: u32,
    pub is_listening: bool,
}

/// Names a port that somebody has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Binding {
    pub port: u16,
    number: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortError {
    InUse,
    /// All ports that are given out without a wish are taken.
    NoneLeft,
    NoMemory,
}

impl From<NoMemory> for PortError {
    fn from(_: NoMemory) -> PortError {
        PortError::NoMemory
    }
}

/// Ports that are given out to who names none (Linux's `ip_local_port_range`).
const EPHEMERAL: core::ops::Range<u16> = 32_768..61_000;

/// A number by which those who share a port share who calls them: the same for the same caller.
pub fn share_of(caller: SocketAddr) -> u32 {
    let address = match caller.ip() {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => address
            .octets()
            .chunks(4)
            .fold(0, |sum, four| sum ^ u32::from_le_bytes([four[0], four[1], four[2], four[3]])),
    };
    // Fibonacci hashing (Knuth, vol. 3, 6.4): ports that follow each other go to different ones.
    (address ^ u32::from(caller.port())).wrapping_mul(0x9E37_79B1) >> 16
}

/// The ports of one protocol.
pub struct Ports<T> {
    by_port: Ordered<Binding, (Claim, T)>,
    next_number: u32,
    /// A connection's port is shared by rules of its own.
    is_stream: bool,
}

impl<T> Ports<T> {
    pub const fn of_streams() -> Ports<T> {
        Ports { by_port: Ordered::new(), next_number: 0, is_stream: true }
    }

    pub const fn of_datagrams() -> Ports<T> {
        Ports { by_port: Ordered::new(), next_number: 0, is_stream: false }
    }

    fn of_port(&self, port: u16) -> impl Iterator<Item = (&Binding, &(Claim, T))> {
        let first = Binding { port, number: 0 };
        self.by_port.range(Bound::Included(&first)).take_while(move |(binding, _)| binding.port == port)
    }

    /// Both may have it.
    fn share(&self, one: &Claim, other: &Claim) -> bool {
        let meet = |at: usize| one.families[at] && other.families[at];
        let overlap = match (one.address, other.address) {
            (Some(one), Some(other)) => one == other,
            (Some(named), None) => other.families[usize::from(named.is_ipv6())],
            (None, Some(named)) => one.families[usize::from(named.is_ipv6())],
            (None, None) => meet(0) || meet(1),
        };
        let apart = one.interface != 0 && other.interface != 0 && one.interface != other.interface;
        if !overlap || apart || one.reuses_port && other.reuses_port && one.user == other.user {
            return true;
        }
        let listens = self.is_stream && (one.is_listening || other.is_listening);
        one.reuses_address && other.reuses_address && !listens
    }

    fn is_free(&self, claim: &Claim, but: Option<Binding>) -> bool {
        self.of_port(claim.port).all(|(binding, (other, _))| Some(*binding) == but || self.share(claim, other))
    }

    /// Takes a port; port 0 is one that is free, looked for from `random` on.
    pub fn bind(&mut self, mut claim: Claim, random: u32, value: T) -> Result<Binding, PortError> {
        if claim.port == 0 {
            claim.port = self.free_port(&claim, random)?;
        } else if !self.is_free(&claim, None) {
            return Err(PortError::InUse);
        }
        self.next_number = self.next_number.wrapping_add(1);
        let binding = Binding { port: claim.port, number: self.next_number };
        self.by_port.try_insert(binding, (claim, value))?;
        Ok(binding)
    }

    fn free_port(&self, claim: &Claim, random: u32) -> Result<u16, PortError> {
        let count = u32::from(EPHEMERAL.end - EPHEMERAL.start);
        let at = |step: u32| EPHEMERAL.start + (random.wrapping_add(step) % count) as u16;
        // Nobody who named none shares one, whatever both say.
        let is_free = |port: &u16| {
            let wanted = Claim { port: *port, reuses_address: false, reuses_port: false, ..*claim };
            self.is_free(&wanted, None)
        };
        (0..count).map(at).find(is_free).ok_or(PortError::NoneLeft)
    }

    /// Who has the port is going to listen there. Error: somebody does.
    pub fn listen(&mut self, binding: Binding) -> Result<(), PortError> {
        let Some((claim, _)) = self.by_port.get(&binding) else { return Err(PortError::InUse) };
        let listening = Claim { is_listening: true, ..*claim };
        let is_free = self
            .of_port(binding.port)
            .all(|(other, (claim, _))| *other == binding || !claim.is_listening || self.share(&listening, claim));
        if !is_free {
            return Err(PortError::InUse);
        }
        if let Some((claim, _)) = self.by_port.get_mut(&binding) {
            claim.is_listening = true;
        }
        Ok(())
    }

    /// Changes what was claimed, without a question.
    pub fn amend(&mut self, binding: Binding, change: impl FnOnce(&mut Claim)) {
        if let Some((claim, _)) = self.by_port.get_mut(&binding) {
            change(claim);
        }
    }

    pub fn release(&mut self, binding: Binding) -> Option<T> {
        self.by_port.remove(&binding).map(|(_, value)| value)
    }

    /// Those who have a port, in the order in which they took it.
    pub fn at(&self, port: u16) -> impl Iterator<Item = (&Claim, &T)> {
        self.of_port(port).map(|(_, (claim, value))| (claim, value))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Claim, &T)> {
        self.by_port.iter().map(|(_, (claim, value))| (claim, value))
    }
}
