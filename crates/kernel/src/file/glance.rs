//! What a path names, when only its attributes are asked for: outside of the machine that is one question for many names,
//! and no place is held for the answer.

use alloc::sync::Arc;

use abi::Errno;
use machine::Extended;

use super::attributes::Attributes;
use super::namespace::Namespace;
use super::node::Node;
use super::store::Glance;
use super::walk::{FinalLink, View, Walk};

/// What a path names.
pub enum Seen {
    Node(Arc<Node>),
    /// Something outside of the machine, as it is there now.
    Outside(Attributes),
}

impl Namespace {
    /// What `path` names, for who wants its attributes.
    ///
    /// Errors: those of [`Namespace::lookup`].
    pub fn look(&self, view: View<'_>, path: &[u8], last: FinalLink) -> Result<Seen, Errno> {
        if !self.may_glance() {
            return self.lookup(view, path, last).map(Seen::Node);
        }
        self.look_outside(view, path, last)
    }

    #[cold]
    #[inline(never)]
    fn look_outside(&self, view: View<'_>, path: &[u8], last: FinalLink) -> Result<Seen, Errno> {
        let key = self.cache_key(view, path);
        if let Some(node) = key.as_ref().and_then(|key| self.remembered(view, key, last)) {
            return Ok(Seen::Node(node));
        }
        let mut walk = Walk::new(self, view, path)?;
        if let Some(attributes) = walk.glance(last)? {
            return Ok(Seen::Outside(attributes));
        }
        let node = walk.reach_end(last)?;
        if let Some(key) = key {
            walk.remember(&key, &node);
        }
        Ok(Seen::Node(node))
    }
}

impl Namespace {
    /// Extended attributes of what `path` names, where that lies outside of the machine and can be asked for without a walk. `None`: it
    /// must be looked up.
    ///
    /// Errors: those of [`Namespace::lookup`], and what is said there.
    pub fn extended_outside(
        &self,
        view: View<'_>,
        path: &[u8],
        last: FinalLink,
        what: &mut Extended<'_>,
    ) -> Result<Option<usize>, Errno> {
        if !self.may_glance() || path.last() == Some(&b'/') {
            return Ok(None);
        }
        let mut walk = Walk::new(self, view, path)?;
        while let Some(rest) = walk.plain_rest() {
            let is_last = !rest.contains(&b'/');
            if walk.at.is_elsewhere() {
                let answer = match walk.at.volume().store().extended_below(view.credentials, &walk.at, rest, last, what)
                {
                    Err(Errno::ENOENT) if walk.begins_anew()? => continue,
                    answer => answer?,
                };
                if answer.is_some() {
                    if is_last {
                        walk.remember_way_to_rest();
                    }
                    return Ok(answer);
                }
            }
            if is_last || walk.step()?.is_some() {
                break;
            }
        }
        Ok(None)
    }
}

impl Walk<'_> {
    /// Walks to where the rest of the path lies outside of the machine with nothing laid over it, and asks there for all of
    /// it. `None`: the walk must go on name by name, from where it is now.
    fn glance(&mut self, last: FinalLink) -> Result<Option<Attributes>, Errno> {
        while let Some(rest) = self.plain_rest() {
            let slashes = rest.iter().filter(|byte| **byte == b'/').count();
            if self.at.is_elsewhere() {
                let seen = match self.at.volume().store().glance(self.view.credentials, &self.at, rest, last) {
                    Err(Errno::ENOENT) if self.begins_anew()? => continue,
                    seen => seen?,
                };
                match seen {
                    Glance::Seen(attributes) => {
                        if slashes == 0 {
                            self.remember_way_to_rest();
                        }
                        return Ok(Some(attributes));
                    }
                    Glance::Walk => return Ok(None),
                    Glance::Step => {}
                }
            }
            if slashes == 0 || self.step()?.is_some() {
                break;
            }
        }
        Ok(None)
    }
}

/// Names with slashes between them, none of which means another directory than the one before it or in it.
pub(super) fn is_plain(names: &[u8]) -> bool {
    names.last() != Some(&b'/') && names.split(|byte| *byte == b'/').all(|name| !matches!(name, b"." | b".."))
}

#[cfg(test)]
mod tests {
    use crate::file::glance::is_plain;

    #[test]
    fn names_that_lead_elsewhere_are_not_plain() {
        for names in ["a", "a/b", "a//b", "a/.b/..c", "..."] {
            assert!(is_plain(names.as_bytes()), "{names}");
        }
        for names in [".", "..", "a/..", "../a", "a/./b", "a/"] {
            assert!(!is_plain(names.as_bytes()), "{names}");
        }
    }
}
