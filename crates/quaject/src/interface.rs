//! The quaject interfacer (S-18, SOSP'89 2.3): combination, factorization, optimization, dynamic link.

use codestore::Code;
use machine::{Entry, Slot};

use crate::connection::{Connection, End, choose};
use crate::contract::{Contract, Makers};
use crate::create::{self, Quaject};
use crate::slot::{AnyCode, Mismatch};

/// Stage one: what connects two ends, the cheapest that serves.
pub fn combine(producer: End, consumer: End) -> Connection {
    choose(producer, consumer)
}

/// Stage two: the connecting code with its constants. What is pasted comes in as the callouts of the active quaject.
pub fn factor<Q: Quaject>(active: &Q, makers: Makers, callouts: &Q::Callouts<'_>) -> Q::Drafts {
    create::factor(active, makers, callouts)
}

/// Stage three, the same as the creator's: across what was pasted.
pub fn optimize<Q: Quaject>(drafts: Q::Drafts) -> Q::Drafts {
    create::optimize::<Q>(drafts)
}

/// Stage four, dynamic link: one aligned store. Without code the slot leads to `unconnected`, so a call that comes after the
/// other end was closed is done in Rust, which finds that out.
pub fn link<C>(slot: &Slot<C>, code: Option<&Code<C>>, unconnected: Entry<C>) {
    slot.store(code.map_or(unconnected, Code::entry));
}

/// As [`link`], where the contract is only known now.
pub fn link_any<C: Contract>(slot: &Slot<C>, code: &AnyCode) -> Result<(), Mismatch> {
    slot.store(code.entry()?);
    Ok(())
}
