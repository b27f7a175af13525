//! What a copy is worth.
//!
//! Values are in **seconds saved per second**: with Little's law, by how much the number of accesses that are under way falls
//! when the copy is there. Divided by the bytes of the copy they are what decides under a budget of bytes.

use crate::mutant;
use crate::{Costs, Goals};

/// Accesses per second, estimated.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Demand {
    /// Reads by the node that has the copy, or would have it.
    pub own_reads: f32,
    /// Reads by all nodes.
    pub reads: f32,
    /// Writes by the node itself.
    pub own_writes: f32,
    /// Writes by all nodes.
    pub writes: f32,
}

/// What else there is of the object.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Standing {
    /// Copies in the memories of other nodes.
    pub others: u32,
    /// Probability that nothing of the object can be reached without the copy in question.
    pub lost_without: f32,
    /// The same with it.
    pub lost_with: f32,
}

/// Several formulas, for "it is unlikely that one single value calculation formula will be the best" (overview, 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Formula {
    /// The overview's "simple value management": frequencies of reading and writing, creation and maintenance. A copy is
    /// worth what its own node saves against the original, whatever else there is.
    ///
    /// ```text
    /// own_reads · (original − local) − writes · update
    /// ```
    Frequency,
    /// What the copy adds to what there is already. Another copy in memory makes it worth only the way over the network; the
    /// only copy serves the other nodes, too; and what makes failures rarer is worth what they cost.
    ///
    /// ```text
    /// others > 0:  own_reads · (remote − local)
    /// others = 0:  own_reads · (original − local) + (reads − own_reads) · (original − remote)
    /// + (reads + writes) · failure_seconds · (lost_without − lost_with)
    /// − (writes − own_writes) · update
    /// ```
    Marginal,
    /// The overview's "cost/performance ratio": the gain of `Marginal` divided by what is spent, where a copy that is
    /// written as often as read is held to be twice as large.
    ///
    /// ```text
    /// gain / (1 + writes / reads)
    /// ```
    Ratio,
}

impl Formula {
    /// The value of a copy, in seconds per second. Negative: the object is better off without it.
    pub fn value(self, costs: &Costs, goals: Goals, demand: &Demand, standing: &Standing) -> f32 {
        match self {
            Formula::Frequency => demand.own_reads * (costs.original - costs.local) - demand.writes * costs.update,
            Formula::Marginal => gain(costs, goals, demand, standing) - maintenance(costs, demand),
            Formula::Ratio => {
                let gain = gain(costs, goals, demand, standing);
                gain * demand.reads / (demand.reads + demand.writes).max(f32::MIN_POSITIVE)
            }
        }
    }
}

/// Seconds per second that accesses save, failures counted as seconds.
fn gain(costs: &Costs, goals: Goals, demand: &Demand, standing: &Standing) -> f32 {
    let foreign = if mutant::is("value.foreign") { 0.0 } else { demand.reads - demand.own_reads };
    let faster = if standing.others > 0 && !mutant::is("value.others") {
        demand.own_reads * (costs.remote - costs.local)
    } else {
        demand.own_reads * (costs.original - costs.local) + foreign.max(0.0) * (costs.original - costs.remote)
    };
    let rescued = if mutant::is("value.failures") { 0.0 } else { standing.lost_without - standing.lost_with };
    faster + (demand.reads + demand.writes) * goals.failure_seconds * rescued.max(0.0)
}

/// Seconds per second that writes by others take longer.
fn maintenance(costs: &Costs, demand: &Demand) -> f32 {
    if mutant::is("value.writes") { 0.0 } else { (demand.writes - demand.own_writes).max(0.0) * costs.update }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { local: 1.0, remote: 10.0, original: 100.0, update: 8.0, create: 8.0 };
    const GOALS: Goals = Goals { failure_seconds: 1000.0 };
    const ALONE: Standing = Standing { others: 0, lost_without: 0.02, lost_with: 0.001 };
    const SECOND: Standing = Standing { others: 1, lost_without: 0.001, lost_with: 0.0001 };

    fn worth(demand: Demand, standing: Standing) -> f32 {
        Formula::Marginal.value(&COSTS, GOALS, &demand, &standing)
    }

    #[test]
    fn the_formula_is_what_its_text_says() {
        let demand = Demand { own_reads: 2.0, reads: 5.0, own_writes: 0.5, writes: 1.5 };
        let alone = 2.0 * 99.0 + 3.0 * 90.0 + 6.5 * 1000.0 * 0.019 - 8.0;
        assert!((worth(demand, ALONE) - alone).abs() < 1e-3);
        let second = 2.0 * 9.0 + 6.5 * 1000.0 * 0.0009 - 8.0;
        assert!((worth(demand, SECOND) - second).abs() < 1e-3);
        let frequency = Formula::Frequency.value(&COSTS, GOALS, &demand, &ALONE);
        assert!((frequency - (2.0 * 99.0 - 12.0)).abs() < 1e-3);
        let ratio = Formula::Ratio.value(&COSTS, GOALS, &demand, &ALONE);
        assert!((ratio - (alone + 8.0) * 5.0 / 6.5).abs() < 1e-3);
    }

    #[test]
    fn the_only_copy_is_worth_more_than_a_second_one() {
        let demand = Demand { own_reads: 1.0, reads: 4.0, ..Demand::default() };
        assert!(worth(demand, ALONE) > 10.0 * worth(demand, SECOND));
    }

    #[test]
    fn what_others_write_costs_and_what_the_node_writes_does_not() {
        let read = Demand { own_reads: 1.0, reads: 1.0, ..Demand::default() };
        let written = Demand { writes: 10.0, ..read };
        let own = Demand { own_writes: 10.0, ..written };
        assert!(worth(written, SECOND) < 0.0);
        assert!(worth(own, SECOND) > worth(read, SECOND));
    }
}
