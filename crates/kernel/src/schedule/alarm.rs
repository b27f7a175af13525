//! Alarms (S-77): what happens at which time.
//!
//! ```text
//!   entries:  far │ last │ … │ second │ first │ room         the first is on top
//!              └ when the first of the others is due: a tree, from which they come in parts
//! ```
//! Near alarms are few, so that setting one in the midst of them moves little; thousands lie in the tree.
//! The timer's interrupt takes the first alarm by itself if what is to be done is code ([`super::timer`]): it counts
//! `alarm_count` down and stores when the next is due. Rust sees that at its next change. While Rust changes anything,
//! `due` says that there is no alarm: an interrupt that comes in then leaves all to the kernel.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{Ordering, compiler_fence};

use machine::{Alarm, AlarmEntry, Entry as CodeEntry, NEVER, Nanos, Ordered, ScheduleWords, TteId};

/// Names a set alarm; the time comes first, so that ids sort by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AlarmId(Nanos, u64);

/// What an alarm does in Rust.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AlarmTarget {
    /// Unblocks a thread.
    Thread(TteId),
    /// Calls a procedure that the scheduler knows.
    Call(Bell),
}

/// Names a procedure for alarms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bell(pub(super) u32);

/// A procedure for an alarm, in interrupt context: it must not sleep.
pub trait Ring: Send + Sync {
    fn ring(&self, now: Nanos);
}

/// What is done at an alarm.
type Routine = CodeEntry<AlarmEntry>;

pub(super) type Entry = Alarm<AlarmTarget>;

/// Set alarms. Invariants: of the first `alarm_count` entries `(at, number)` falls. The very first is no alarm: it is due when the
/// first of the far ones is, for which the interrupt goes to the kernel, or never; and no far one is due before a near one.
pub struct Alarms {
    /// A stack, with room behind its top.
    entries: &'static mut [Entry; NEAR_MOST + 1],
    far: Ordered<AlarmId, Entry>,
    words: &'static ScheduleWords,
    number: u64,
    /// Where the interrupt goes for an alarm that is Rust's.
    kernel: Routine,
}

/// So many alarms are near; with one more the later half goes far.
const NEAR_MOST: usize = 64;

/// It comes before all others, those that are never due among them.
const NONE: Entry =
    Entry { at: NEVER, routine: Routine::RUST, number: u64::MAX, target: AlarmTarget::Thread(TteId(u32::MAX)) };

impl Alarms {
    /// No alarms. `words` are shared with the timer's interrupt; nobody else changes alarms there.
    pub fn new(words: &'static ScheduleWords) -> Alarms {
        let alarms = Alarms {
            entries: words.alarms.lead_to(Box::leak(Box::new([NONE; NEAR_MOST + 1]))),
            far: Ordered::new(),
            words,
            number: 0,
            kernel: Routine::RUST,
        };
        alarms.publish(1, false);
        alarms
    }

    /// From now on `kernel` is where the interrupt goes for an alarm that is Rust's.
    pub fn set_kernel(&mut self, kernel: Routine) {
        let (count, is_forced) = self.close();
        self.kernel = kernel;
        let all = self.entries.iter_mut().chain(self.far.values_mut());
        all.filter(|entry| entry.routine == Routine::RUST).for_each(|entry| entry.routine = kernel);
        self.publish(count, is_forced);
    }

    fn count(&self) -> usize {
        self.words.alarm_count.load(Relaxed) as usize
    }

    /// Keeps the timer's interrupt away. How many entries there are, and whether all interrupts are the kernel's.
    #[inline(always)]
    fn close(&mut self) -> (usize, bool) {
        let is_forced = self.words.due.load(Relaxed) == 0;
        self.words.due.store(NEVER, Relaxed);
        compiler_fence(Ordering::SeqCst);
        (self.count(), is_forced)
    }

    #[inline(always)]
    fn publish(&self, count: usize, is_forced: bool) {
        let Some(first) = self.entries.get(count - 1) else { return };
        self.words.alarm_count.store(count as u64, Relaxed);
        self.words.routine.store(if is_forced { self.kernel } else { first.routine });
        compiler_fence(Ordering::SeqCst);
        self.words.due.store(if is_forced { 0 } else { first.at }, Relaxed);
    }

    /// When the first far alarm is due has changed, perhaps.
    fn note_far(&mut self) {
        let at = self.far.first().map_or(NEVER, |(id, _)| id.0.0);
        self.entries[0] = Entry { at, routine: self.kernel, ..NONE };
    }

    /// The later half of the near alarms, of `count` entries, goes far. How many entries stay.
    fn send_far(&mut self, count: usize) -> usize {
        const SENT: usize = NEAR_MOST / 2;
        for entry in &self.entries[1..=SENT] {
            put_far(&mut self.far, entry);
        }
        self.entries.copy_within(SENT + 1..count, 1);
        self.note_far();
        count - SENT
    }

    /// The first far alarms come near. Only while none is near.
    #[cold]
    fn bring_near(&mut self) -> usize {
        const BROUGHT: usize = NEAR_MOST / 4;
        let count = self.far.len().min(BROUGHT);
        for place in (1..=count).rev() {
            let Some((_, entry)) = self.far.pop_first() else { break };
            self.entries[place] = entry;
        }
        self.note_far();
        count + 1
    }

    /// Has all interrupts of the timer come to the kernel, or only those for which it is needed.
    pub fn force(&mut self, is_forced: bool) {
        let (count, _) = self.close();
        self.publish(count, is_forced);
    }

    /// Sets an alarm. `Entry::RUST`: it is Rust's. Of alarms for the same time the first that was set rings first.
    #[inline]
    pub fn set(&mut self, at: Nanos, target: AlarmTarget, routine: Routine) -> AlarmId {
        // A `due` of 0 has a meaning of its own; what was to ring at the beginning of time is due in either case.
        let at = at.max(Nanos(1));
        self.number += 1;
        let routine = if routine == Routine::RUST { self.kernel } else { routine };
        let words = self.words;
        let due = words.due.load(Relaxed);
        words.due.store(NEVER, Relaxed);
        compiler_fence(Ordering::SeqCst);
        let count = words.alarm_count.load(Relaxed) as usize;
        match self.entries.get_mut(count) {
            // The usual case: it is the first of all.
            Some(place) if at.0 < due => {
                place.at = at.0;
                place.routine = routine;
                place.number = self.number;
                place.target = target;
                words.alarm_count.store(count as u64 + 1, Relaxed);
                words.routine.store(routine);
                compiler_fence(Ordering::SeqCst);
                words.due.store(at.0, Relaxed);
            }
            _ => self.insert(Entry { at: at.0, routine, number: self.number, target }, due == 0),
        }
        AlarmId(at, self.number)
    }

    #[cold]
    fn insert(&mut self, entry: Entry, is_forced: bool) {
        let mut count = self.count();
        if entry.at >= self.entries[0].at {
            put_far(&mut self.far, &entry);
            self.publish(count, is_forced);
            return;
        }
        if count == self.entries.len() {
            count = self.send_far(count);
        }
        if entry.at >= self.entries[0].at {
            put_far(&mut self.far, &entry);
            self.note_far();
            self.publish(count, is_forced);
            return;
        }
        let place = self.entries[..count].partition_point(|other| other.at > entry.at).max(1);
        self.entries.copy_within(place..count, place + 1);
        self.entries[place] = entry;
        self.publish(count + 1, is_forced);
    }

    /// Sets `old` anew, or a new alarm if there is none. `meanwhile` is done when `old` can ring no more, and the new one not yet.
    #[inline]
    pub fn replace(
        &mut self,
        old: Option<AlarmId>,
        at: Nanos,
        target: AlarmTarget,
        routine: Routine,
        meanwhile: impl FnOnce(),
    ) -> AlarmId {
        let Some(old) = old else {
            meanwhile();
            return self.set(at, target, routine);
        };
        let at = at.max(Nanos(1));
        let words = self.words;
        let due = words.due.load(Relaxed);
        words.due.store(NEVER, Relaxed);
        compiler_fence(Ordering::SeqCst);
        let count = words.alarm_count.load(Relaxed) as usize;
        // The usual case: it was the first of all and stays so.
        if let Some([.., second, first]) = self.entries.get_mut(..count)
            && first.number == old.1
            && at.0 < second.at
            && due != 0
            && routine != Routine::RUST
        {
            meanwhile();
            self.number += 1;
            (first.at, first.routine, first.number) = (at.0, routine, self.number);
            words.routine.store(routine);
            compiler_fence(Ordering::SeqCst);
            words.due.store(at.0, Relaxed);
            return AlarmId(at, self.number);
        }
        // What was due may have been taken since it was looked at.
        words.due.store(if due == 0 { 0 } else { NEVER }, Relaxed);
        self.cancel(old);
        meanwhile();
        self.set(at, target, routine)
    }

    /// Takes an alarm back, if it has not rung.
    pub fn cancel(&mut self, id: AlarmId) {
        let (count, is_forced) = self.close();
        let is_first = self.entries.get(count - 1).is_some_and(|first| first.number == id.1);
        let was_near = is_first || self.remove(id, count);
        self.publish(count - usize::from(was_near), is_forced);
    }

    /// Whether it was a near one.
    #[cold]
    fn remove(&mut self, id: AlarmId, count: usize) -> bool {
        let set = &mut self.entries[..count];
        let place = set.partition_point(|entry| AlarmId(Nanos(entry.at), entry.number) > id);
        let is_near = place > 0 && set.get(place).is_some_and(|entry| entry.number == id.1);
        if is_near {
            set.copy_within(place + 1.., place);
        } else if self.far.remove(&id).is_some() {
            self.note_far();
        }
        is_near
    }

    /// When the first alarm is due, or [`NEVER`].
    pub fn next(&self) -> u64 {
        self.entries.get(self.count() - 1).map_or(NEVER, |first| first.at)
    }

    /// Takes the first alarm if it is due.
    pub fn take_due(&mut self, now: Nanos) -> Option<AlarmTarget> {
        if self.next() > now.0 {
            return None;
        }
        let (mut count, is_forced) = self.close();
        if count == 1 {
            count = self.bring_near();
        }
        let first = self.entries[count - 1];
        if first.at > now.0 {
            self.publish(count, is_forced);
            return None;
        }
        self.publish(count - 1, is_forced);
        Some(first.target)
    }
}

fn put_far(far: &mut Ordered<AlarmId, Entry>, entry: &Entry) {
    far.put(AlarmId(Nanos(entry.at), entry.number), *entry);
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::collections::BTreeMap;

    use super::*;

    fn code() -> Routine {
        crate::practice::entry(77)
    }

    fn alarms() -> Alarms {
        Alarms::new(Box::leak(Box::new(ScheduleWords::new())))
    }

    fn due(alarms: &mut Alarms, now: u64) -> Option<u32> {
        match alarms.take_due(Nanos(now)) {
            Some(AlarmTarget::Thread(id)) => Some(id.0),
            _ => None,
        }
    }

    #[test]
    fn alarms_ring_in_order_and_never_early() {
        let mut alarms = alarms();
        for (at, id) in [(30, 3), (10, 1), (20, 2), (20, 4)] {
            alarms.set(Nanos(at), AlarmTarget::Thread(TteId(id)), Routine::RUST);
        }
        let cancelled = alarms.set(Nanos(5), AlarmTarget::Thread(TteId(9)), Routine::RUST);
        alarms.cancel(cancelled);
        let in_the_midst = alarms.set(Nanos(20), AlarmTarget::Thread(TteId(8)), Routine::RUST);
        alarms.cancel(in_the_midst);
        alarms.cancel(in_the_midst);
        let mut due = |now| due(&mut alarms, now);
        assert_eq!((due(9), due(10), due(19)), (None, Some(1), None));
        assert_eq!((due(25), due(25), due(25)), (Some(2), Some(4), None));
        assert_eq!((due(30), due(99)), (Some(3), None));
    }

    #[test]
    fn what_the_interrupt_has_taken_is_gone() {
        let mut alarms = alarms();
        let taken = alarms.set(Nanos(10), AlarmTarget::Thread(TteId(1)), code());
        alarms.set(Nanos(20), AlarmTarget::Thread(TteId(2)), Routine::RUST);
        let words = alarms.words;
        assert_eq!((words.due.load(Relaxed), words.routine.entry()), (10, code()));
        words.alarm_count.fetch_sub(1, Relaxed);
        assert_eq!(alarms.next(), 20);
        alarms.cancel(taken);
        assert_eq!((due(&mut alarms, 15), due(&mut alarms, 20), words.due.load(Relaxed)), (None, Some(2), NEVER));
    }

    #[test]
    fn an_alarm_at_the_beginning_of_time_leaves_other_interrupts_to_the_machine() {
        let mut alarms = alarms();
        let first = alarms.set(Nanos(0), AlarmTarget::Thread(TteId(1)), code());
        assert_eq!(alarms.words.due.load(Relaxed), 1);
        alarms.replace(Some(first), Nanos(0), AlarmTarget::Thread(TteId(1)), code(), || ());
        assert_eq!(alarms.words.due.load(Relaxed), 1);
        assert_eq!((due(&mut alarms, 1), alarms.words.due.load(Relaxed)), (Some(1), NEVER));
    }

    #[test]
    fn alarms_that_are_never_due_can_be_taken_back() {
        let mut alarms = alarms();
        let mut set = |at| alarms.set(Nanos(at), AlarmTarget::Thread(TteId(1)), code());
        let ids = [set(NEVER), set(20), set(NEVER), set(30)];
        for (left, id) in ids.into_iter().enumerate() {
            alarms.cancel(id);
            assert_eq!(alarms.count() + alarms.far.len(), ids.len() - left, "what is no alarm is always there");
        }
    }

    #[test]
    fn thousands_ring_in_order_wherever_they_lie() {
        let (mut alarms, mut model, mut random) = (alarms(), BTreeMap::new(), 7u64);
        let (mut now, mut most_far) = (0, 0);
        for step in 0..60_000u32 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = now + 1 + (random >> 40) % 5000;
            match random >> 33 & 7 {
                // Grows at first and shrinks later.
                kind @ 0..3 if step < 30_000 || kind == 0 => {
                    let id = alarms.set(Nanos(at), AlarmTarget::Thread(TteId(step)), code());
                    model.insert(id, step);
                }
                1 | 3 => {
                    let found = model.range(AlarmId(Nanos(at), 0)..).next().map(|(id, _)| *id);
                    if let Some(id) = found {
                        alarms.cancel(id);
                        model.remove(&id);
                    }
                }
                4 => {
                    now += random >> 60;
                    while let Some(id) = due(&mut alarms, now) {
                        let first = model.pop_first().map(|(first, id)| (first.0.0 <= now, id));
                        assert_eq!(first, Some((true, id)));
                    }
                }
                _ => {}
            }
            assert_eq!(alarms.next(), model.first_key_value().map_or(NEVER, |(id, _)| id.0.0));
            assert_eq!(alarms.words.due.load(Relaxed), alarms.next());
            assert_eq!(alarms.count() - 1 + alarms.far.len(), model.len());
            most_far = most_far.max(alarms.far.len());
        }
        assert!(most_far > 500, "{most_far}");
    }

    #[test]
    fn while_all_is_the_kernels_it_stays_so() {
        let mut alarms = alarms();
        alarms.force(true);
        alarms.set(Nanos(10), AlarmTarget::Thread(TteId(1)), code());
        assert_eq!(alarms.words.due.load(Relaxed), 0);
        alarms.force(false);
        assert_eq!(alarms.words.due.load(Relaxed), 10);
    }
}
