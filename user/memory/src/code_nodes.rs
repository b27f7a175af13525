//! Nodes as code: the executable data structure (SOSP'89 6.3). What a node knows stands in its instructions and nowhere
//! else: its address and its children's sizes are operands, its links are where its jumps go.
//!
//! ```text
//! a slot, 64 bytes   +0 Fit     mov ecx, eax; mov eax, NODE; cmp edi, BYTES; jbe CHILD; cmp edi, BYTES; jbe CHILD; ret
//!                   +32 Around  cmp edi, ADDRESS; ja 5f; mov edx, NODE; jmp LEFT; 5: mov eax, NODE; jmp RIGHT
//!                   +63         which child Fit tries first
//! ```

use alloc::vec::Vec;

use ground::Errno;
use synth::Template;

use crate::data_nodes::draw;
use crate::template::{Around, End, Fit};
use crate::tree::{Link, Node, Nodes, Side};
use ground::{Twin, serialize};

const SLOT: usize = 64;
const AROUND: usize = 32;
const FIRST: usize = 63;

/// Offsets of the fields in a slot.
#[derive(Clone, Copy, Debug)]
struct Fields {
    node: [usize; 3],
    /// Of the child that is tried first, and of the other.
    bytes: [usize; 2],
    fit: [usize; 2],
    address: usize,
    /// Left, right.
    around: [usize; 2],
}

impl Fields {
    fn new() -> Fields {
        let find = |template: &Template, name: &str, base: usize| -> Vec<usize> {
            let number = template.shape.holes.iter().position(|hole| *hole == name);
            template.places().filter(|(hole, _)| Some(*hole) == number).map(|(_, offset)| base + offset).collect()
        };
        let fit = |name| find(&Fit::template(), name, 0)[0];
        let around = |name| find(&Around::template(), name, AROUND);
        Fields {
            node: [fit("node"), around("node")[0], around("node")[1]],
            bytes: [fit("first_bytes"), fit("second_bytes")],
            fit: [fit("first"), fit("second")],
            address: around("address")[0],
            around: [around("left")[0], around("right")[0]],
        }
    }
}

/// The nodes of a tree, as code. A node's number is the address where its code runs.
#[derive(Debug)]
pub struct CodeNodes {
    slots: Twin,
    fields: Fields,
    /// A slot with the templates, unfilled.
    blank: [u8; SLOT],
    /// Offset behind the slots that were ever taken, and the list of those that were given back.
    used: usize,
    free: Node,
    root: (Node, u32),
    random: u32,
    /// Code has changed since it last ran.
    changed: bool,
}

impl CodeNodes {
    /// Room for `count` nodes.
    ///
    /// # Errors
    /// The system's, when there is no memory.
    pub fn new(count: usize, seed: u32) -> Result<CodeNodes, Errno> {
        let mut slots = Twin::new((count + 1) * SLOT)?;
        slots.store(0, End::template().bytes);
        let mut blank = [0xCC; SLOT];
        for (template, at) in [(Fit::template(), 0), (Around::template(), AROUND)] {
            blank[at..at + template.bytes.len()].copy_from_slice(template.bytes);
        }
        let fields = Fields::new();
        Ok(CodeNodes { slots, fields, blank, used: SLOT, free: 0, root: (0, 0), random: seed | 1, changed: true })
    }

    fn slot(&self, node: Node) -> usize {
        node as usize - self.slots.run()
    }

    /// Where the code goes on for a child, or where the tree ends.
    fn entry(&self, node: Node, part: usize) -> usize {
        if node == 0 { self.slots.run() } else { node as usize + part }
    }

    fn set_jump(&mut self, field: usize, target: usize) {
        let behind = self.slots.run() + field + 4;
        self.slots.store_u32(field, target.wrapping_sub(behind) as u32);
    }

    /// Which of Fit's two comparisons is for this side.
    fn order(&self, slot: usize, side: Side) -> usize {
        (self.slots.load_u32(slot + FIRST - 3) >> 24) as usize & 1 ^ side as usize
    }

    /// Before code runs.
    fn settle(&mut self) {
        if self.changed {
            serialize();
            self.changed = false;
        }
    }
}

impl Nodes for CodeNodes {
    fn take(&mut self, address: u32) -> Option<Node> {
        let slot = match self.free {
            0 if self.used + SLOT > self.slots.bytes() => return None,
            0 => {
                self.used += SLOT;
                self.used - SLOT
            }
            free => {
                let slot = self.slot(free);
                self.free = self.slots.load_u32(slot + self.fields.address);
                slot
            }
        };
        let fields = self.fields;
        let (node, end) = ((self.slots.run() + slot) as Node, self.slots.run());
        let mut code = self.blank;
        code[FIRST] = (draw(&mut self.random) >> 31) as u8;
        let mut fill = |at: usize, value: u32| code[at..at + 4].copy_from_slice(&value.to_le_bytes());
        fields.node.iter().for_each(|at| fill(*at, node));
        fields.bytes.iter().for_each(|at| fill(*at, 0));
        fill(fields.address, address);
        for at in fields.fit.iter().chain(&fields.around) {
            fill(*at, end.wrapping_sub(node as usize + at + 4) as u32);
        }
        self.slots.store(slot, &code);
        self.changed = true;
        Some(node)
    }

    fn give_back(&mut self, node: Node) {
        let at = self.slot(node) + self.fields.address;
        let next = self.free;
        self.slots.store_u32(at, next);
        self.free = node;
        self.changed = true;
    }

    fn address(&self, node: Node) -> u32 {
        if node == 0 { 0 } else { self.slots.load_u32(self.slot(node) + self.fields.address) }
    }

    fn at(&self, link: Link) -> (Node, u32) {
        let Link::Child(node, side) = link else { return self.root };
        let slot = self.slot(node);
        let bytes = self.slots.load_u32(slot + self.fields.bytes[self.order(slot, side)]);
        if bytes == 0 {
            return (0, 0);
        }
        let field = slot + self.fields.around[side as usize];
        let target = (self.slots.run() + field + 4).wrapping_add_signed(self.slots.load_u32(field) as i32 as isize);
        ((target - AROUND) as Node, bytes)
    }

    fn hang(&mut self, link: Link, node: Node, bytes: u32) {
        let Link::Child(parent, side) = link else {
            self.root = (node, bytes);
            return;
        };
        let slot = self.slot(parent);
        let order = self.order(slot, side);
        let (fit, around) = (self.entry(node, 0), self.entry(node, AROUND));
        self.slots.store_u32(slot + self.fields.bytes[order], bytes);
        self.set_jump(slot + self.fields.fit[order], fit);
        self.set_jump(slot + self.fields.around[side as usize], around);
        self.changed = true;
    }

    fn fit(&mut self, bytes: u32) -> Option<(Node, Link)> {
        if self.root.1 < bytes || bytes == 0 {
            return None;
        }
        self.settle();
        let (node, parent): (u32, u32);
        // SAFETY: 1. the root is a node, whose code is Fit; its jumps lead to nodes only, because no child has fewer bytes
        // than 1 and `bytes` is larger than a missing child's 0. 2. It touches the registers named and returns.
        unsafe {
            core::arch::asm!("call {code}", code = in(reg) u64::from(self.root.0), in("edi") bytes,
                inout("eax") 0 => node, out("ecx") parent);
        }
        let side = |side| Some((node, Link::Child(parent, side)));
        match parent {
            0 => Some((node, Link::Root)),
            _ if self.at(Link::Child(parent, Side::Left)).0 == node => side(Side::Left),
            _ => side(Side::Right),
        }
    }

    fn around(&mut self, address: u32) -> (Node, Node) {
        if self.root.0 == 0 {
            return (0, 0);
        }
        self.settle();
        let (before, behind): (u32, u32);
        let code = u64::from(self.root.0) + AROUND as u64;
        // SAFETY: 1. the root is a node, with Around at this offset; its jumps lead to others or to the end, which returns.
        // 2. It touches the registers named.
        unsafe {
            core::arch::asm!("call {code}", code = in(reg) code, in("edi") address,
                inout("eax") 0 => before, inout("edx") 0 => behind);
        }
        (before, behind)
    }
}
