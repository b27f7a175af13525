//! `call.open` and `call.close` against the descriptor table: descriptors that only code has opened, and those that
//! somebody has looked at.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::{Errno, nr};
use codestore::Code;
use golden::{Access, OnlyTte, Way, bench};
use kernel::call::{CallCode, FileCall, FileCode, OpenName, Opens, SimpleCode};
use kernel::file::{NewNode, Node, Time, Volume};
use kernel::symtab::SymbolTable;
use machine::Processor;
use unix::files::{Body, Descriptor, DescriptorTable, MemoryDevice, OpenFile, Recipe, Slot};

use crate::race::{Race, in_rax, program};

const PATHS: [(&[u8], u32); 4] =
    [(b"/dev/null", 0), (b"/dev/tty", 2), (b"/d/", 0), (b"/dev/zero/nine/nine/eleven/long", 1)];
/// Descriptors of the process; more than code can hand out.
const LIMIT: u64 = 80;
const CODE_DESCRIPTORS: u32 = 64;

/// An open descriptor: its name, and whether only code knows of it.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Open {
    name: usize,
    pending: bool,
}

pub struct Descriptors {
    table: DescriptorTable,
    close: Code<CallCode>,
    /// Routines that know the first name only, the first two, and so on.
    opens: Vec<Code<CallCode>>,
    recipes: Vec<Recipe>,
    /// Which name a path and flags have: the routine's twin.
    names: SymbolTable<Vec<u8>, usize>,
    generation: Box<AtomicU64>,
    model: BTreeMap<u32, Open>,
}

const GENERATION: u64 = 41;

/// What the table of names has for a path opened with these flags.
fn symbol(path: &[u8], flags: u32) -> Vec<u8> {
    [path, b"\0", &flags.to_le_bytes()].concat()
}

impl Descriptors {
    pub fn new() -> Descriptors {
        let makers = bench().makers();
        let table = DescriptorTable::new(bench().slow_call());
        let generation = Box::new(AtomicU64::new(GENERATION));
        let open = Opens {
            table: table.plan(),
            recipes: table.entries().recipes.as_ptr() as u64,
            generation_word: generation.as_ptr() as u64,
            generation: GENERATION,
        };
        let close = open.close(makers, &OnlyTte).expect("room for code");
        let volume = Volume::in_memory(bench().pool).unwrap();
        let entry = |code: &Option<Code<FileCall>>| code.as_ref().expect("room for code").entry();
        let recipes = PATHS.map(|(_, flags)| {
            let new = NewNode { mode: 0o644, user: 0, group: 0, now: Time::default() };
            let node = Node::nameless(&volume, b"", new).expect("room for a node");
            let code = SimpleCode::make(makers).null;
            let code = FileCode { read: code.read, write: code.write, ..FileCode::default() };
            let recipe = Recipe { stream: Arc::new(MemoryDevice::Null), node, flags, close_on_exec: flags == 2, code };
            table.recipe_number(&recipe).expect("room for a recipe");
            recipe
        });
        let nodes = [0, 1, 2, 3].map(|number| {
            let (path, flags) = PATHS[number];
            let recipe = &recipes[number];
            OpenName {
                path,
                flags,
                read_entry: entry(&recipe.code.read).address(),
                write_entry: entry(&recipe.code.write).address(),
                recipe: table.recipe_number(recipe).expect("it has one"),
            }
        });
        let opens = (1..=PATHS.len()).map(|count| open.open(makers, &nodes[..count], &OnlyTte).expect("room for code"));
        let opens = opens.collect();
        let mut names = SymbolTable::new();
        for (number, (path, flags)) in PATHS.iter().enumerate() {
            names.add(symbol(path, *flags), number).expect("they differ");
        }
        Descriptors { table, close, opens, recipes: recipes.into(), names, generation, model: BTreeMap::new() }
    }

    pub fn step(&mut self, race: &mut Race) {
        // Fuller for a while, then emptier.
        let opens = if race.operation >> 12 & 1 == 0 { 55 } else { 40 };
        match race.random.below(100) {
            0 => self.look(race),
            1 => self.duplicate(race),
            at if at < opens => self.open(race),
            _ => self.close(race),
        }
        let descriptor = race.random.below(CODE_DESCRIPTORS.into()) as usize;
        let open = self.model.get(&(descriptor as u32)).map(|open| &self.recipes[open.name].code);
        let [reads, writes, seeks] = self.entries(descriptor);
        let slow = bench().slow_call();
        race.same(
            "read entry",
            reads,
            open.and_then(|code| code.read.as_ref()).map_or(slow.address(), |code| code.entry().address()),
        );
        race.same(
            "write entry",
            writes,
            open.and_then(|code| code.write.as_ref()).map_or(slow.address(), |code| code.entry().address()),
        );
        race.same("seek entry", seeks, slow.address());
        let free = self.table.entries().free.load(Ordering::Relaxed) >> descriptor & 1;
        race.same("free", free == 1, open.is_none());
    }

    fn entries(&self, descriptor: usize) -> [u64; 3] {
        let entries = self.table.entries();
        [&entries.reads, &entries.writes, &entries.seeks].map(|words| words[descriptor].entry().address())
    }

    fn lowest_free(&self) -> u32 {
        (0..).find(|descriptor| !self.model.contains_key(descriptor)).unwrap_or(u32::MAX)
    }

    fn settle(&mut self) {
        self.model.values_mut().for_each(|open| open.pending = false);
    }

    fn open(&mut self, race: &mut Race) {
        let (path, flags) = race.random.pick(&PATHS);
        let mut text = [path, b"\0"].concat();
        // One change somewhere that makes it another call, one time in three.
        let mut arguments = [race.random.pick(&[-100i64 as u64, 0xFFFF_FF9C, 0xDEAD_FFFF_FF9C]), 0, u64::from(flags)];
        arguments[2] |= race.random.pick(&[0, 0xBEEF_0000_0000]);
        match race.random.below(30) {
            0 => arguments[0] = race.random.pick(&[0, 3, 0xFFFF_FFFF_FFFF_FFFF]),
            1 => arguments[2] ^= 0x800,
            2 => self.generation.store(GENERATION + 1, Ordering::Relaxed),
            3..6 => {
                let at = race.random.below(text.len() as u64) as usize;
                text[at] ^= 1 << race.random.below(7);
            }
            _ => {}
        }
        let address = program().buffer(&mut race.random, text.len());
        let fits = program().reachable(address, text.len(), Access::Write) == text.len();
        if fits {
            program().store(address, &text);
        } else {
            program().scramble(&mut race.random, address, text.len());
        }
        arguments[1] = address;
        let lowest = self.lowest_free();
        let asked = text.split(|byte| *byte == 0).next().filter(|asked| asked.len() < text.len());
        let found = asked.and_then(|asked| self.names.lookup(&symbol(asked, arguments[2] as u32))).copied();
        let found = found.filter(|_| fits && arguments[0] as i32 == -100);
        let found = found.filter(|_| self.generation.load(Ordering::Relaxed) == GENERATION);
        let routine = race.random.below(self.opens.len() as u64) as usize;
        let fast = found.is_some_and(|name| name <= routine) && lowest < CODE_DESCRIPTORS;
        let mut outcome = race.caller.moving_call(self.opens[routine].entry().address(), nr::OPENAT, arguments);
        race.count("call.open", outcome.way);
        race.same("way of open", outcome.way == Way::Fast, fast);
        self.generation.store(GENERATION, Ordering::Relaxed);
        let Some(name) = found else { return };
        let pending = outcome.way == Way::Fast;
        if !pending {
            self.settle();
            let recipe = &self.recipes[name];
            let file = OpenFile::new(Body::Stream(recipe.stream.clone()), Some(recipe.node.clone()), recipe.flags);
            *file.code.borrow_mut() = recipe.code.clone();
            let slot = Slot { file: Arc::new(file), close_on_exec: recipe.close_on_exec };
            outcome.result = in_rax(self.table.add(slot, 0, LIMIT).map(|descriptor| descriptor.0.into()));
        }
        let expected = if u64::from(lowest) < LIMIT { Ok(lowest.into()) } else { Err(Errno::EMFILE) };
        race.same("result of open", outcome.result, in_rax(expected));
        if expected.is_ok() {
            self.model.insert(lowest, Open { name, pending });
        }
    }

    fn close(&mut self, race: &mut Race) {
        let descriptor = match race.random.below(20) {
            0 => race.random.pick(&[u64::MAX, 64, 63, 256, 1 << 40]),
            1 => race.random.below(LIMIT + 2),
            _ => {
                let pending: Vec<u32> = self.model.iter().filter(|at| at.1.pending).map(|at| *at.0).collect();
                if pending.is_empty() { race.random.below(LIMIT) } else { race.random.pick(&pending).into() }
            }
        };
        let open = u32::try_from(descriptor).ok().and_then(|at| self.model.get(&at).copied());
        let arguments = [descriptor, race.random.bits(), race.random.bits()];
        let mut outcome = race.caller.call(self.close.entry().address(), nr::CLOSE, arguments);
        race.count("call.close", outcome.way);
        race.same("way of close", outcome.way == Way::Fast, open.is_some_and(|open| open.pending));
        if outcome.way == Way::Slow {
            // The emulator looks at the lower half.
            let removed = self.table.remove(Descriptor::from_register(descriptor)).map(|_| 0);
            self.settle();
            outcome.result = in_rax(removed);
            let really = self.model.remove(&(descriptor as u32));
            race.same("result of close", outcome.result, in_rax(really.map(|_| 0).ok_or(Errno::EBADF)));
            return;
        }
        race.same("result of close", outcome.result, 0);
        self.model.remove(&(descriptor as u32));
    }

    /// The same open file behind another descriptor.
    fn duplicate(&mut self, race: &mut Race) {
        let Some((&from, &open)) = self.model.iter().nth(race.random.below(self.model.len() as u64) as usize) else {
            return;
        };
        let slot = self.table.slot(Descriptor(from)).expect("the descriptor is open");
        self.settle();
        let to = race.random.below(LIMIT) as u32;
        if self.table.replace(Descriptor(to), slot, LIMIT).is_ok() {
            self.model.insert(to, Open { pending: false, ..open });
        }
    }

    /// Looks at all descriptors.
    fn look(&mut self, race: &mut Race) {
        self.settle();
        let list = self.table.list().collect::<Vec<_>>();
        let numbers: Vec<u32> = list.iter().map(|(descriptor, _)| descriptor.0).collect();
        race.same("open descriptors", numbers, self.model.keys().copied().collect());
        for (descriptor, file) in list {
            let recipe = &self.recipes[self.model[&descriptor.0].name];
            let right = file.node().is_some_and(|node| Arc::ptr_eq(node, &recipe.node)) && file.flags() == recipe.flags;
            race.same("open file behind the descriptor", (descriptor, right), (descriptor, true));
            let close_on_exec = self.table.slot(descriptor).is_some_and(|slot| slot.close_on_exec);
            race.same("close on exec", close_on_exec, recipe.close_on_exec);
        }
    }
}
