//! The classes of the kernel's quajects.

use quaject::{Class, Quaject};

use crate::automaton::Editor;
use crate::call::{Null, Opens, Zero};
use crate::channel::Console;
use crate::counter;
use crate::file::{Ferry, Positioned, Window};
use crate::futex::Futex;
use crate::pipe::Body;
use crate::ready::counter::CounterReady;
use crate::ready::instance::Instance;
use crate::ready::pipe::PipeReady;
use crate::ready::poll::Polls;
use crate::schedule::timer::AlarmClock;
use crate::screen::Writer;
use crate::signal::{Raises, Returns};
use crate::sound::SoundWords;
use crate::trace::Notes;
use crate::tty::raw::RawTty;
use crate::tty::{Line, OutputFilter};

/// All that every kernel has, a line for each; those with the monitor have [`watch`](crate::call::watch::WatchWords), too.
const ALL: &[fn() -> &'static Class] = &[
    Null::class,
    Zero::class,
    Console::class,
    Body::class,
    counter::Body::class,
    Futex::class,
    Window::class,
    Positioned::class,
    Ferry::class,
    Line::class,
    Editor::class,
    OutputFilter::class,
    RawTty::class,
    Writer::class,
    SoundWords::class,
    Opens::class,
    PipeReady::class,
    CounterReady::class,
    Polls::class,
    Instance::class,
    Returns::class,
    Raises::class,
    AlarmClock::class,
    Notes::class,
];

pub fn classes() -> impl Iterator<Item = &'static Class> {
    ALL.iter().map(|class| class())
}
