//! What goes with a message, and what a receiver gets.

use alloc::vec::Vec;

use abi::Errno;
use abi::socket::Ucred;

use super::flight::Rights;

/// What goes beside bytes.
#[derive(Default)]
pub struct Parcel {
    pub credentials: Option<Ucred>,
    pub rights: Option<Rights>,
}

/// What a receiver gets.
#[derive(Default)]
pub struct Received {
    pub bytes: Vec<u8>,
    /// A datagram's true size.
    pub whole: usize,
    pub from: Vec<u8>,
    pub credentials: Option<Ucred>,
    pub rights: Option<Rights>,
    /// How many of a stream's bytes are the last message's, and whether there is more of that.
    pub last: usize,
    pub is_last_cut: bool,
}

impl Parcel {
    /// What it holds; its files only once, unless somebody just looks. Error: `ENOMEM`, for who looks.
    pub fn part(&mut self, peek: bool) -> Result<Parcel, Errno> {
        let rights = match &self.rights {
            Some(rights) if peek => rights.duplicate()?,
            _ => self.rights.take(),
        };
        Ok(Parcel { credentials: self.credentials, rights })
    }
}
