//! What synthesized code was made of, for who looks at it: what the holes stand for, and all templates. The facts themselves stand
//! beside the templates of each family.

use crate::{automaton, call, file, pipe, schedule, screen, sound, trace, tty};

/// What hole `hole` of a routine named `routine` stands for: the facts kept next to the templates it was made of.
pub fn fact(machine: &dyn machine::Machine, routine: &str, hole: &str) -> Option<&'static synth::Fact> {
    let family = match routine.split('.').next() {
        Some("pipe") => pipe::FACTS,
        Some("file") => file::WINDOW_FACTS,
        Some("outside") => file::FERRY_FACTS,
        Some("tty") => tty::FACTS,
        Some("window") => screen::FACTS,
        Some("timer") => schedule::timer::FACTS,
        Some("raw") => tty::raw::FACTS,
        Some("call") => call::OPEN_FACTS,
        Some("trace") => trace::FACTS,
        Some("watch") => call::watch::FACTS,
        Some("sound") => sound::FACTS,
        _ => &[],
    };
    let mut lists = [family, call::FACTS, machine::THREAD_FACTS, machine.facts(), automaton::FACTS].into_iter();
    lists.find_map(|list| list.iter().find(|fact| fact.hole == hole))
}

/// All templates of call routines, for the golden listings.
#[expect(clippy::disallowed_methods, reason = "for tests")]
pub fn templates() -> alloc::vec::Vec<synth::Template> {
    [
        call::templates().as_slice(),
        &pipe::templates(),
        &file::window_templates(),
        &file::positioned_templates(),
        &file::ferry_templates(),
        &tty::templates(),
        &automaton::templates(),
        &trace::templates(),
    ]
    .concat()
}
