//! Extended attributes of nodes in memory: values with names, apart from what a file holds (xattr(7)).

use alloc::boxed::Box;
use alloc::vec::Vec;

use abi::Errno;
use abi::process::CAP_SYS_ADMIN;
use machine::{Extended, TryGrow, try_box_slice};

use super::attributes::{NodeKind, STICKY, Time};
use super::credentials::{Access, Credentials};
use super::node::Node;
use super::store::Residence;
use super::volume::Volume;

/// Whether there must be one already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SetExtended {
    Either,
    /// `XATTR_CREATE`
    Create,
    /// `XATTR_REPLACE`
    Replace,
    /// Both: refused whether there is one or not.
    Neither,
}

impl SetExtended {
    fn of_flags(flags: u32) -> SetExtended {
        match flags & 3 {
            0 => SetExtended::Either,
            1 => SetExtended::Create,
            2 => SetExtended::Replace,
            _ => SetExtended::Neither,
        }
    }
}

fn without_nul(name: &[u8]) -> &[u8] {
    name.strip_suffix(b"\0").unwrap_or(name)
}

/// The attributes of one node, by name. Most nodes have none.
#[derive(Default)]
pub(super) struct ExtendedAttributes(Vec<Attribute>);

struct Attribute {
    name: Box<[u8]>,
    value: Box<[u8]>,
}

impl Attribute {
    /// Kernel memory is bounded by the volume's nodes; an attribute counts as as many as fit into its bytes, as Linux's tmpfs
    /// counts.
    const NODE_BYTES: usize = 1024;
    const OVERHEAD_BYTES: usize = 64;

    fn cost(name: &[u8], value: &[u8]) -> u64 {
        (Self::OVERHEAD_BYTES + name.len() + value.len()).div_ceil(Self::NODE_BYTES) as u64
    }

    fn new(name: &[u8], value: &[u8]) -> Result<Attribute, Errno> {
        Ok(Attribute { name: copied(name)?, value: copied(value)? })
    }
}

fn copied(bytes: &[u8]) -> Result<Box<[u8]>, Errno> {
    try_box_slice(bytes).map_err(|_| Errno::ENOSPC)
}

impl ExtendedAttributes {
    fn find(&self, name: &[u8]) -> Result<usize, usize> {
        self.0.binary_search_by(|attribute| (*attribute.name).cmp(name))
    }

    /// Errors: `EEXIST`, `ENODATA` as `how` says; `ENOSPC`.
    fn set(&mut self, volume: &Volume, name: &[u8], value: &[u8], how: SetExtended) -> Result<(), Errno> {
        let found = self.find(name);
        match (found, how) {
            (Ok(_), SetExtended::Create | SetExtended::Neither) => return Err(Errno::EEXIST),
            (Err(_), SetExtended::Replace | SetExtended::Neither) => return Err(Errno::ENODATA),
            _ => {}
        }
        volume.charge_nodes(Attribute::cost(name, value))?;
        let entered = self.enter(found, name, value);
        match &entered {
            Ok(None) => {}
            Ok(Some(old)) => volume.release_nodes(Attribute::cost(name, old)),
            Err(_) => volume.release_nodes(Attribute::cost(name, value)),
        }
        entered.map(|_| ())
    }

    /// Puts a value at the place that `find` said; returns the one that was there.
    fn enter(&mut self, found: Result<usize, usize>, name: &[u8], value: &[u8]) -> Result<Option<Box<[u8]>>, Errno> {
        match found {
            Ok(at) => Ok(Some(core::mem::replace(&mut self.0[at].value, copied(value)?))),
            Err(at) => {
                let attribute = Attribute::new(name, value)?;
                self.0.try_insert(at, attribute).map_err(|_| Errno::ENOSPC)?;
                Ok(None)
            }
        }
    }

    fn remove(&mut self, volume: &Volume, name: &[u8]) -> Result<(), Errno> {
        let at = self.find(name).map_err(|_| Errno::ENODATA)?;
        let attribute = self.0.remove(at);
        volume.release_nodes(Attribute::cost(&attribute.name, &attribute.value));
        Ok(())
    }

    /// The node goes.
    pub(super) fn release(&self, volume: &Volume) {
        let cost = |attribute: &Attribute| Attribute::cost(&attribute.name, &attribute.value);
        volume.release_nodes(self.0.iter().map(cost).sum());
    }
}

/// What the first part of a name says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    /// For who may read or write the file.
    User,
    /// For privileged users only.
    Trusted,
    Security,
    /// Nothing is known of the name.
    Unknown,
}

impl Family {
    /// Error: `EINVAL` for a beginning with nothing behind it.
    fn of(name: &[u8]) -> Result<Family, Errno> {
        let known: [(&[u8], Family); 3] =
            [(b"user.", Family::User), (b"trusted.", Family::Trusted), (b"security.", Family::Security)];
        match known.iter().find(|(start, _)| name.starts_with(start)) {
            Some((start, _)) if name.len() == start.len() => Err(Errno::EINVAL),
            // Programs get no rights by this one, so it must not look as if they did.
            _ if name == b"security.capability" => Ok(Family::Unknown),
            Some((_, family)) => Ok(*family),
            None => Ok(Family::Unknown),
        }
    }
}

impl Node {
    /// One of the calls about extended attributes, whose names end with a NUL. Errors: those of the store.
    pub fn extended(&self, who: &Credentials, what: Extended<'_>, now: Time) -> Result<usize, Errno> {
        self.volume().store().extended(who, self, what, now)
    }

    /// May `who` read or write the attribute? The order is Linux's `xattr_permission`.
    fn permit_extended(&self, who: &Credentials, name: &[u8], access: Access) -> Result<(), Errno> {
        let refusal = if access.write { Errno::EPERM } else { Errno::ENODATA };
        let starts = |start: &[u8]| name.starts_with(start);
        if starts(b"security.") || starts(b"system.") {
            let is_kept = access.write && starts(b"security.") && !who.can(CAP_SYS_ADMIN);
            return if is_kept { Err(Errno::EPERM) } else { Ok(()) };
        }
        if starts(b"trusted.") {
            return if who.can(CAP_SYS_ADMIN) { Ok(()) } else { Err(refusal) };
        }
        if starts(b"user.") {
            if !matches!(self.kind(), NodeKind::Regular | NodeKind::Directory) {
                return Err(refusal);
            }
            if access.write && self.is_directory() && self.meta().mode & STICKY != 0 && !who.owns(self) {
                return Err(Errno::EPERM);
            }
        }
        who.permit(self, access)
    }

    /// One of the calls about the attributes of a node that are here; names end with a NUL.
    /// Errors: `EROFS`, `EPERM`, `EACCES`, `ENOTSUP` for a name or volume without attributes, `EINVAL` for half a name,
    /// `EEXIST`, `ENODATA`, `ENOSPC`, `ERANGE` for too little room.
    pub(super) fn own_extended(&self, who: &Credentials, what: Extended<'_>, now: Time) -> Result<usize, Errno> {
        match what {
            // No file has a list of rights, but every file could have one.
            Extended::Get { name, into } => match self.get_extended(who, without_nul(name), into) {
                Err(Errno::ENOTSUP) if name.starts_with(b"system.posix_acl_") => Err(Errno::ENODATA),
                got => got,
            },
            Extended::Set { name, value, flags } => {
                self.set_extended(who, without_nul(name), value, SetExtended::of_flags(flags), now).map(|()| 0)
            }
            Extended::List { into } => self.list_extended(who, into),
            Extended::Remove { name } => self.remove_extended(who, without_nul(name), now).map(|()| 0),
        }
    }

    fn keeps_extended(&self, family: Family) -> bool {
        self.volume().residence() == Residence::Memory && family != Family::Unknown
    }

    /// Errors: `EROFS`, `EPERM`, `EACCES`, `ENOTSUP` for a name or volume without attributes, `EINVAL` for half a name,
    /// `EEXIST`, `ENODATA`, `ENOSPC`.
    pub(super) fn set_extended(
        &self,
        who: &Credentials,
        name: &[u8],
        value: &[u8],
        how: SetExtended,
        now: Time,
    ) -> Result<(), Errno> {
        super::change::check_changeable(self)?;
        self.permit_extended(who, name, Access::WRITE)?;
        if !self.keeps_extended(Family::of(name)?) {
            return Err(Errno::ENOTSUP);
        }
        self.extended_here.borrow_mut().set(self.volume(), name, value, how)?;
        self.change_meta(|meta| meta.changed = now);
        Ok(())
    }

    /// Errors: as `set_extended`.
    pub(super) fn remove_extended(&self, who: &Credentials, name: &[u8], now: Time) -> Result<(), Errno> {
        super::change::check_changeable(self)?;
        self.permit_extended(who, name, Access::WRITE)?;
        if !self.keeps_extended(Family::of(name)?) {
            return Err(Errno::ENOTSUP);
        }
        self.extended_here.borrow_mut().remove(self.volume(), name)?;
        self.change_meta(|meta| meta.changed = now);
        Ok(())
    }

    /// Puts the value into `into` if there is room for any; returns its bytes.
    /// Errors: `ENODATA`, `ENOTSUP`, `EACCES`, `EINVAL`, `ERANGE`.
    pub(super) fn get_extended(&self, who: &Credentials, name: &[u8], into: &mut [u8]) -> Result<usize, Errno> {
        self.permit_extended(who, name, Access::READ)?;
        if !self.keeps_extended(Family::of(name)?) {
            return Err(Errno::ENOTSUP);
        }
        let attributes = self.extended_here.borrow();
        let at = attributes.find(name).map_err(|_| Errno::ENODATA)?;
        put(into, &attributes.0[at].value)
    }

    /// Puts the names, each with a NUL behind it, into `into` if there is room for any; returns their bytes.
    /// Error: `ERANGE`.
    fn list_extended(&self, who: &Credentials, into: &mut [u8]) -> Result<usize, Errno> {
        let attributes = self.extended_here.borrow();
        let is_seen = |name: &[u8]| who.can(CAP_SYS_ADMIN) || !name.starts_with(b"trusted.");
        let seen = attributes.0.iter().map(|attribute| &*attribute.name).filter(|name| is_seen(name));
        let mut used = 0;
        for name in seen {
            if !into.is_empty() {
                put(&mut into[used..], name)?;
                *into.get_mut(used + name.len()).ok_or(Errno::ERANGE)? = 0;
            }
            used += name.len() + 1;
        }
        Ok(used)
    }
}

/// Error: `ERANGE` if there is room, but not enough.
fn put(into: &mut [u8], bytes: &[u8]) -> Result<usize, Errno> {
    if !into.is_empty() {
        into.get_mut(..bytes.len()).ok_or(Errno::ERANGE)?.copy_from_slice(bytes);
    }
    Ok(bytes.len())
}
