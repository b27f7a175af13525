//! A server of 9P2000.L in memory, behind a device that a seed drives.

use std::collections::BTreeMap;

use abi::Errno;
use kernel::file::share::{Service, Share};
use kernel::file::{Credentials, FinalLink, ForeignTree, Mount, Namespace, Time, View, Volume};
use kernel::schedule::{AlarmCall, AlarmTarget, Bell, Scheduler};
use machine::{Courier, CourierLost, KernelCell, Nanos, Procedure};
use machine_sim::Random;
use std::sync::Arc;
use unix::boot::Ingredients;

/// Where the folder is seen.
pub const FOLDER: &str = "/far";
/// Questions about this name are never answered.
pub const SILENT: &[u8] = b"silent";
const ROOM: usize = 16 * 1024;
const SLOTS: usize = 4;
/// Questions that a kernel asks while it boots: they are answered at once, and rightly.
const AT_BOOT: u32 = 4;

/// How the server behaves.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub seed: u64,
    pub delay_ns_max: u64,
    /// In one of how many answers it lies; 0: never.
    pub lies_once_in: u64,
    /// The device says what cannot be after so many answers; 0: never.
    pub lost_after: u64,
}

static MANNER: KernelCell<Option<Manner>> = KernelCell::new(None);

pub fn set_manner(manner: Manner) {
    MANNER.set(Some(manner));
}

/// Shares the folder of a server with the manner that was set.
pub fn join(ingredients: &Ingredients, _: &bootimage::ConfigView<'_>, names: Namespace) -> Result<Namespace, String> {
    let manner = MANNER.get().ok_or("nobody has said how the server shall behave")?;
    mount(ingredients, &names, manner).map_err(|error| format!("the shared folder: {error:?}"))?;
    Ok(names)
}

fn mount(ingredients: &Ingredients, names: &Namespace, manner: Manner) -> Result<(), Errno> {
    let credentials = Credentials::root();
    let view = View::new(names.root(), names.root(), &credentials);
    names.make_directory(view, FOLDER.as_bytes(), 0o777, Time::default())?;
    let point = names.lookup(view, FOLDER.as_bytes(), FinalLink::Follow)?;
    let service = Service { user: 0, group: 0, is_read_only: false, device: 1 };
    let share = Share::start(Server::new(manner)?, service)?;
    let tree = Arc::new(ForeignTree::of_share(share, Credentials::root())?);
    let volume = Volume::of(ingredients.pool, tree.clone())?;
    let root = tree.top(&volume, 0, None)?;
    let text = |text: &str| Arc::from(text.as_bytes());
    names.mount(Mount { point, root, source: text("far"), kind: text("9p"), options: Arc::from([].as_slice()) })
}

/// What a fid stands for: a name in the only folder, which is the empty one.
type Place = Vec<u8>;

struct State {
    random: Random,
    files: BTreeMap<Vec<u8>, (u64, Vec<u8>)>,
    fids: BTreeMap<u32, Place>,
    next_number: u64,
    questions: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
    /// Slots whose answers are under way, and when they come.
    ways: Vec<(Nanos, usize)>,
    asked: u32,
    answered: u64,
    bell: Option<Bell>,
    procedure: Option<Procedure>,
}

pub struct Server {
    manner: Manner,
    state: KernelCell<State>,
}

impl Server {
    fn new(manner: Manner) -> Result<&'static Server, Errno> {
        let state = State {
            random: Random::new(manner.seed),
            files: BTreeMap::new(),
            fids: BTreeMap::new(),
            next_number: 2,
            questions: vec![vec![0; ROOM]; SLOTS],
            answers: vec![vec![0; ROOM]; SLOTS],
            ways: Vec::new(),
            asked: 0,
            answered: 0,
            bell: None,
            procedure: None,
        };
        let server: &'static Server = Box::leak(Box::new(Server { manner, state: KernelCell::new(state) }));
        let scheduler = Scheduler::the().ok_or(Errno::EIO)?;
        scheduler.make_bell_room()?;
        server.state.borrow_mut().bell = Some(scheduler.add_bell(Arc::new(Due(server))));
        Ok(server)
    }
}

/// The alarm of an answer.
struct Due(&'static Server);

impl AlarmCall for Due {
    fn ring(&self, _: Nanos) {
        let procedure = self.0.state.borrow().procedure.clone();
        procedure.into_iter().for_each(|procedure| procedure());
    }
}

impl Courier for Server {
    fn label(&self) -> &[u8] {
        b"far"
    }

    fn slots(&self) -> usize {
        SLOTS
    }

    fn room(&self) -> usize {
        ROOM
    }

    fn write(&self, slot: usize, offset: usize, bytes: &[u8]) {
        self.state.borrow_mut().questions[slot][offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn read(&self, slot: usize, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.state.borrow().answers[slot][offset..offset + into.len()]);
    }

    fn send(&self, slot: usize, bytes: usize) -> Result<(), CourierLost> {
        let scheduler = Scheduler::the().expect("the kernel runs");
        let now = scheduler.machine().now();
        let mut state = self.state.borrow_mut();
        let question = state.questions[slot][..bytes].to_vec();
        assert_eq!(u32::from_le_bytes(question[..4].try_into().expect("four bytes")) as usize, bytes);
        assert!(state.ways.iter().all(|(_, other)| *other != slot), "slot {slot} is under way");
        state.asked += 1;
        let is_boot = state.asked <= AT_BOOT;
        let Some(mut answer) = state.serve(&question) else { return Ok(()) };
        let lies = self.manner.lies_once_in > 0 && !is_boot && state.random.once_in(self.manner.lies_once_in);
        if lies {
            lie(&mut state.random, &mut answer);
        }
        state.answers[slot].fill(0xEE);
        state.answers[slot][..answer.len()].copy_from_slice(&answer);
        let delay = if is_boot { 0 } else { 1 + state.random.below(self.manner.delay_ns_max) };
        let due = now.saturating_add(Nanos(delay));
        state.ways.push((due, slot));
        let bell = state.bell.expect("the server has a bell");
        drop(state);
        if !is_boot {
            scheduler.set_alarm(due, AlarmTarget::Call(bell));
        }
        Ok(())
    }

    fn next_answer(&self) -> Result<Option<(usize, usize)>, CourierLost> {
        let now = Scheduler::the().map_or(Nanos(0), |scheduler| scheduler.machine().now());
        let mut state = self.state.borrow_mut();
        if self.manner.lost_after > 0 && state.answered >= self.manner.lost_after {
            return Err(CourierLost);
        }
        let Some(place) = state.ways.iter().position(|(due, _)| *due <= now) else { return Ok(None) };
        let (_, slot) = state.ways.remove(place);
        state.answered += 1;
        let told = u32::from_le_bytes(state.answers[slot][..4].try_into().expect("four bytes")) as usize;
        Ok(Some((slot, told)))
    }

    fn when_answered(&self, procedure: Procedure) {
        self.state.borrow_mut().procedure = Some(procedure);
    }
}

/// Changes an answer so that it is none: length, kind, tag, or what follows. Bytes of a read are left alone: nobody could tell.
fn lie(random: &mut Random, answer: &mut Vec<u8>) {
    match random.below(5) {
        0 => answer[0] = answer[0].wrapping_add(1 + random.below(200) as u8),
        1 => answer[4] = answer[4].wrapping_add(2),
        2 => answer[5] ^= 0x40,
        3 => answer.truncate(7),
        _ => *answer = message(7, [answer[5], answer[6]], &99_999u32.to_le_bytes()),
    }
}

fn message(kind: u8, tag: [u8; 2], body: &[u8]) -> Vec<u8> {
    let mut out = (7 + body.len() as u32).to_le_bytes().to_vec();
    out.push(kind);
    out.extend(tag);
    out.extend(body);
    out
}

/// What is left of a question.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken.to_vec()
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes(2).try_into().expect("two bytes"))
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes(4).try_into().expect("four bytes"))
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes(8).try_into().expect("eight bytes"))
    }

    fn text(&mut self) -> Vec<u8> {
        let count = self.u16().into();
        self.bytes(count)
    }
}

impl State {
    /// The answer; `None`: silence.
    fn serve(&mut self, question: &[u8]) -> Option<Vec<u8>> {
        let (kind, tag) = (question[4], [question[5], question[6]]);
        let mut reader = Reader(&question[7..]);
        let result = match kind {
            100 => Ok([&reader.u32().to_le_bytes()[..], &[8, 0], b"9P2000.L"].concat()),
            104 => {
                self.fids.insert(reader.u32(), Vec::new());
                Ok(self.qid(b""))
            }
            110 => self.walk(&mut reader)?,
            120 => self.fids.remove(&reader.u32()).map(|_| Vec::new()).ok_or(9),
            _ => {
                let fid = reader.u32();
                let place = self.fids.get(&fid).cloned();
                if place.as_deref() == Some(SILENT) {
                    return None;
                }
                place.ok_or(9).and_then(|place| self.of_place(kind, fid, &place, &mut reader))
            }
        };
        Some(match result {
            Ok(body) => message(kind + 1, tag, &body),
            Err(number) => message(7, tag, &u32::to_le_bytes(number)),
        })
    }

    fn qid(&self, place: &[u8]) -> Vec<u8> {
        let number = self.files.get(place).map_or(1, |(number, _)| *number);
        let kind = if place.is_empty() { 0x80 } else { 0 };
        [&[kind][..], &[0; 4], &number.to_le_bytes()].concat()
    }

    /// `None`: silence.
    fn walk(&mut self, reader: &mut Reader<'_>) -> Option<Result<Vec<u8>, u32>> {
        let (from, to, count) = (reader.u32(), reader.u32(), reader.u16());
        let Some(mut place) = self.fids.get(&from).cloned() else { return Some(Err(9)) };
        let mut qids = Vec::new();
        for _ in 0..count {
            let name = reader.text();
            if name == SILENT {
                return None;
            }
            if !place.is_empty() || !self.files.contains_key(&name) {
                return Some(Err(2));
            }
            place = name;
            qids.extend(self.qid(&place));
        }
        self.fids.insert(to, place);
        Some(Ok([&count.to_le_bytes()[..], &qids].concat()))
    }

    fn of_place(&mut self, kind: u8, fid: u32, place: &[u8], reader: &mut Reader<'_>) -> Result<Vec<u8>, u32> {
        match kind {
            12 => Ok([self.qid(place), vec![0; 4]].concat()),
            14 => {
                let name = reader.text();
                if self.files.contains_key(&name) {
                    return Err(17);
                }
                self.files.insert(name.clone(), (self.next_number, Vec::new()));
                self.next_number += 1;
                let qid = self.qid(&name);
                self.fids.insert(fid, name);
                Ok([qid, vec![0; 4]].concat())
            }
            24 => Ok(self.facts(place)),
            26 => {
                let valid = reader.u32();
                let _ = reader.bytes(12);
                let bytes = reader.u64();
                if valid & 8 != 0 {
                    self.files.get_mut(place).ok_or(2u32)?.1.resize(bytes as usize, 0);
                }
                Ok(Vec::new())
            }
            50 => Ok(Vec::new()),
            74 => {
                let (old, _, new) = (reader.text(), reader.u32(), reader.text());
                let file = self.files.remove(&old).ok_or(2u32)?;
                self.files.insert(new.clone(), file);
                self.fids.values_mut().filter(|place| **place == old).for_each(|place| place.clone_from(&new));
                Ok(Vec::new())
            }
            76 => self.files.remove(&reader.text()).map(|_| Vec::new()).ok_or(2),
            116 => {
                let (position, count) = (reader.u64() as usize, reader.u32() as usize);
                let bytes = &self.files.get(place).ok_or(2u32)?.1;
                let from = position.min(bytes.len());
                let data = &bytes[from..(from + count).min(bytes.len())];
                Ok([&(data.len() as u32).to_le_bytes()[..], data].concat())
            }
            118 => {
                let (position, count) = (reader.u64() as usize, reader.u32() as usize);
                let data = reader.bytes(count);
                let bytes = &mut self.files.get_mut(place).ok_or(2u32)?.1;
                if bytes.len() < position + count {
                    bytes.resize(position + count, 0);
                }
                bytes[position..position + count].copy_from_slice(&data);
                Ok((count as u32).to_le_bytes().to_vec())
            }
            _ => Err(95),
        }
    }

    fn facts(&self, place: &[u8]) -> Vec<u8> {
        let (mode, bytes) = match self.files.get(place) {
            Some((_, bytes)) => (0o100_666u32, bytes.len() as u64),
            None => (0o040_777, 0),
        };
        let mut body = [&0x7FFu64.to_le_bytes()[..], &self.qid(place), &mode.to_le_bytes(), &[0; 8]].concat();
        for number in [1, 0, bytes, 4096, bytes.div_ceil(512)] {
            body.extend(u64::to_le_bytes(number));
        }
        body.extend([0; 80]);
        body
    }
}
