//! The instructions of a draft, where each leads, and what can go.

use alloc::vec::Vec;
use core::ops::Range;

use super::decode::decode;
use super::facts::{Facts, Lore, Verdict};
use super::instruction::{Flags, Instruction, Kind, Memory, Width};
use crate::draft::{Draft, Jump};
use crate::hole::HoleKind;

/// Where a jump leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// An instruction, by its number; one behind the last is the end.
    Node(usize),
    /// Where the draft's jump of this number leads, outside of the draft.
    Away(usize),
}

/// What became of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Kept,
    Cut,
    /// A load that became a copy from another register.
    Copy {
        register: u8,
        from: u8,
        width: Width,
    },
}

pub struct Node {
    pub instruction: Instruction,
    /// Of jumps and branches.
    pub to: Option<To>,
    pub fate: Fate,
    /// What it is about, by number in the lore.
    about: u8,
    /// A jump from behind leads here, or a fault: nothing is known.
    is_open: bool,
    /// A fault in it lands somewhere.
    can_land: bool,
    /// A branch or a comparison that went since the last pass over the facts.
    has_gone: bool,
    /// What is known on the ways that jump here: number in `arrivals`, plus one.
    arrival: u16,
}

/// Where a fault in one of some instructions lands.
struct Landing {
    from: Range<usize>,
    to: usize,
    /// One of the instructions is reached.
    is_reached: bool,
}

pub struct Flow<'a> {
    code: &'a [u8],
    pub nodes: Vec<Node>,
    landings: Vec<Landing>,
    lore: Lore<'a>,
    /// What is known at the beginning.
    entry: Facts,
    arrivals: Vec<Facts>,
}

impl<'a> Flow<'a> {
    /// `None`: an instruction or a jump that is not understood.
    pub fn of(draft: &'a Draft) -> Option<Flow<'a>> {
        let code = draft.bytes();
        let mut lore = Lore::new();
        let mut nodes = Vec::with_capacity(code.len() / 3);
        let mut at = 0;
        while at < code.len() {
            let instruction = decode(code, at)?;
            let about = lore.number_of(&instruction, &code[at..at + instruction.bytes]);
            at += instruction.bytes;
            nodes.push(Node {
                instruction,
                to: None,
                fate: Fate::Kept,
                about,
                is_open: false,
                can_land: false,
                has_gone: false,
                arrival: 0,
            });
        }
        let entry = Facts::new(draft.assumed().map(|(register, value)| lore.constant(register, value)));
        let arrivals = Vec::with_capacity(draft.jumps().len());
        let mut flow = Flow { code, nodes, landings: Vec::new(), lore, entry, arrivals };
        flow.find_targets(draft)?;
        flow.find_landings(draft)?;
        Some(flow)
    }

    /// The number of the instruction that begins at `at`.
    fn number(&self, at: usize) -> Option<usize> {
        if at == self.code.len() {
            return Some(self.nodes.len());
        }
        self.nodes.binary_search_by_key(&at, |node| node.instruction.at).ok()
    }

    fn find_targets(&mut self, draft: &Draft) -> Option<()> {
        // In the order of their places, as the instructions are.
        let mut jumps = draft.jumps().iter().enumerate().peekable();
        for number in 0..self.nodes.len() {
            let instruction = &self.nodes[number].instruction;
            let (Kind::Jump { wide } | Kind::Branch { wide, .. }) = instruction.kind else { continue };
            let end = instruction.at + instruction.bytes;
            let field = end - if wide { 4 } else { 1 };
            while jumps.next_if(|(_, jump)| (jump.at as usize) < field).is_some() {}
            let to = match jumps.next_if(|(_, jump)| jump.at as usize == field) {
                Some((_, Jump { to, .. })) if to.kind == HoleKind::Label => {
                    To::Node(self.number(draft.label(to.value as u32) as usize)?)
                }
                Some((jump, _)) => To::Away(jump),
                None => {
                    let bytes = &self.code[field..end];
                    let relative = match bytes {
                        [byte] => i64::from(*byte as i8),
                        _ => i64::from(i32::from_le_bytes(*bytes.first_chunk()?)),
                    };
                    To::Node(self.number(usize::try_from(end as i64 + relative).ok()?)?)
                }
            };
            if let To::Node(target) = to
                && target <= number
            {
                self.nodes[target].is_open = true;
            }
            self.nodes[number].to = Some(to);
        }
        Some(())
    }

    fn find_landings(&mut self, draft: &Draft) -> Option<()> {
        for landing in draft.landings() {
            let from = self.number(landing.from as usize)?..self.number(landing.to as usize)?;
            let to = self.number(draft.label(landing.landing) as usize)?;
            for node in self.nodes.get_mut(from.clone())? {
                node.can_land = true;
            }
            if let Some(node) = self.nodes.get_mut(to) {
                node.is_open = true;
            }
            self.landings.push(Landing { from, to, is_reached: false });
        }
        Some(())
    }

    /// The first live instruction at or behind `number`.
    fn live_from(&self, number: usize) -> usize {
        let rest = self.nodes.get(number..).unwrap_or_default();
        rest.iter().position(|node| node.fate != Fate::Cut).map_or(self.nodes.len(), |live| number + live)
    }

    /// Cuts what can go. What a jump's way leads past is judged when the jump is met, so one pass over the facts is
    /// enough, but where a branch or a comparison on such a way goes after it.
    pub fn improve(&mut self) {
        loop {
            let mut again = self.pass_facts();
            loop {
                let (jumped, branched) = self.cut_jumps_to_next();
                again |= branched;
                if !(self.cut_unread_comparisons() | jumped) {
                    break;
                }
            }
            if !(again | self.jumps_past_what_went()) {
                return;
            }
        }
    }

    /// Whether a jump was followed so far that its way may go on.
    fn pass_facts(&mut self) -> bool {
        let mut again = false;
        let mut facts = self.entry;
        let mut is_reached = true;
        self.arrivals.clear();
        self.landings.iter_mut().for_each(|landing| landing.is_reached = false);
        for number in 0..self.nodes.len() {
            let node = &mut self.nodes[number];
            node.has_gone = false;
            let arrival = core::mem::take(&mut node.arrival);
            if node.is_open {
                // A landing is reached when its range is; a loop from above anyway.
                let lands = || self.landings.iter().any(|landing| landing.to == number && landing.is_reached);
                is_reached = is_reached || arrival != 0 || lands();
                facts = Facts::new(None);
            } else if arrival != 0 {
                let arriving = &self.arrivals[usize::from(arrival) - 1];
                if is_reached {
                    facts.meet(arriving);
                } else {
                    facts = *arriving;
                }
                is_reached = true;
            }
            if !is_reached {
                self.nodes[number].fate = Fate::Cut;
                continue;
            }
            let node = &self.nodes[number];
            if node.can_land {
                self.landings.iter_mut().for_each(|landing| landing.is_reached |= landing.from.contains(&number));
            }
            if node.fate == Fate::Cut {
                continue;
            }
            if node.can_land && node.instruction.memory == Memory::Anywhere {
                facts.forget_memory(&self.lore);
            }
            again |= self.step(number, &mut facts);
            let node = &self.nodes[number];
            let ends = matches!(node.instruction.kind, Kind::Jump { .. } | Kind::Exit);
            is_reached = !(ends && node.fate != Fate::Cut);
        }
        again
    }

    /// Judges one instruction that can be reached, and says what is known behind it.
    fn step(&mut self, number: usize, facts: &mut Facts) -> bool {
        let Node { instruction, about, .. } = &self.nodes[number];
        match instruction.kind {
            Kind::Branch { condition, wide } => {
                if facts.fails(&self.lore, condition) {
                    self.cut_for_good(number);
                    return false;
                }
                let mut taken = *facts;
                taken.learn(&mut self.lore, condition ^ 1);
                facts.learn(&mut self.lore, condition);
                self.leads(number, wide, &taken)
            }
            Kind::Jump { wide } => self.leads(number, wide, facts),
            _ => {
                match facts.judge(&self.lore, instruction, *about) {
                    Verdict::Redundant => {
                        self.nodes[number].fate = Fate::Cut;
                        return false;
                    }
                    Verdict::CopyOf { register, from, width } => {
                        let about = *about;
                        self.nodes[number].fate = Fate::Copy { register, from, width };
                        facts.pass(&mut self.lore, &self.nodes[number].instruction, about);
                    }
                    Verdict::Needed => facts.pass(&mut self.lore, instruction, *about),
                }
                false
            }
        }
    }

    /// A branch or a comparison goes, which a jump before it may have stopped at.
    fn cut_for_good(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        (node.fate, node.has_gone) = (Fate::Cut, true);
    }

    /// Follows a jump with what is known on its way, as far as that way does nothing else. Whether it may go on.
    fn leads(&mut self, number: usize, wide: bool, facts: &Facts) -> bool {
        let Some(old) = self.nodes[number].to else { return false };
        let (to, goes_on) = if wide { self.threaded(old, facts, number) } else { (old, false) };
        self.nodes[number].to = Some(to);
        if let To::Node(target) = to
            && target > number
            && let Some(node) = self.nodes.get_mut(target)
        {
            if node.arrival == 0 {
                self.arrivals.push(*facts);
                node.arrival = self.arrivals.len() as u16;
            } else {
                self.arrivals[usize::from(node.arrival) - 1].meet(facts);
            }
        }
        goes_on
    }

    fn threaded(&self, mut to: To, facts: &Facts, number: usize) -> (To, bool) {
        const STEPS_MAX: usize = 8;
        let mut best = to;
        for _ in 0..STEPS_MAX {
            let To::Node(target) = to else { return (best, false) };
            let at = self.live_from(target);
            // Only forward, so that no place gets a jump from behind that it did not have.
            let Some(node) = self.nodes.get(at).filter(|_| at > number) else { return (best, false) };
            to = match node.instruction.kind {
                Kind::Jump { .. } => node.to.unwrap_or(To::Node(at)),
                _ if facts.judge(&self.lore, &node.instruction, node.about) == Verdict::Redundant => To::Node(at + 1),
                _ => return (best, false),
            };
            if matches!(to, To::Node(target) if target <= number) {
                return (best, false);
            }
            best = to;
        }
        (best, true)
    }

    /// Whether something went; whether a branch did.
    fn cut_jumps_to_next(&mut self) -> (bool, bool) {
        let (mut jumped, mut branched) = (false, false);
        for number in 0..self.nodes.len() {
            let node = &self.nodes[number];
            let Some(To::Node(target)) = node.to.filter(|_| node.fate != Fate::Cut) else { continue };
            // Between it and its target nothing is left.
            let between = self.nodes.get(number + 1..target).unwrap_or_default();
            if target > number && between.iter().all(|node| node.fate == Fate::Cut) {
                branched |= matches!(node.instruction.kind, Kind::Branch { .. });
                jumped = true;
                self.nodes[number].fate = Fate::Cut;
            }
        }
        (jumped, branched)
    }

    /// Comparisons whose flags nobody reads. Whether there were some.
    fn cut_unread_comparisons(&mut self) -> bool {
        let mut changed = false;
        let read_at = self.flags_read();
        for (node, is_read) in self.nodes.iter_mut().zip(&read_at[1..]) {
            let compares = matches!(node.instruction.kind, Kind::Compare { .. });
            // A comparison with memory somewhere may fault, which is something.
            let is_free = compares && node.instruction.memory != Memory::Anywhere && node.fate != Fate::Cut;
            if is_free && !is_read {
                (node.fate, node.has_gone) = (Fate::Cut, true);
                changed = true;
            }
        }
        changed
    }

    /// Per place: whether some way from there reads the flags before it writes them.
    fn flags_read(&self) -> Vec<bool> {
        let mut read = alloc::vec![false; self.nodes.len() + 1];
        read[self.nodes.len()] = true;
        // Again where a loop leads to a place of which too little was known.
        let mut again = true;
        while core::mem::take(&mut again) {
            for (number, node) in self.nodes.iter().enumerate().rev() {
                let is_read = match (node.instruction.kind, node.to) {
                    _ if node.fate == Fate::Cut => read[number + 1],
                    _ if node.instruction.reads_flags => true,
                    (Kind::Exit, _) => false,
                    _ if node.instruction.flags == Flags::WritesAll => false,
                    (Kind::Jump { .. }, Some(To::Node(target))) => read[target],
                    (Kind::Jump { .. }, _) => false,
                    _ => read[number + 1],
                };
                again |= node.is_open && is_read != read[number];
                read[number] = is_read;
            }
        }
        read
    }

    /// Whether a jump leads past a branch or a comparison that has gone just now, so that its way may go on.
    fn jumps_past_what_went(&self) -> bool {
        let leads_past = |node: &Node| match node.to {
            Some(To::Node(target)) if node.fate != Fate::Cut => {
                let past = self.nodes[target..].iter().take_while(|node| node.fate == Fate::Cut);
                past.into_iter().any(|node| node.has_gone)
            }
            _ => false,
        };
        self.nodes.iter().any(leads_past)
    }
}
