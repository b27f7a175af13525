//! Copies for rates that are known, all at once: the greedy algorithm on values.
//!
//! Values of copies fall with the number of copies, so taking the best copy again and again is within a constant factor of
//! the best plan (greedy maximization of a submodular function) and, where all objects have one size, near it in practice;
//! `crates/redundancy-sim` measures how near.

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::{Costs, Demand, Formula, Goals, NodeId, ObjectId, Standing, mutant};

/// What is known.
pub struct Known<'a> {
    /// Bytes and costs of each object.
    pub objects: &'a [(u32, Costs)],
    /// Home of each object.
    pub homes: &'a [NodeId],
    /// Reads and writes per second, by object and then by node.
    pub rates: &'a [Vec<[f32; 2]>],
    /// Bytes of each node's budget.
    pub budget: &'a [u64],
    pub goals: Goals,
    /// Shares of time for which a node and a disk are down.
    pub outage: [f32; 2],
}

/// A copy that might be made.
struct Candidate {
    density: f32,
    object: ObjectId,
    node: NodeId,
    /// Copies that there were when the density was computed.
    others: u32,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.density.total_cmp(&other.density).then_with(|| (other.object, other.node).cmp(&(self.object, self.node)))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl Known<'_> {
    fn density(&self, object: ObjectId, node: NodeId, copies: &[NodeId]) -> f32 {
        let rates = &self.rates[object as usize];
        let sum = |kind: usize| rates.iter().map(|rate| rate[kind]).sum();
        let [own_reads, own_writes] = rates[usize::from(node)];
        let demand = Demand { own_reads, reads: sum(0), own_writes, writes: sum(1) };
        let home = self.homes[object as usize];
        let [down, disk] = self.outage;
        let lost = |copies: &mut dyn Iterator<Item = NodeId>| {
            let (mut apart, mut alone) = (1.0, 1.0);
            copies.for_each(|copy| *if copy == home { &mut alone } else { &mut apart } *= down);
            (down + disk * alone) * apart
        };
        let lost_without = lost(&mut copies.iter().copied());
        let lost_with = lost(&mut copies.iter().copied().chain([node]));
        let standing = Standing { others: copies.len() as u32, lost_without, lost_with };
        let (bytes, costs) = &self.objects[object as usize];
        Formula::Marginal.value(costs, self.goals, &demand, &standing) / *bytes as f32
    }
}

/// The nodes that should have a copy of each object.
pub fn plan(known: &Known) -> Vec<Vec<NodeId>> {
    let mut copies: Vec<Vec<NodeId>> = vec![Vec::new(); known.objects.len()];
    let mut room = known.budget.to_vec();
    let mut heap = BinaryHeap::new();
    for object in 0..known.objects.len() as ObjectId {
        for node in 0..known.budget.len() as NodeId {
            heap.push(Candidate { density: known.density(object, node, &[]), object, node, others: 0 });
        }
    }
    while let Some(mut best) = heap.pop() {
        let there = &mut copies[best.object as usize];
        let (room, bytes) = (&mut room[usize::from(best.node)], u64::from(known.objects[best.object as usize].0));
        if best.density <= 0.0 || (*room < bytes && !mutant::is("plan.budget")) {
            continue;
        }
        // Others were made since: what this one adds to them is less.
        if best.others != there.len() as u32 {
            best.others = there.len() as u32;
            best.density = known.density(best.object, best.node, there);
            heap.push(best);
            continue;
        }
        *room = room.saturating_sub(bytes);
        there.push(best.node);
    }
    copies
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { local: 0.1, remote: 1.0, original: 20.0, update: 0.5, create: 1.0 };

    fn rates(nodes: usize, objects: usize) -> Vec<Vec<[f32; 2]>> {
        (0..objects).map(|object| vec![[1.0 / (object + 1) as f32, 0.0]; nodes]).collect()
    }

    fn known<'a>(rates: &'a [Vec<[f32; 2]>], objects: &'a [(u32, Costs)], budget: &'a [u64]) -> Known<'a> {
        const HOMES: [NodeId; 16] = [0; 16];
        let homes = &HOMES[..objects.len()];
        Known { objects, homes, rates, budget, goals: Goals { failure_seconds: 0.0 }, outage: [0.01, 0.01] }
    }

    #[test]
    fn the_budget_is_used_and_not_exceeded() {
        let (objects, rates, budget) = ([(3, COSTS); 10], rates(3, 10), [7, 3, 100]);
        let copies = plan(&known(&rates, &objects, &budget));
        let kept = |node| copies.iter().filter(|copies| copies.contains(&node)).count();
        assert_eq!([kept(0), kept(1), kept(2)], [2, 1, 10]);
    }

    #[test]
    fn distinct_objects_come_before_second_copies_of_all_but_the_most_read() {
        let (objects, rates, budget) = ([(1, COSTS); 16], rates(2, 16), [4, 4]);
        let copies = plan(&known(&rates, &objects, &budget));
        assert!(copies.iter().filter(|copies| !copies.is_empty()).count() >= 7, "{copies:?}");
        assert!(copies[0].len() >= copies[1].len());
    }

    #[test]
    fn what_is_only_written_gets_no_copy() {
        let objects = [(1, COSTS); 2];
        let rates = [vec![[0.0, 5.0]; 2], vec![[1.0, 0.0]; 2]];
        let copies = plan(&known(&rates, &objects, &[2, 2]));
        assert_eq!((copies[0].len(), copies[1].len()), (0, 2));
    }
}
