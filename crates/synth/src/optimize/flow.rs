//! The instructions of a draft, where each leads, and what can go.

use alloc::vec;
use alloc::vec::Vec;

use super::decode::decode;
use super::facts::{Facts, Verdict};
use super::instruction::{Flags, Instruction, Kind, Memory, Width};
use crate::draft::Draft;
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
}

/// Ways to an instruction that the forward pass has not seen when it comes there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Entrance {
    /// None.
    Above,
    /// A fault in front of it: nothing is known, and it is reached when that is.
    Landing,
    /// A jump or a fault behind it: nothing is known, not even that nobody comes.
    Behind,
}

pub struct Flow<'a> {
    code: &'a [u8],
    pub nodes: Vec<Node>,
    /// Per node: who gets here in another way than from above.
    entrance: Vec<Entrance>,
    /// Where a fault in an instruction lands, by number of node; as ranges of nodes.
    landings: Vec<(core::ops::Range<usize>, usize)>,
    /// What is known at the beginning.
    entry: Facts<'a>,
}

impl<'a> Flow<'a> {
    /// `None`: an instruction or a jump that is not understood.
    pub fn of(draft: &'a Draft) -> Option<Flow<'a>> {
        let code = draft.bytes();
        let mut nodes = Vec::with_capacity(code.len() / 4);
        let mut at = 0;
        while at < code.len() {
            let instruction = decode(code, at)?;
            at += instruction.bytes;
            nodes.push(Node { instruction, to: None, fate: Fate::Kept });
        }
        let entry = Facts::at_entry(draft.assumed());
        let mut flow =
            Flow { code, entrance: vec![Entrance::Above; nodes.len() + 1], nodes, landings: Vec::new(), entry };
        flow.find_targets(draft)?;
        for landing in draft.landings() {
            let range = flow.number(landing.from as usize)?..flow.number(landing.to as usize)?;
            let to = flow.number(draft.label(landing.landing) as usize)?;
            let entrance = if to < range.end { Entrance::Behind } else { Entrance::Landing };
            flow.entrance[to] = entrance.max(flow.entrance[to]);
            flow.landings.push((range, to));
        }
        Some(flow)
    }

    /// The number of the instruction that begins at `at`.
    pub fn number(&self, at: usize) -> Option<usize> {
        if at == self.code.len() {
            return Some(self.nodes.len());
        }
        self.nodes.binary_search_by_key(&at, |node| node.instruction.at).ok()
    }

    fn find_targets(&mut self, draft: &Draft) -> Option<()> {
        for number in 0..self.nodes.len() {
            let instruction = self.nodes[number].instruction;
            let field_bytes = match instruction.kind {
                Kind::Jump { wide } | Kind::Branch { wide, .. } => {
                    if wide {
                        4
                    } else {
                        1
                    }
                }
                _ => continue,
            };
            let end = instruction.at + instruction.bytes;
            let field = end - field_bytes;
            let to = match draft.jump_at(field) {
                Some((_, target)) if target.kind == HoleKind::Label => {
                    To::Node(self.number(draft.label(target.value as u32) as usize)?)
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
                self.entrance[target] = Entrance::Behind;
            }
            self.nodes[number].to = Some(to);
        }
        Some(())
    }

    pub fn is_live(&self, number: usize) -> bool {
        self.nodes.get(number).is_some_and(|node| node.fate != Fate::Cut)
    }

    /// The first live instruction at or behind `number`.
    pub fn live_from(&self, number: usize) -> usize {
        (number..self.nodes.len()).find(|at| self.is_live(*at)).unwrap_or(self.nodes.len())
    }

    /// One pass over all instructions. Whether something changed.
    pub fn improve(&mut self) -> bool {
        let passed = self.pass_facts();
        let jumped = self.cut_jumps_to_next();
        let flagged = self.cut_unread_comparisons();
        passed | jumped | flagged
    }

    fn pass_facts(&mut self) -> bool {
        let mut changed = false;
        let mut arriving: Vec<Option<Facts<'a>>> = vec![None; self.nodes.len() + 1];
        let mut lands: Vec<bool> = vec![false; self.nodes.len() + 1];
        let mut current = Some(self.entry.clone());
        for number in 0..self.nodes.len() {
            if self.entrance[number] != Entrance::Above {
                let is_reached = current.is_some() || arriving[number].is_some() || lands[number];
                let is_reached = is_reached || self.entrance[number] == Entrance::Behind;
                current = is_reached.then(Facts::default);
            } else {
                current = joined(current, arriving[number].take());
            }
            let Some(facts) = &mut current else {
                changed |= self.is_live(number);
                self.nodes[number].fate = Fate::Cut;
                continue;
            };
            let touches_program = self.lands_from(number, &mut lands);
            if !self.is_live(number) {
                continue;
            }
            if touches_program {
                facts.forget_memory();
            }
            changed |= self.step(number, facts, &mut arriving);
            if self.is_live(number) && matches!(self.nodes[number].instruction.kind, Kind::Jump { .. } | Kind::Exit) {
                current = None;
            }
        }
        changed
    }

    /// Notes where a fault in this instruction lands; whether it can have one.
    fn lands_from(&self, number: usize, lands: &mut [bool]) -> bool {
        let mut touches = false;
        for (range, to) in &self.landings {
            if range.contains(&number) {
                lands[*to] = true;
                touches |= self.nodes[number].instruction.memory == Memory::Anywhere;
            }
        }
        touches
    }

    /// Judges one instruction that can be reached, and says what is known behind it.
    fn step(&mut self, number: usize, facts: &mut Facts<'a>, arriving: &mut [Option<Facts<'a>>]) -> bool {
        let instruction = self.nodes[number].instruction;
        match instruction.kind {
            Kind::Branch { condition, wide } => {
                if facts.fails(condition) {
                    self.nodes[number].fate = Fate::Cut;
                    return true;
                }
                let mut taken = facts.clone();
                taken.learn(condition ^ 1);
                let changed = self.leads(number, wide, taken, arriving);
                facts.learn(condition);
                changed
            }
            Kind::Jump { wide } => self.leads(number, wide, facts.clone(), arriving),
            _ => {
                let changed = match (facts.judge(&instruction), self.nodes[number].fate) {
                    (Verdict::Redundant, _) => {
                        self.nodes[number].fate = Fate::Cut;
                        return true;
                    }
                    (Verdict::CopyOf { register, from, width }, Fate::Kept) => {
                        self.nodes[number].fate = Fate::Copy { register, from, width };
                        true
                    }
                    _ => false,
                };
                facts.pass(&instruction, &self.code[instruction.at..instruction.at + instruction.bytes]);
                changed
            }
        }
    }

    /// Follows a jump with what is known on its way, as far as that way does nothing else.
    fn leads(&mut self, number: usize, wide: bool, facts: Facts<'a>, arriving: &mut [Option<Facts<'a>>]) -> bool {
        let Some(old) = self.nodes[number].to else { return false };
        let to = if wide { self.threaded(old, &facts, number) } else { old };
        self.nodes[number].to = Some(to);
        if let To::Node(target) = to
            && target > number
        {
            arriving[target] = Some(joined(Some(facts), arriving[target].take()).unwrap_or_default());
        }
        to != old
    }

    fn threaded(&self, mut to: To, facts: &Facts<'a>, number: usize) -> To {
        const STEPS_MAX: usize = 8;
        let mut best = to;
        for _ in 0..STEPS_MAX {
            let To::Node(target) = to else { break };
            let at = self.live_from(target);
            // Only forward, so that no place gets a jump from behind that it did not have.
            let Some(node) = self.nodes.get(at).filter(|_| at > number) else { break };
            to = match node.instruction.kind {
                Kind::Jump { .. } => node.to.unwrap_or(To::Node(at)),
                _ if facts.judge(&node.instruction) == Verdict::Redundant => To::Node(at + 1),
                _ => break,
            };
            if matches!(to, To::Node(target) if target <= number) {
                break;
            }
            best = to;
        }
        best
    }

    fn cut_jumps_to_next(&mut self) -> bool {
        let mut changed = false;
        for number in 0..self.nodes.len() {
            let jumps = matches!(self.nodes[number].instruction.kind, Kind::Jump { .. } | Kind::Branch { .. });
            let Some(To::Node(target)) = self.nodes[number].to.filter(|_| jumps && self.is_live(number)) else {
                continue;
            };
            if target > number && self.live_from(target) == self.live_from(number + 1) {
                self.nodes[number].fate = Fate::Cut;
                changed = true;
            }
        }
        changed
    }

    /// Comparisons whose flags nobody reads.
    fn cut_unread_comparisons(&mut self) -> bool {
        let mut changed = false;
        for number in 0..self.nodes.len() {
            let instruction = &self.nodes[number].instruction;
            let compares = matches!(instruction.kind, Kind::Compare { .. });
            // A comparison with memory somewhere may fault, which is something.
            let is_free = compares && instruction.memory != Memory::Anywhere && self.is_live(number);
            if is_free && !self.flags_are_read(number + 1) {
                self.nodes[number].fate = Fate::Cut;
                changed = true;
            }
        }
        changed
    }

    /// Whether some way from `number` on reads the flags before it writes them.
    fn flags_are_read(&self, number: usize) -> bool {
        let mut seen = vec![false; self.nodes.len()];
        let mut ways = vec![number];
        while let Some(way) = ways.pop() {
            let at = self.live_from(way);
            let Some(node) = self.nodes.get(at) else { return true };
            if core::mem::replace(&mut seen[at], true) {
                continue;
            }
            if node.instruction.reads_flags {
                return true;
            }
            if node.instruction.flags == Flags::WritesAll || node.instruction.kind == Kind::Exit {
                continue;
            }
            match (node.instruction.kind, node.to) {
                (Kind::Jump { .. }, Some(To::Node(target))) => ways.push(target),
                (Kind::Jump { .. }, _) => {}
                _ => ways.push(at + 1),
            }
        }
        false
    }
}

fn joined<'a>(one: Option<Facts<'a>>, other: Option<Facts<'a>>) -> Option<Facts<'a>> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.meet(&other);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}
