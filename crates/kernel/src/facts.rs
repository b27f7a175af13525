//! What synthesized code was made of, for who looks at it: what the holes stand for. The facts themselves stand beside the templates of
//! each family, and its declaration names them.

use crate::call::watch::WatchWords;
use crate::{automaton, call, classes};
use quaject::Quaject;

/// What hole `hole` of a routine named `routine` stands for: the facts kept next to the templates it was made of.
pub fn fact(machine: &dyn machine::Machine, routine: &str, hole: &str) -> Option<&'static synth::Fact> {
    let mut all = classes().chain([WatchWords::class()]);
    let declared = all.find(|class| class.makes(routine)).and_then(|class| class.fact(hole));
    declared.or_else(|| {
        let mut general = [call::FACTS, machine::THREAD_FACTS, machine.facts(), automaton::FACTS].into_iter();
        general.find_map(|list| list.iter().find(|fact| fact.hole == hole))
    })
}
