//! The instructions of a draft, where each leads, and what can go.

use alloc::vec::Vec;
use core::ops::Range;

use super::decode::read;
use super::facts::{Facts, Lore, NO_NUMBER, Verdict};
use super::instruction::{Flags, Instruction, Kind, Memory, Width};
use crate::draft::{Draft, Jump};
use crate::hole::HoleKind;

/// Where a jump leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// An instruction, by its number; one behind the last is the end.
    Node(u16),
    /// Where the draft's jump of this number leads, outside of the draft.
    Away(u16),
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
    /// Offset in the draft.
    pub at: u16,
    pub instruction: Instruction,
    /// Of jumps and branches.
    pub to: Option<To>,
    pub fate: Fate,
    /// What it is about, by number in the lore.
    about: u8,
    /// A jump from behind leads here, or a fault: nothing is known.
    is_open: bool,
    /// The jump, or what may fault, lies behind it: whether somebody comes is not known either.
    is_from_behind: bool,
    /// A fault in it lands somewhere.
    can_land: bool,
    /// A branch or a comparison that went since the last pass over the facts.
    has_gone: bool,
    /// Some way from here reads the flags before it writes them.
    reads_flags: bool,
    /// What is known on the ways that jump here: number in `arrivals`, plus one.
    arrival: u16,
}

impl Node {
    const fn new(at: u16) -> Node {
        Node {
            at,
            instruction: Instruction::plain(),
            to: None,
            fate: Fate::Kept,
            about: 0,
            is_open: false,
            is_from_behind: false,
            can_land: false,
            has_gone: false,
            reads_flags: false,
            arrival: 0,
        }
    }

    pub fn bytes(&self) -> usize {
        self.instruction.bytes.into()
    }

    fn is_cut(&self) -> bool {
        self.fate == Fate::Cut
    }
}

/// Where a fault in one of some instructions lands.
struct Landing {
    from: Range<usize>,
    to: usize,
    /// One of the instructions is reached.
    is_reached: bool,
}

/// Room for the jumps that templates have inside.
const SHORT_JUMPS: usize = 8;

pub struct Flow<'a> {
    code: &'a [u8],
    pub nodes: Vec<Node>,
    /// The numbers of the jumps and branches.
    jumps: Vec<u16>,
    has_loop: bool,
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
        let mut nodes: Vec<Node> = Vec::with_capacity(code.len() / 3);
        let mut jumps = Vec::with_capacity(draft.jumps().len() + SHORT_JUMPS);
        let mut at = 0;
        let mut origins = draft.origins().iter().peekable();
        while at < code.len() {
            let number = nodes.len();
            nodes.push(Node::new(at as u16));
            let node = &mut nodes[number];
            while origins.next_if(|origin| (origin.offset + origin.bytes) as usize <= at).is_some() {}
            let begins = origins.next_if(|origin| origin.offset as usize == at);
            if let Some(row) = begins.and_then(|origin| origin.row(code)) {
                node.instruction = row;
                node.about = NO_NUMBER;
                at += node.bytes();
                continue;
            }
            read(code, at, &mut node.instruction)?;
            let end = at + node.bytes();
            node.about = lore.number_of(&node.instruction, &code[at..end]);
            if matches!(node.instruction.kind, Kind::Jump { .. } | Kind::Branch { .. }) {
                jumps.push(number as u16);
            }
            at = end;
        }
        let entry = Facts::new(draft.assumed().map(|(register, value)| lore.constant(register, value)));
        let (landings, arrivals) = (Vec::new(), Vec::with_capacity(jumps.len()));
        let mut flow = Flow { code, nodes, jumps, has_loop: false, landings, lore, entry, arrivals };
        flow.find_targets(draft)?;
        flow.find_landings(draft)?;
        Some(flow)
    }

    /// The number of the instruction that begins at `at`.
    fn number(&self, at: u32) -> Option<usize> {
        if at as usize == self.code.len() {
            return Some(self.nodes.len());
        }
        self.nodes.binary_search_by_key(&at, |node| node.at.into()).ok()
    }

    fn find_targets(&mut self, draft: &Draft) -> Option<()> {
        // In the order of their places, as the instructions are.
        let mut known = draft.jumps().iter().enumerate().peekable();
        for jump in 0..self.jumps.len() {
            let number = self.jumps[jump];
            let node = &self.nodes[usize::from(number)];
            let is_wide = matches!(node.instruction.kind, Kind::Jump { wide: true } | Kind::Branch { wide: true, .. });
            let end = usize::from(node.at) + node.bytes();
            let field = end - if is_wide { 4 } else { 1 };
            while known.next_if(|(_, jump)| (jump.at as usize) < field).is_some() {}
            let to = match known.next_if(|(_, jump)| jump.at as usize == field) {
                Some((_, Jump { to, .. })) if to.kind == HoleKind::Label => draft.label(to.value as u32),
                Some((jump, _)) => {
                    self.nodes[usize::from(number)].to = Some(To::Away(jump as u16));
                    continue;
                }
                None => {
                    let bytes = &self.code[field..end];
                    let relative = match bytes {
                        [byte] => i64::from(*byte as i8),
                        _ => i64::from(i32::from_le_bytes(*bytes.first_chunk()?)),
                    };
                    u32::try_from(end as i64 + relative).ok()?
                }
            };
            let target = self.number(to)? as u16;
            if target <= number {
                let node = &mut self.nodes[usize::from(target)];
                (node.is_open, node.is_from_behind) = (true, true);
                self.has_loop = true;
            }
            self.nodes[usize::from(number)].to = Some(To::Node(target));
        }
        Some(())
    }

    fn find_landings(&mut self, draft: &Draft) -> Option<()> {
        for landing in draft.landings() {
            let from = self.number(landing.from)?..self.number(landing.to)?;
            let to = self.number(draft.label(landing.landing))?;
            for node in self.nodes.get_mut(from.clone())? {
                node.can_land = true;
            }
            if let Some(node) = self.nodes.get_mut(to) {
                node.is_open = true;
                node.is_from_behind |= to < from.end;
            }
            self.landings.push(Landing { from, to, is_reached: false });
        }
        Some(())
    }

    /// The numbers of the jumps and branches.
    pub fn jumps(&self) -> impl Iterator<Item = usize> {
        self.jumps.iter().map(|number| usize::from(*number))
    }

    /// The first live instruction at or behind `number`.
    fn live_from(&self, number: usize) -> usize {
        let rest = self.nodes.get(number..).unwrap_or_default();
        rest.iter().position(|node| !node.is_cut()).map_or(self.nodes.len(), |live| number + live)
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
                // A landing is reached when its range is.
                let is_from_behind = node.is_from_behind;
                let lands = || self.landings.iter().any(|landing| landing.to == number && landing.is_reached);
                is_reached = is_reached || arrival != 0 || is_from_behind || lands();
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
            if node.is_cut() {
                continue;
            }
            if node.can_land && node.instruction.memory == Memory::Anywhere {
                facts.forget_memory(&self.lore);
            }
            again |= self.step(number, &mut facts);
            let node = &self.nodes[number];
            let ends = matches!(node.instruction.kind, Kind::Jump { .. } | Kind::Exit);
            is_reached = !ends || node.is_cut();
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
        let Some(To::Node(old)) = self.nodes[number].to else { return false };
        let (to, goes_on) = if wide { self.threaded(old, facts, number) } else { (To::Node(old), false) };
        self.nodes[number].to = Some(to);
        if let To::Node(target) = to
            && usize::from(target) > number
            && let Some(node) = self.nodes.get_mut(usize::from(target))
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

    fn threaded(&self, mut target: u16, facts: &Facts, number: usize) -> (To, bool) {
        const STEPS_MAX: usize = 8;
        for _ in 0..STEPS_MAX {
            let best = (To::Node(target), false);
            let at = self.live_from(target.into());
            // Only forward, so that no place gets a jump from behind that it did not have.
            let Some(node) = self.nodes.get(at).filter(|_| at > number) else { return best };
            let next = match (node.instruction.kind, node.to) {
                (Kind::Jump { .. }, Some(To::Node(next))) => next,
                (Kind::Jump { .. }, Some(away)) => return (away, false),
                _ if facts.judge(&self.lore, &node.instruction, node.about) == Verdict::Redundant => at as u16 + 1,
                _ => return best,
            };
            if usize::from(next) <= number {
                return best;
            }
            target = next;
        }
        (To::Node(target), true)
    }

    /// Whether something went; whether a branch did.
    fn cut_jumps_to_next(&mut self) -> (bool, bool) {
        let (mut jumped, mut branched) = (false, false);
        for number in &self.jumps {
            let number = usize::from(*number);
            let node = &self.nodes[number];
            let Some(To::Node(target)) = node.to.filter(|_| !node.is_cut()) else { continue };
            // Between it and its target nothing is left.
            let between = self.nodes.get(number + 1..target.into());
            if between.is_some_and(|between| between.iter().all(Node::is_cut)) {
                branched |= matches!(node.instruction.kind, Kind::Branch { .. });
                jumped = true;
                self.nodes[number].fate = Fate::Cut;
            }
        }
        (jumped, branched)
    }

    /// Comparisons whose flags nobody reads. Whether there were some.
    fn cut_unread_comparisons(&mut self) -> bool {
        if self.has_loop {
            // Where a loop leads to a place of which too little was known, it is looked at again.
            self.nodes.iter_mut().for_each(|node| node.reads_flags = false);
            while self.find_flags_read(false) {}
        }
        self.find_flags_read(true)
    }

    /// From the end on: whether some way from a place reads the flags before it writes them. Whether something is new:
    /// with `cut`, that a comparison went.
    fn find_flags_read(&mut self, cut: bool) -> bool {
        let mut changed = false;
        // Behind the end, somebody may.
        let mut is_read = true;
        for number in (0..self.nodes.len()).rev() {
            let node = &self.nodes[number];
            let instruction = &node.instruction;
            // A comparison with memory somewhere may fault, which is something.
            let is_free = matches!(instruction.kind, Kind::Compare { .. }) && instruction.memory != Memory::Anywhere;
            let goes = cut && !is_read && is_free && !node.is_cut();
            is_read = match instruction.kind {
                _ if node.is_cut() => is_read,
                _ if instruction.reads_flags => true,
                Kind::Exit => false,
                Kind::Jump { .. } => match node.to {
                    Some(To::Node(target)) => self.nodes.get(usize::from(target)).is_none_or(|to| to.reads_flags),
                    _ => false,
                },
                _ => is_read && instruction.flags != Flags::WritesAll,
            };
            let node = &mut self.nodes[number];
            changed |= goes || (!cut && node.is_open && node.reads_flags != is_read);
            node.reads_flags = is_read;
            if goes {
                (node.fate, node.has_gone) = (Fate::Cut, true);
            }
        }
        changed
    }

    /// Whether a jump leads past a branch or a comparison that has gone just now, so that its way may go on.
    fn jumps_past_what_went(&self) -> bool {
        let leads_past = |number: &u16| match &self.nodes[usize::from(*number)] {
            node @ Node { to: Some(To::Node(target)), .. } if !node.is_cut() => {
                let past = self.nodes[usize::from(*target)..].iter().take_while(|node| node.is_cut());
                past.into_iter().any(|node| node.has_gone)
            }
            _ => false,
        };
        self.jumps.iter().any(leads_past)
    }
}
