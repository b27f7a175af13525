//! Doubly linked lists of objects in one slab: what LRU, ARC and S3-FIFO are made of.

use redundancy::Index;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    object: u32,
    bytes: u32,
    newer: u32,
    older: u32,
    list: u8,
    /// Free use of the owner.
    mark: u8,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    newest: u32,
    oldest: u32,
    bytes: u64,
    len: usize,
}

/// Some lists; an object is in at most one of them.
#[derive(Clone, Debug)]
pub struct Chains {
    links: Vec<Link>,
    free: Vec<u32>,
    ends: Vec<Ends>,
    index: Index,
}

impl Chains {
    pub fn new(lists: usize) -> Chains {
        let ends = Ends { newest: NONE, oldest: NONE, bytes: 0, len: 0 };
        Chains { links: Vec::new(), free: Vec::new(), ends: vec![ends; lists], index: Index::new() }
    }

    /// The list in which an object is.
    pub fn list_of(&self, object: u32) -> Option<u8> {
        Some(self.links[self.index.get(object)? as usize].list)
    }

    pub fn mark(&mut self, object: u32) -> Option<&mut u8> {
        let at = self.index.get(object)?;
        Some(&mut self.links[at as usize].mark)
    }

    pub fn bytes(&self, list: u8) -> u64 {
        self.ends[usize::from(list)].bytes
    }

    pub fn len(&self, list: u8) -> usize {
        self.ends[usize::from(list)].len
    }

    /// Object and mark at the old end.
    pub fn oldest(&self, list: u8) -> Option<(u32, u8)> {
        let at = self.ends[usize::from(list)].oldest;
        (at != NONE).then(|| (self.links[at as usize].object, self.links[at as usize].mark))
    }

    /// Puts an object that is in no list at the new end of one.
    pub fn push(&mut self, list: u8, object: u32, bytes: u32, mark: u8) {
        let ends = &mut self.ends[usize::from(list)];
        let link = Link { object, bytes, newer: NONE, older: ends.newest, list, mark };
        let at = self.free.pop().unwrap_or(self.links.len() as u32);
        if at as usize == self.links.len() {
            self.links.push(link);
        } else {
            self.links[at as usize] = link;
        }
        match link.older {
            NONE => ends.oldest = at,
            older => self.links[older as usize].newer = at,
        }
        ends.newest = at;
        ends.bytes += u64::from(bytes);
        ends.len += 1;
        self.index.set(object, at);
    }

    /// Takes an object out. Its bytes and mark.
    pub fn remove(&mut self, object: u32) -> Option<(u32, u8)> {
        let at = self.index.remove(object)?;
        let link = self.links[at as usize];
        let ends = &mut self.ends[usize::from(link.list)];
        match link.newer {
            NONE => ends.newest = link.older,
            newer => self.links[newer as usize].older = link.older,
        }
        match link.older {
            NONE => ends.oldest = link.newer,
            older => self.links[older as usize].newer = link.newer,
        }
        ends.bytes -= u64::from(link.bytes);
        ends.len -= 1;
        self.free.push(at);
        Some((link.bytes, link.mark))
    }

    /// Moves an object to the new end of a list.
    pub fn renew(&mut self, list: u8, object: u32) {
        if let Some((bytes, mark)) = self.remove(object) {
            self.push(list, object, bytes, mark);
        }
    }

    /// Takes the oldest out.
    pub fn pop(&mut self, list: u8) -> Option<(u32, u32, u8)> {
        let (object, _) = self.oldest(list)?;
        let (bytes, mark) = self.remove(object)?;
        Some((object, bytes, mark))
    }
}
