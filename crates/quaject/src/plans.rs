//! Plans that were made before the kernel was built (S-6): those of `plans.txt`, which `bin/plans.sh` writes. A draft that none of
//! them fits is planned when it is first made.

include!(concat!(env!("OUT_DIR"), "/plans.rs"));

/// The plan for drafts of this signature, packed, if there is one.
pub fn known(signature: u64) -> Option<&'static [u8]> {
    let at = KNOWN.binary_search_by_key(&signature, |known| known.0).ok()?;
    Some(KNOWN[at].1)
}
