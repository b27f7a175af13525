//! A run: accesses, failures, a policy.

use crate::failure::{Event, Happening};
use crate::policy::Policy;
use crate::world::Work;
use crate::{Access, Found, World};

/// What a run came to, its first part left out.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Accesses by nodes that were up.
    pub attempted: u64,
    pub served: u64,
    /// Seconds of those that were served.
    pub seconds: f64,
    /// Reads that were served, by where.
    pub local: u64,
    pub remote: u64,
    pub original: u64,
    pub work: Work,
}

impl Outcome {
    /// Mean access time in seconds, of accesses that were served.
    pub fn access_seconds(&self) -> f64 {
        self.seconds / self.served.max(1) as f64
    }

    /// Apparent availability: over attempted accesses.
    pub fn availability(&self) -> f64 {
        self.served as f64 / self.attempted.max(1) as f64
    }

    /// Both goals as one figure: a failure counts as so many seconds.
    pub fn cost(&self, failure_seconds: f64) -> f64 {
        (self.seconds + (self.attempted - self.served) as f64 * failure_seconds) / self.attempted.max(1) as f64
    }
}

/// Runs. Accesses before `from` warm memories up and are not counted; both lists are in order of time.
pub fn run(
    world: &mut World,
    accesses: impl Iterator<Item = Access>,
    events: &[Event],
    policy: &mut dyn Policy,
    from: f64,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut events = events.iter().copied().peekable();
    let mut before = None;
    for access in accesses {
        while let Some(event) = events.next_if(|event| event.at <= access.at) {
            world.now = event.at;
            happen(world, event, policy);
        }
        world.now = access.at;
        if access.at >= from && before.is_none() {
            before = Some(world.work);
        }
        if !redundancy::Store::is_up(world, access.node) {
            continue;
        }
        let served = serve(world, access, policy);
        if before.is_some() {
            outcome.count(served);
        }
    }
    let before = before.unwrap_or_default();
    outcome.work.created = world.work.created - before.created;
    outcome.work.moved = world.work.moved - before.moved;
    outcome.work.lost_writes = world.work.lost_writes - before.lost_writes;
    outcome
}

impl Outcome {
    fn count(&mut self, served: Option<(f64, Option<Found>)>) {
        self.attempted += 1;
        let Some((seconds, found)) = served else { return };
        self.served += 1;
        self.seconds += seconds;
        match found {
            Some(Found::Local) => self.local += 1,
            Some(Found::Remote(_)) => self.remote += 1,
            Some(Found::Original) => self.original += 1,
            None => {}
        }
    }
}

fn serve(world: &mut World, access: Access, policy: &mut dyn Policy) -> Option<(f64, Option<Found>)> {
    let Access { node, object, .. } = access;
    if access.is_write {
        policy.write(world, node, object);
        let seconds = world.write(node, object, policy.protocol())?;
        policy.written(world, node, object);
        return Some((seconds, None));
    }
    let (seconds, found) = world.read(node, object, policy.protocol())?;
    policy.read(world, node, object, found);
    Some((seconds, Some(found)))
}

fn happen(world: &mut World, event: Event, policy: &mut dyn Policy) {
    let was_up = redundancy::Store::is_up(world, event.node);
    if event.what == Happening::Leave {
        if !was_up {
            return;
        }
        policy.leaving(world, event.node);
    }
    world.happen(event);
    let is_up = redundancy::Store::is_up(world, event.node);
    match event.what {
        Happening::Leave => policy.left(event.node),
        Happening::Down if was_up => policy.down(world, event.node),
        Happening::Up if is_up && !was_up => policy.up(world, event.node),
        _ => {}
    }
}
