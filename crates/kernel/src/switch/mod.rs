//! Switches (S-29): they send each call or stream where its key says.
//!
//! Three ways: the only way out (nothing is compared), a table by key (one load), a short list that is searched.

use alloc::vec::Vec;

use crate::link::{Way, cheapest};

/// How a switch finds the way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchKind {
    /// There is one way, for every key.
    Only,
    /// Keys lie close together.
    Table,
    /// Few keys, or keys far apart.
    List,
}

/// What a switch has to tell apart.
struct Keys {
    count: usize,
    largest: u32,
    /// Keys that have no way are sent nowhere, so even one must be compared.
    exact: bool,
}

/// Largest table, in ways.
const TABLE_MOST: u32 = 1024;

const WAYS: &[Way<SwitchKind, Keys>] = &[
    Way { kind: SwitchKind::Only, cost: 1, serves: |keys| keys.count == 1 && !keys.exact },
    Way { kind: SwitchKind::Table, cost: 4, serves: |keys| keys.largest < TABLE_MOST },
    Way { kind: SwitchKind::List, cost: 20, serves: |_| true },
];

/// Ways out by key.
///
/// Callentry: `route`. Invariant: no key has two ways.
pub enum Switch<Out> {
    Only(Out),
    Table(Vec<Option<Out>>),
    /// Sorted by key.
    List(Vec<(u32, Out)>),
}

impl<Out> Switch<Out> {
    /// A switch for these ways. Of two with the same key the first counts.
    pub fn new(mut ways: Vec<(u32, Out)>) -> Switch<Out> {
        ways.sort_by_key(|(key, _)| *key);
        ways.dedup_by_key(|(key, _)| *key);
        let largest = ways.last().map_or(0, |(key, _)| *key);
        let keys = Keys { count: ways.len(), largest, exact: true };
        Switch::build(ways, &keys)
    }

    /// A switch with one way for all keys.
    pub fn only(out: Out) -> Switch<Out> {
        Switch::build(Vec::from([(0, out)]), &Keys { count: 1, largest: u32::MAX, exact: false })
    }

    #[expect(clippy::disallowed_methods, reason = "made once for each place that switches, by the kernel itself")]
    fn build(mut ways: Vec<(u32, Out)>, keys: &Keys) -> Switch<Out> {
        match (cheapest(WAYS, keys), ways.pop()) {
            (Some(SwitchKind::Only), Some((_, out))) => Switch::Only(out),
            (Some(SwitchKind::Table), last) => {
                let mut table = Vec::new();
                table.resize_with(keys.largest as usize + 1, || None);
                ways.into_iter().chain(last).for_each(|(key, out)| table[key as usize] = Some(out));
                Switch::Table(table)
            }
            (_, last) => {
                ways.extend(last);
                Switch::List(ways)
            }
        }
    }

    /// How it finds the way out.
    pub fn kind(&self) -> SwitchKind {
        match self {
            Switch::Only(_) => SwitchKind::Only,
            Switch::Table(_) => SwitchKind::Table,
            Switch::List(_) => SwitchKind::List,
        }
    }

    /// The way for `key`, if there is one.
    pub fn route(&self, key: u32) -> Option<&Out> {
        match self {
            Switch::Only(out) => Some(out),
            Switch::Table(table) => table.get(key as usize)?.as_ref(),
            Switch::List(list) => list.binary_search_by_key(&key, |(key, _)| *key).ok().map(|at| &list[at].1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_decide_the_kind() {
        assert_eq!(Switch::only('a').kind(), SwitchKind::Only);
        assert_eq!(Switch::new(vec![(3, 'a')]).kind(), SwitchKind::Table);
        assert_eq!(Switch::new(vec![(3, 'a'), (4, 'b')]).kind(), SwitchKind::Table);
        assert_eq!(Switch::new(vec![(3, 'a'), (u32::MAX, 'b')]).kind(), SwitchKind::List);
        assert_eq!(Switch::<char>::new(vec![]).kind(), SwitchKind::Table);
    }

    #[test]
    fn every_kind_routes_alike() {
        assert_eq!(Switch::only('a').route(9), Some(&'a'));
        for far in [5, 500_000] {
            let switch = Switch::new(vec![(far, 'c'), (0, 'a'), (2, 'b'), (2, 'x')]);
            assert_eq!(switch.route(0), Some(&'a'));
            assert_eq!(switch.route(2), Some(&'b'));
            assert_eq!(switch.route(far), Some(&'c'));
            assert_eq!((switch.route(1), switch.route(far + 1)), (None, None));
        }
    }
}
