//! A symbol table as a list in the order of names, searched by bisection: names are asked for far more often than they are
//! added, and `each` answers in order, which is what people who complete a name want.

use alloc::vec::Vec;
use machine::TryGrow;

/// Most bytes of a name; a socket's has 108.
pub const NAME_BYTES_MAX: usize = 128;
/// Most names of one table. Adding moves those behind the new one: a megabyte at most.
pub const NAMES_MAX: usize = 16_384;

/// Why a name is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddError {
    /// Another one has it.
    Taken,
    /// It is empty or longer than [`NAME_BYTES_MAX`].
    BadName,
    /// [`NAMES_MAX`] are there, or there is no memory.
    Full,
}

/// What names stand for.
///
/// Callentries: `add`, `lookup`, `remove`, `retain`, `each`. Invariant: names are in rising order of their bytes, each once.
pub struct SymbolTable<N, V> {
    entries: Vec<(N, V)>,
}

impl<N: AsRef<[u8]>, V> Default for SymbolTable<N, V> {
    fn default() -> SymbolTable<N, V> {
        SymbolTable::new()
    }
}

impl<N: AsRef<[u8]>, V> SymbolTable<N, V> {
    /// An empty table.
    pub const fn new() -> SymbolTable<N, V> {
        SymbolTable { entries: Vec::new() }
    }

    /// Callentry: `name` now stands for `value`.
    ///
    /// # Errors
    /// See [`AddError`]; the table is as it was.
    pub fn add(&mut self, name: N, value: V) -> Result<(), AddError> {
        let bytes = name.as_ref();
        if bytes.is_empty() || bytes.len() > NAME_BYTES_MAX {
            return Err(AddError::BadName);
        }
        let Err(place) = self.place(bytes) else { return Err(AddError::Taken) };
        if self.entries.len() >= NAMES_MAX {
            return Err(AddError::Full);
        }
        self.entries.try_insert(place, (name, value)).map_err(|_| AddError::Full)
    }

    /// Callentry: what `name` stands for.
    pub fn lookup(&self, name: &[u8]) -> Option<&V> {
        self.place(name).ok().map(|place| &self.entries[place].1)
    }

    /// Callentry: the name stands for nothing any more. What it stood for.
    pub fn remove(&mut self, name: &[u8]) -> Option<V> {
        self.place(name).ok().map(|place| self.entries.remove(place).1)
    }

    /// Callentry: forgets the names that stand for something that is gone.
    pub fn retain(&mut self, mut stays: impl FnMut(&V) -> bool) {
        self.entries.retain(|(_, value)| stays(value));
    }

    /// Callentry: names that begin so, in order.
    pub fn each<'a>(&'a self, beginning: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a V)> {
        let from = self.place(beginning).unwrap_or_else(|place| place);
        let entries = self.entries[from..].iter().map(|(name, value)| (name.as_ref(), value));
        entries.take_while(move |(name, _)| name.starts_with(beginning))
    }

    /// Names in the table.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn place(&self, name: &[u8]) -> Result<usize, usize> {
        self.entries.binary_search_by(|(other, _)| other.as_ref().cmp(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_name_stands_for_one_thing_until_it_is_removed() {
        let mut table = SymbolTable::new();
        assert_eq!(table.add("tty.read", 1), Ok(()));
        assert_eq!(table.add("tty.read", 2), Err(AddError::Taken));
        assert_eq!(table.lookup(b"tty.read"), Some(&1));
        assert_eq!(table.lookup(b"tty"), None);
        assert_eq!(table.remove(b"tty.read"), Some(1));
        assert_eq!(table.lookup(b"tty.read"), None);
        assert_eq!(table.remove(b"tty.read"), None);
        (1..5).for_each(|value| table.add(["a", "b", "c", "d", "e"][value], value).unwrap());
        table.retain(|value| value % 2 == 0);
        assert_eq!(table.each(b"").map(|(_, value)| *value).collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn names_have_limits() {
        let mut table = SymbolTable::new();
        assert_eq!(table.add(vec![], 0), Err(AddError::BadName));
        assert_eq!(table.add(vec![b'a'; NAME_BYTES_MAX + 1], 0), Err(AddError::BadName));
        for number in 0..NAMES_MAX {
            assert_eq!(table.add(number.to_string().into_bytes(), number), Ok(()));
        }
        assert_eq!(table.add(b"one more".to_vec(), 0), Err(AddError::Full));
        assert_eq!(table.lookup(b"4095"), Some(&4095));
    }

    #[test]
    fn tables_agree_with_a_model() {
        let (mut random, mut table, mut model) = (9u64, SymbolTable::new(), BTreeMap::new());
        for step in 0..20_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let name = format!("{:x}", random >> 40 & 0x1FF).into_bytes();
            match random >> 33 & 3 {
                0 => assert_eq!(table.remove(&name), model.remove(&name)),
                1 => assert_eq!(table.lookup(&name), model.get(&name)),
                2 => {
                    let beginning = &name[..1];
                    let found: Vec<_> = table.each(beginning).map(|(name, value)| (name.to_vec(), *value)).collect();
                    let expected = model.iter().filter(|(name, _): &(&Vec<u8>, _)| name.starts_with(beginning));
                    assert_eq!(found, expected.map(|(name, value)| (name.clone(), *value)).collect::<Vec<_>>());
                }
                _ => {
                    let free = !model.contains_key(&name);
                    assert_eq!(table.add(name.clone(), step).is_ok(), free);
                    model.entry(name).or_insert(step);
                }
            }
        }
    }
}
