//! What a family of sockets is to the calls.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use abi::socket::{SOCK_STREAM, Ucred};
use kernel::net::Options;
use kernel::stream::{Io, Stream, UserRange};
use machine::KernelValue;

use super::parcel::{Parcel, Received};
use crate::call::Call;

/// A socket of any family. Addresses are as programs give them and get them: the family's number, then what the family says.
pub trait Socket: Stream {
    /// `AF_…`
    fn domain(&self) -> u16;

    /// `SOCK_…`
    fn kind(&self) -> u32;

    /// `IPPROTO_…`
    fn protocol(&self) -> u32 {
        0
    }

    fn is_stream(&self) -> bool {
        self.kind() == SOCK_STREAM
    }

    /// Error: `EINVAL` for a socket with a name, `EADDRINUSE`.
    fn bind(&self, call: &Call<'_>, address: &[u8]) -> Result<(), Errno>;

    /// Errors: `EPROTOTYPE`, `ECONNREFUSED`, `EISCONN`, `EINVAL` for one that listens, `EAGAIN`, `EINTR`.
    fn connect(&self, call: &Call<'_>, address: &[u8], nonblocking: bool) -> Result<(), Errno>;

    /// So many connections may wait.
    ///
    /// Errors: `EINVAL`, `ENOTSUP` for a kind that has no connections.
    fn listen(&self, _call: &Call<'_>, _backlog: usize) -> Result<(), Errno> {
        Err(Errno::ENOTSUP)
    }

    fn is_listening(&self) -> bool {
        false
    }

    /// The connection that has waited longest; it waits until [`Socket::accepted`] says so.
    ///
    /// Errors: `ENOTSUP`, `EINVAL` for one that does not listen, `EAGAIN`, `EINTR`.
    fn next_connection(&self, _call: &Call<'_>, _nonblocking: bool) -> Result<Arc<dyn Socket>, Errno> {
        Err(Errno::ENOTSUP)
    }

    /// The connection has a descriptor.
    fn accepted(&self, _call: &Call<'_>) {}

    /// Before bytes are fetched: one that nobody can hear says so first. Errors: `EPIPE`, `ENOTCONN`.
    fn check_writable(&self) -> Result<(), Errno> {
        Ok(())
    }

    /// Sends to this address, or to the peer; sleeps while there is no room. How much was sent.
    fn send_to(
        &self,
        call: &Call<'_>,
        io: &Io<'_>,
        bytes: &[u8],
        to: Option<&[u8]>,
        parcel: Parcel,
    ) -> Result<usize, Errno>;

    /// Takes out what has come, or with `peek` looks at it; a datagram's rest is lost.
    fn receive(&self, call: &Call<'_>, io: &Io<'_>, room: usize, peek: bool) -> Result<Received, Errno>;

    /// What has come back of what was sent. Error: `EAGAIN`.
    fn take_returned(&self, _call: &Call<'_>) -> Result<Received, Errno> {
        Err(Errno::EAGAIN)
    }

    /// The program's buffer did not take what was received: a stream keeps it.
    fn keep(&self, received: Received);

    /// Ends reading, writing or both. Error: `ENOTCONN`.
    fn shut_down(&self, reads: bool, writes: bool) -> Result<(), Errno>;

    /// Error: `ENOMEM`.
    fn address(&self) -> Result<Vec<u8>, Errno>;

    /// Errors: `ENOTCONN`, `ENOMEM`.
    fn peer_address(&self) -> Result<Vec<u8>, Errno>;

    /// Whom `accept` shows for a new connection, which may be over. Errors: as above.
    fn accepted_address(&self) -> Result<Vec<u8>, Errno> {
        self.peer_address()
    }

    /// Who sent what was received; empty for somebody without an address. Error: `ENOMEM`.
    fn sender_of(&self, received: &Received) -> Result<Vec<u8>, Errno>;

    /// What the next call would find (`SO_ERROR`); it does not any more.
    fn take_error(&self) -> Option<Errno>;

    /// Whether its receiver is told who sends (`SO_PASSCRED`).
    fn passes_credentials(&self) -> bool {
        false
    }

    /// Error: `ENOPROTOOPT` where nobody can be told.
    fn pass_credentials(&self, passes: bool) -> Result<(), Errno> {
        if passes { Err(Errno::ENOPROTOOPT) } else { Ok(()) }
    }

    /// Who was at the other side when they were connected (`SO_PEERCRED`).
    fn peer_owner(&self) -> Option<Ucred> {
        None
    }

    /// What was set of it, of what all families have.
    fn options(&self) -> &KernelValue<Options>;

    /// It has been set anew.
    fn options_changed(&self) {}

    /// An option that this family alone has, by level and number: its value. Errors: `ENOTSUP`, `ENOPROTOOPT`.
    fn own_option(&self, _call: &Call<'_>, _option: [u32; 2]) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOTSUP)
    }

    /// The value is the program's memory still. Error: `ENOTSUP`.
    fn set_own_option(&self, _call: &Call<'_>, _option: [u32; 2], _value: UserRange) -> Result<(), Errno> {
        Err(Errno::ENOTSUP)
    }
}

/// Makes a socket, or two, of a kind for a protocol.
pub type Make<T> = fn(&Call<'_>, u32, u32) -> Result<T, Errno>;

pub struct Family {
    /// `AF_…`
    pub number: u16,
    /// Errors: `EPROTONOSUPPORT`, `ESOCKTNOSUPPORT`, `ENOMEM`.
    pub make: Make<Arc<dyn Socket>>,
    /// Two that are connected with each other. Error: `ENOTSUP` where there is no such thing.
    pub make_pair: Make<[Arc<dyn Socket>; 2]>,
    /// The socket that a stream is, if it is one of this family.
    pub of: fn(&dyn Stream) -> Option<Arc<dyn Socket>>,
}
